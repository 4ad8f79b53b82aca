"""The whole pipeline against a server that answers at once, as a ratio to a bare aiohttp loop: short and long contexts.

The bare loop only sends and reads. Ours also checks, hashes, looks up, counts tokens, scores, makes rows and, with a
store, keeps all of it. All run in turns. With short contexts we have one core and the server the other; with long ones
neither is pinned, since what we do beside the requests is meant to overlap with them.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.mock_server import serving

EXAMPLES = 5_000
CONCURRENCY = 64
ROUNDS = 5
SHORT, LONG = 2_000, 100_000
"""Characters of a context; the second are about 25,000 tokens."""

PAGES = ("SECURITY.md", "docs/glossary.md", "docs/how-it-works.md")
"""The words of long contexts are theirs: prose, which has four characters to a token. Tables have three."""


def examples(count: int, size: int = SHORT) -> list[dict[str, Any]]:
    """Make examples with contexts of so many characters: one sentence again and again, or mixed words if long."""
    filler = "The quick brown fox jumps over the lazy dog while the band plays on. " * 28
    root, random = Path(__file__).parents[1], Random(1)
    words = [word for page in PAGES for word in (root / page).read_text(encoding="utf-8").split()]

    def text() -> str:
        return filler if size == SHORT else " ".join(random.choices(words, k=size // 5))[:size]

    return [
        {"id": i, "context": f"Note {i}. {text()}", "question": f"What is the capital in note {i}?", "answer": "Paris"}
        for i in range(count)
    ]


async def bare(url: str, data: list[dict[str, Any]], concurrency: int = CONCURRENCY) -> None:
    """Send and read, nothing else."""
    import aiohttp

    jobs = iter(data)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=concurrency)) as session:

        async def worker() -> None:
            for example in jobs:
                messages = [
                    {"role": "system", "content": example["context"]},
                    {"role": "user", "content": example["question"]},
                ]
                async with session.post(
                    f"{url}/v1/chat/completions", json={"model": "mock", "messages": messages}
                ) as reply:
                    json.loads(await reply.read())["choices"][0]["message"]["content"]

        await asyncio.gather(*(worker() for _ in range(concurrency)))


def ours(url: str, data: list[dict[str, Any]], *, store: bool = True, **options: Any) -> Any:
    """Run the whole pipeline, with a new store or without."""
    from context_bench import OpenAIProxy, evaluate
    from context_bench.evaluators import AnswerQuality

    with tempfile.TemporaryDirectory() as folder:
        return evaluate(
            OpenAIProxy(url, model="mock"),
            data,
            evaluators=[AnswerQuality()],
            max_workers=CONCURRENCY,
            cache_dir=folder if store else None,
            progress=False,
            **options,
        )


def timed(work: Any) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def measure(url: str, data: list[dict[str, Any]], label: str) -> None:
    """Run the three ways in turns, and print rates and ratios."""
    ways = {
        "bare aiohttp": lambda: asyncio.run(bare(url, data)),
        "no store": lambda: ours(url, data, store=False),
        "store": lambda: ours(url, data),
    }
    asyncio.run(bare(url, data[:500]))
    ours(url, data[:500])
    rounds = []
    for _ in range(ROUNDS):
        took = {name: timed(work) for name, work in ways.items()}
        rounds.append(took)
        print(
            f"{label}: "
            + "   ".join(
                f"{name} {len(data) / wall:6,.0f}/s ({cpu / len(data) * 1e6:4.0f} µs CPU)"
                for name, (wall, cpu) in took.items()
            )
        )
        sys.stdout.flush()
    for name in ("no store", "store"):
        ratio = statistics.median(took["bare aiohttp"][0] / took[name][0] for took in rounds)
        print(f"throughput, {label}, {name}: {ratio:.2f} times a bare aiohttp loop (median of {ROUNDS} rounds)")
    more = statistics.median(took["store"][0] / took["no store"][0] for took in rounds)
    print(f"throughput, {label}: with a store a run takes {more:.2f} times as long (median of {ROUNDS} rounds)")


def main() -> None:
    """Print rates and ratios of both sizes."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    with serving() as url:
        measure(url, examples(EXAMPLES // 5, LONG), "100 KB")
    if cores:
        os.sched_setaffinity(0, {min(cores)})
    with serving(core=1) as url:
        measure(url, examples(EXAMPLES), "2 KB")
    if cores:
        os.sched_setaffinity(0, cores)


if __name__ == "__main__":
    main()
