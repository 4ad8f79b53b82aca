"""One long text among short ones: the event loop goes on, and neither time-outs nor latencies of others show it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from context_bench import OpenAIProxy, aevaluate
from context_bench.http.loop import new_event_loop
from context_bench.results import EvalResult
from servers import Server, chunk, completion, free_port, stream

pytestmark = pytest.mark.long

DELAY = 0.05

_SERVER = """
import asyncio, json, sys
delay, big = float(sys.argv[1]), int(sys.argv[2])
text = "the quick brown fox jumps over the lazy dog while the band plays on; "
def reply(content):
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
    return b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body
SMALL, BIG = reply("Paris"), reply(text * (big // len(text)))
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            length = [line for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length:")]
            body = await reader.readexactly(int(length[0].split(b":")[1]) if length else 0)
            await asyncio.sleep(delay)
            writer.write(BIG if b"BIG" in body else SMALL)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


@contextmanager
def serving(big: int) -> Iterator[str]:
    """A server in a process of its own: the URL. A request with BIG in it gets a reply of so many bytes."""
    command = [sys.executable, "-c", _SERVER, str(DELAY), str(big)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def run(systems: Any, data: list[dict[str, Any]], **options: Any) -> tuple[EvalResult, float]:
    """The result, and the longest time for which the event loop was held.

    Time that other programs had the processor for is left out.
    """

    async def beat(gaps: list[float]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        while True:
            await asyncio.sleep(0.005)
            now, used = time.perf_counter(), time.process_time()
            gaps.append(min(now - wall, used - cpu))
            wall, cpu = now, used

    async def main() -> tuple[EvalResult, float]:
        gaps = [0.0]
        heart = asyncio.ensure_future(beat(gaps))
        try:
            return await aevaluate(systems, data, progress=False, **options), max(gaps)
        finally:
            heart.cancel()

    loop = new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def examples(count: int, *big: int) -> list[dict[str, Any]]:
    return [
        {"id": n, "context": "BIG" if n in big else "small", "question": "?", "answer": "Paris"} for n in range(count)
    ]


@pytest.mark.parametrize("kept", ["with a store", "without"])
def test_a_reply_of_30_mb_holds_nobody_up(tmp_path: Path, kept: str) -> None:
    with serving(30_000_000) as url:
        options = {"cache_dir": tmp_path} if kept == "with a store" else {}
        proxy = OpenAIProxy(url, name="proxy", timeout=3.0, max_retries=0)
        result, held = run(proxy, examples(300, 8), max_workers=8, **options)
    assert [row.error for row in result.rows if row.error] == []
    assert result.rows[8].output_tokens > 5_000_000
    small = [row.latency for row in result.rows if row.example_id != 8]
    assert held < 0.4, f"the loop was held for {held:.2f} s"
    assert median(small) < 4 * DELAY
    assert max(small) < 2.0


def test_a_rival_with_long_replies_does_not_move_the_latency_of_another() -> None:
    with serving(1_000_000) as url:

        def proxy(name: str, prompt: str | None = None) -> OpenAIProxy:
            return OpenAIProxy(url, name=name, system_prompt=prompt)

        data = examples(60)
        alone, _ = run(proxy("a"), data, max_workers=4)
        beside, _ = run([proxy("a"), proxy("b", "BIG")], data, max_workers=4)
    assert not any(row.error for row in (*alone.rows, *beside.rows))
    before = median(row.latency for row in alone.rows)
    after = median(row.latency for row in beside.rows if row.system == "a")
    assert after < 1.5 * before, f"{before * 1000:.0f} ms became {after * 1000:.0f}"


_ONE_REPLY = """
import sys
from pathlib import Path
from context_bench import OpenAIProxy, evaluate
from context_bench.tap.forward import Forward
from context_bench.tap.system import Tapped

url, port, streamed, folder = sys.argv[1:]
system = OpenAIProxy(f"http://127.0.0.1:{port}" if port != "0" else url, stream=streamed == "1", timeout=100)
if port != "0":
    system = Tapped(system, Forward(url), port=int(port), known_as="the model itself")
example = {"id": 1, "context": "some words", "question": "Which?", "answer": "these"}
(row,) = evaluate(system, [example], cache_dir=folder, progress=False).rows
status = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))
print(row.error, len(row.response), row.metadata["response_tokens"], peak)
"""
_PHRASE = "lorem ipsum dolor sit amet, consectetur 12 adipiscing elit. "


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("tapped", [False, True])
@pytest.mark.parametrize(
    ("piece", "tokens"),
    [
        ("a" * 16, 2),  # no place to cut it: all of it is one word
        ("{" * 32, 16),
        (_PHRASE, 12),
    ],
    ids=["letter", "brace", "words"],
)
def test_a_reply_of_30_mb_takes_at_most_600_mb(piece: str, tokens: int, tapped: bool, tmp_path: Path) -> None:
    """Measured by the peak of a process of its own."""
    times = (30 << 20) // len(piece)
    text = piece * times
    pieces = (chunk(text[place : place + 65_536]) for place in range(0, len(text), 65_536))
    answer = stream(*pieces, chunk(finish="stop"), b"data: [DONE]\n\n") if tapped else completion(text)
    port = free_port() if tapped else 0
    with Server(answer) as server:
        command = [sys.executable, "-c", _ONE_REPLY, server.url, str(port), str(int(tapped)), str(tmp_path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    error, size, counted, peak = ended.stdout.split()
    assert (error, int(size)) == ("None", len(text))
    assert int(counted) == pytest.approx(tokens * times, abs=20)
    assert int(peak) <= 600
