"""CPU that the tap takes for one request, beside a bare aiohttp.web handler that answers the same bytes.

The tap reads, masks, answers by a script, counts tokens and records. The client, in a process of its own,
keeps its connections. Both servers run in turns.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientSession, web

from context_bench.cli.tap import Log
from context_bench.store import Store
from context_bench.tap.answering import Incoming
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap

CONCURRENCY = 16
ROUNDS = 5

PATH = "/v1/chat/completions"
WORDS = (
    "the quick brown fox jumps over a lazy dog while our band plays on and every token counts because long contexts "
    "cost money retrieval compression evidence answer question model proxy upstream request reply number 1984 2,500 "
    "Paris Oslo compressed windows agents memory summary paragraph sentence meaning quality latency throughput"
)


@dataclass(frozen=True)
class Size:
    """A size of request: its characters of text, how many are sent in a round, and the most CPU each may take."""

    name: str
    characters: int
    requests: int
    most: int
    """Microseconds."""


SIZES = (Size("2 KB", 2_000, 2_000, 1_000), Size("100 KB", 100_000, 300, 2_000))


def make_body(characters: int, number: int = 0) -> bytes:
    """Make a request with so many characters of prose, different for each number as real contexts are."""
    draw = random.Random(f"{characters}/{number}")
    text = " ".join(draw.choices(WORDS.split(), k=characters // 6))[:characters]
    return json.dumps({"model": "mock", "messages": [{"role": "user", "content": text}]}).encode()


async def client(url: str, count: int, characters: int) -> None:
    """Send so many requests over kept connections."""
    bodies = [make_body(characters, number) for number in range(count)]
    jobs = iter(range(count))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
    async with ClientSession(headers=headers) as session:

        async def worker() -> None:
            for job in jobs:
                async with session.post(url + PATH, data=bodies[job]) as reply:
                    assert reply.status == 200
                    await reply.read()

        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


@asynccontextmanager
async def bare(answerer: Scripted) -> AsyncIterator[str]:
    """A server that reads and answers, nothing else."""
    reply = (await answerer.answer(Incoming("POST", PATH, "", {}, make_body(2_000)))).body
    assert isinstance(reply, bytes)

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=reply, content_type="application/json")

    app = web.Application()
    app.router.add_post(PATH, handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def tapped(answerer: Scripted) -> AsyncIterator[str]:
    """The tap, with a store."""
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        log = Log(store, shown=False)
        log.begin([], answerer.fingerprint)
        tap = Tap(answerer, on_end=log.take)
        await tap.start()
        try:
            yield tap.url
        finally:
            await tap.stop()


async def spent(url: str, count: int, size: Size) -> float:
    """CPU microseconds of this process, all its threads included, for each request of a client."""
    command = (sys.executable, "-m", "benchmarks.tap", url, str(count), str(size.characters))
    before = time.process_time()
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        raise SystemExit("the client failed: nothing was measured")
    return (time.process_time() - before) / count * 1e6


async def measure(size: Size) -> float:
    """Print CPU a request, and what the tap adds; return the tap's microseconds."""
    answerer = Scripted.from_text("text:The answer is Paris, the capital.")
    pairs = []
    async with bare(answerer) as base_url, tapped(answerer) as tap_url:
        for url in (base_url, tap_url):
            await spent(url, size.requests // 5, size)
        for _ in range(ROUNDS):
            base, own = await spent(base_url, size.requests, size), await spent(tap_url, size.requests, size)
            pairs.append((base, own))
            print(f"bare aiohttp.web {base:4.0f} µs CPU   tap {own:4.0f} µs CPU   ratio {own / base:.2f}", flush=True)
    added = statistics.median(own - base for base, own in pairs)
    ratio = statistics.median(own / base for base, own in pairs)
    total = statistics.median(own for _, own in pairs)
    print(
        f"tap: {total:.0f} µs of CPU a request of {size.name}, {added:.0f} µs more than a bare one ({ratio:.2f} times)"
    )
    return total


def main() -> None:
    """Measure; or, with a URL, a number and a size, be the client."""
    if len(sys.argv) == 4:
        asyncio.run(client(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
        return
    slow = [size for size in SIZES if asyncio.run(measure(size)) > size.most]
    if slow:
        raise SystemExit("; ".join(f"the tap takes more than {size.most} µs for {size.name}" for size in slow))


if __name__ == "__main__":
    main()
