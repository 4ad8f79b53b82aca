"""Is a slow server used fully? Against one that takes 500 ms, at concurrency 256, as a share of the ideal rate.

A bare aiohttp loop that only sends and reads stands beside it: no client can be faster than the server's own sleep.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time

from benchmarks.mock_server import serving
from benchmarks.throughput import bare, examples

DELAY = 0.5
CONCURRENCY = 256
EXAMPLES = 5_120


def main() -> None:
    """Print the rate beside the ideal one."""
    from context_bench import OpenAIProxy, evaluate
    from context_bench.evaluators import AnswerQuality

    data = examples(EXAMPLES)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    with serving(delay=DELAY, core=1) as url, tempfile.TemporaryDirectory() as folder:
        proxy = OpenAIProxy(url, model="mock")
        evaluate(proxy, data[:CONCURRENCY], max_workers=CONCURRENCY, progress=False)
        started = time.perf_counter()
        asyncio.run(bare(url, data, CONCURRENCY))
        base = time.perf_counter() - started
        started = time.perf_counter()
        result = evaluate(
            proxy,
            data,
            evaluators=[AnswerQuality()],
            max_workers=CONCURRENCY,
            cache_dir=folder,
            progress=False,
        )
        seconds = time.perf_counter() - started
    ideal = CONCURRENCY / DELAY
    assert not result.summary[proxy.name]["num_errors"]
    print(
        f"full endpoint: {EXAMPLES / seconds:.0f}/s of {ideal:.0f}/s, {EXAMPLES / seconds / ideal:.3f} of the ideal "
        f"({DELAY:g} s a request, concurrency {CONCURRENCY}; a bare aiohttp loop: {EXAMPLES / base / ideal:.3f})"
    )


if __name__ == "__main__":
    main()
