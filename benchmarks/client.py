"""What a request costs the client alone: libcurl as we drive it, as pycurl does, and aiohttp, in turns on one core."""

from __future__ import annotations

import asyncio
import os
import statistics
from io import BytesIO
from typing import Any

import orjson
import pycurl

from benchmarks.mock_server import serving
from benchmarks.throughput import CONCURRENCY, bare, examples, timed

EXAMPLES = 3_000
ROUNDS = 5


async def curl(open_multi: Any, url: str, data: list[dict[str, Any]]) -> None:
    """Send and read with libcurl, nothing else."""
    multi, jobs = open_multi(), iter(data)

    async def worker() -> None:
        handle = pycurl.Curl()
        handle.setopt(pycurl.URL, f"{url}/v1/chat/completions")
        handle.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json", "Expect:"])
        handle.setopt(pycurl.NOSIGNAL, 1)
        for example in jobs:
            messages = [
                {"role": "system", "content": example["context"]},
                {"role": "user", "content": example["question"]},
            ]
            body = BytesIO()
            handle.setopt(pycurl.POSTFIELDS, orjson.dumps({"model": "mock", "messages": messages}))
            handle.setopt(pycurl.WRITEDATA, body)
            await multi.add_handle(handle)
            orjson.loads(body.getvalue())["choices"][0]["message"]["content"]
        handle.close()

    await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))
    await multi.aclose()


def main() -> None:
    """Print CPU for each request, and how many times less ours is."""
    from context_bench.http.multi import open_multi

    data = examples(EXAMPLES)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    with serving(core=1) as url:
        ways = {
            "libcurl, our multi": lambda: asyncio.run(curl(open_multi, url, data)),
            "libcurl, pycurl's multi": lambda: asyncio.run(curl(pycurl.AsyncCurlMulti, url, data)),
            "aiohttp": lambda: asyncio.run(bare(url, data)),
        }
        for work in ways.values():
            work()
        rounds = [{name: timed(work)[1] / EXAMPLES * 1e6 for name, work in ways.items()} for _ in range(ROUNDS)]
    ours = statistics.median(each["libcurl, our multi"] for each in rounds)
    for name in ways:
        cpu = statistics.median(each[name] for each in rounds)
        print(f"client: {name:25} {cpu:4.0f} µs of CPU a request, {cpu / ours:.2f} times ours")


if __name__ == "__main__":
    main()
