"""CPU that the tap takes for one request, beside a bare aiohttp.web handler that answers the same bytes.

The tap reads, masks, answers by a script, counts tokens and records. The client, in a process of its own,
keeps its connections. Both servers run in turns.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, web

from context_bench.cli.tap import Log
from context_bench.store import Store
from context_bench.tap.answering import Incoming
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap

REQUESTS = 3_000
CONCURRENCY = 16
ROUNDS = 5
MOST = 1_000
"""Microseconds that the tap may add."""

PATH = "/v1/chat/completions"
TEXT = "The quick brown fox jumps over the lazy dog while the band plays on. " * 28
BODY = json.dumps({"model": "mock", "messages": [{"role": "user", "content": TEXT}]}).encode()


async def client(url: str, count: int) -> None:
    """Send so many requests over kept connections."""
    jobs = iter(range(count))
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-0123456789abcdef"}
    async with ClientSession(headers=headers) as session:

        async def worker() -> None:
            for _ in jobs:
                async with session.post(url + PATH, data=BODY) as reply:
                    assert reply.status == 200
                    await reply.read()

        await asyncio.gather(*(worker() for _ in range(CONCURRENCY)))


@asynccontextmanager
async def bare(answerer: Scripted) -> AsyncIterator[str]:
    """A server that reads and answers, nothing else."""
    reply = (await answerer.answer(Incoming("POST", PATH, "", {}, BODY))).body
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


async def spent(url: str, count: int) -> float:
    """CPU microseconds of this process for each request of a client."""
    command = (sys.executable, "-m", "benchmarks.tap", url, str(count))
    before = time.process_time()
    process = await asyncio.create_subprocess_exec(*command)
    if await process.wait():
        raise SystemExit("the client failed: nothing was measured")
    return (time.process_time() - before) / count * 1e6


async def measure() -> None:
    """Print CPU a request, and what the tap adds."""
    answerer = Scripted.from_text("text:The answer is Paris, the capital.")
    pairs = []
    async with bare(answerer) as base_url, tapped(answerer) as tap_url:
        for url in (base_url, tap_url):
            await spent(url, 500)
        for _ in range(ROUNDS):
            base, own = await spent(base_url, REQUESTS), await spent(tap_url, REQUESTS)
            pairs.append((base, own))
            print(f"bare aiohttp.web {base:4.0f} µs CPU   tap {own:4.0f} µs CPU   ratio {own / base:.2f}", flush=True)
    added = statistics.median(own - base for base, own in pairs)
    ratio = statistics.median(own / base for base, own in pairs)
    total = statistics.median(own for _, own in pairs)
    print(f"tap: {total:.0f} µs of CPU a request of 2 KB, {added:.0f} µs more than a bare handler ({ratio:.2f} times)")
    if total > MOST:
        raise SystemExit(f"the tap takes more than {MOST} µs")


def main() -> None:
    """Measure; or, with a URL and a number, be the client."""
    if len(sys.argv) == 3:
        asyncio.run(client(sys.argv[1], int(sys.argv[2])))
    else:
        asyncio.run(measure())


if __name__ == "__main__":
    main()
