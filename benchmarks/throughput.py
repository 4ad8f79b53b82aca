"""The whole pipeline against a server that answers at once, as a ratio to a bare aiohttp loop.

The bare loop only sends and reads. Ours also checks, hashes, looks up, counts tokens, scores, makes rows
and stores all of it. Both run in turns, on one core; the server has the other.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

from benchmarks.mock_server import serving

EXAMPLES = 5_000
CONCURRENCY = 64
ROUNDS = 5


def examples(count: int) -> list[dict[str, Any]]:
    """Examples of about 2 KB."""
    filler = "The quick brown fox jumps over the lazy dog while the band plays on. " * 28
    return [
        {"id": i, "context": f"Note {i}. {filler}", "question": f"What is the capital in note {i}?", "answer": "Paris"}
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


def ours(url: str, data: list[dict[str, Any]], **options: Any) -> Any:
    """The whole pipeline, store on."""
    from context_bench import OpenAIProxy, evaluate
    from context_bench.evaluators import AnswerQuality

    with tempfile.TemporaryDirectory() as folder:
        return evaluate(
            OpenAIProxy(url, model="mock"),
            data,
            evaluators=[AnswerQuality()],
            max_workers=CONCURRENCY,
            cache_dir=folder,
            progress=False,
            **options,
        )


def timed(work: Any) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print rates and the ratio."""
    data = examples(EXAMPLES)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    with serving(core=1) as url:
        asyncio.run(bare(url, data[:500]))
        ours(url, data[:500])
        pairs = []
        for _ in range(ROUNDS):
            base = timed(lambda: asyncio.run(bare(url, data)))
            own = timed(lambda: ours(url, data))
            pairs.append((base, own))
            print(
                f"bare aiohttp {EXAMPLES / base[0]:7,.0f}/s ({base[1] / EXAMPLES * 1e6:4.0f} µs CPU)   "
                f"context-bench {EXAMPLES / own[0]:7,.0f}/s ({own[1] / EXAMPLES * 1e6:4.0f} µs CPU)   "
                f"ratio {base[0] / own[0]:.2f}"
            )
            sys.stdout.flush()
        ratios = [base[0] / own[0] for base, own in pairs]
        print(f"throughput: {statistics.median(ratios):.2f} times a bare aiohttp loop (median of {ROUNDS} rounds)")


if __name__ == "__main__":
    main()
