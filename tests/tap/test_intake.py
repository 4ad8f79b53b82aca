"""What a tap takes in: bodies that unpack to gigabytes, too many at once, clients that send or read slowly."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
import subprocess
import sys
import time
import zlib
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from command import environment
from context_bench.tap import intake, server
from context_bench.tap.answering import Incoming, Outgoing
from context_bench.tap.intake import BodyRefused, Budget, Share
from context_bench.tap.scripted import Scripted
from context_bench.tap.server import Tap
from servers import Server, completion, free_port, raw
from timing import depends_on_time

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")

MB = 1 << 20


@contextmanager
def tapping(*arguments: str) -> Iterator[tuple[int, Callable[[], int]]]:
    """The port of a tap in a process of its own, and what tells the most megabytes that it has used."""
    port = free_port()
    command = [sys.executable, "-m", "context_bench", "tap", "--no-store", "--listen", f":{port}", *arguments]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120  # only a hang takes that long
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield port, lambda: _peak(process.pid)
    finally:
        process.kill()
        process.wait()


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) // 1024


def post(port: int, body: bytes, **headers: str) -> int:
    """The status, or 0 when the connection is cut."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json", **named})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def bomb(packer: Callable[[], Any], megabytes: int) -> bytes:
    """Spaces that unpack to so many megabytes: one piece is packed and repeated, as a flushed piece needs no other.

    The checksum at the end fits the first two pieces alone; a reader that gets there has unpacked too much.
    """
    made = packer()
    first, piece = (made.compress(b" " * (4 * MB)) + made.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return b"".join([first, *[piece] * (megabytes // 4 - 1), made.flush()])


@pytest.mark.parametrize(
    ("coding", "packer"),
    [("gzip", lambda: zlib.compressobj(1, wbits=31)), ("deflate", lambda: zlib.compressobj(1))],
)
def test_four_bodies_that_unpack_to_gigabytes_cost_little(coding: str, packer: Callable[[], Any]) -> None:
    body = bomb(packer, 300)
    assert len(body) < 2 * MB
    with tapping("--reply", "echo") as (port, peak), ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda _: post(port, body, Content_Encoding=coding), range(4)))
        assert set(statuses) <= {413, 0}
        assert peak() < 900
        assert post(port, b'{"messages": []}') == 200


BROTLI_BOMB = b64decode(
    "y///PwAkQOKxQHLv//j//weABEAcFoDu/R////8AkACIwwLQvf/j//8fABIAcVgAuvd//P//A0ACIA4LQPf+j///fwBIAMRhAeje"
    "//H//w8ACYA4LADd+z/+//8BIAEQhwWge//H//8/ACQA4rAAdO//+P//B4AEQBwWgO79H////wCQAIjDAtC9/+P//x8AEgBxWAC6"
    "93/8//8DQAIgDgtA9/6P//9/AEgAxGEB6N7/8f//DwAJgDgsAN37P/7//wEgARCHBaB7/8f//z8AJADisAB07//4//8HgARAHBaA"
    "7v0f////AJAAiMMC0L3/4///HwASAHFYALr3f/z//wNAAiAOC0D3/o///38ASADEYQHo3v/x//8PAAmAOCwA3fs//v//ASABEIcF"
    "oHv/x///PwAkAOKwAHTv//j//weABEAcFoDu/R////8AkACIwwLQvf/j//8fABIAcVgAuvd//P//A0ACIA4LQPf+j///fwBIAMRh"
    "Aeje//H//w8ACYA4LADd+z/+//8BIAEQhwWge//H//8/ACQA4rAAdO//+P//B4AEQBwWgO79H////wCQAIjDAtC9/+P//x8AEgBx"
    "WAC693/8//8DQAIgDgtA9/4v//9/AEgAxGEB6N7/AA=="
)
"""300 MB of spaces."""


def make_zstd_bomb(megabytes: int) -> bytes:
    """A frame of blocks that each say: repeat a space 128 KB times (RFC 8878, 3.1.1)."""
    size = 128 * 1024
    blocks = megabytes * MB // size
    window = bytes([17 - 10 << 3])  # 128 KB
    header = [(size << 3) | (1 << 1) | (place == blocks - 1) for place in range(blocks)]
    return b"\x28\xb5\x2f\xfd\x00" + window + b"".join(each.to_bytes(3, "little") + b" " for each in header)


@pytest.mark.parametrize(("coding", "body"), [("br", BROTLI_BOMB), ("zstd", make_zstd_bomb(300))])
def test_other_packings_are_limited_too_or_refused(coding: str, body: bytes) -> None:
    """Whether they can be unpacked depends on libraries that happen to be there; 400 where they cannot."""
    assert len(body) < MB
    with tapping("--reply", "echo") as (port, peak), ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda _: post(port, body, Content_Encoding=coding), range(4)))
        assert set(statuses) <= {413, 400, 0}
        assert peak() < 900
        assert post(port, b'{"messages": []}') == 200


def test_a_body_of_200_mb_is_refused_at_once() -> None:
    body = b'{"messages": [{"role": "user", "content": "' + b"word " * (40 * MB) + b'"}]}'
    with tapping("--reply", "echo") as (port, peak):
        before = time.monotonic()
        assert post(port, body) in (413, 0)
        assert time.monotonic() - before < 30
        assert peak() < 400


def test_the_largest_body_that_is_taken() -> None:
    body = b'{"messages": [{"role": "user", "content": "' + b"word " * (15 * MB) + b'"}]}'
    with tapping("--reply", "text:x") as (port, peak):
        before = time.monotonic()
        assert post(port, body) == 200
        assert time.monotonic() - before < 60
        assert peak() < 1200


@depends_on_time("how much of the four replies arrives at once depends on how busy the machine is")
@pytest.mark.long
@pytest.mark.parametrize(
    ("coding", "packer"),
    [("gzip", lambda: zlib.compressobj(9, wbits=31)), ("deflate", lambda: zlib.compressobj(9))],
)
def test_four_replies_that_unpack_to_gigabytes_are_cut(coding: str, packer: Callable[[], Any]) -> None:
    packed = bomb(packer, 1000)
    assert len(packed) < MB
    upstream = Server(raw(packed, headers={"Content-Encoding": coding}))
    with upstream, tapping("--forward", upstream.url) as (port, peak), ThreadPoolExecutor(4) as pool:
        before = peak()
        assert set(pool.map(lambda _: post(port, b'{"messages": []}'), range(4))) == {0}
        assert peak() - before <= 256, "as SECURITY.md says"
        upstream.script = [completion("ok")]
        assert post(port, b'{"messages": []}') == 200


def test_a_packed_reply_of_the_upstream_is_passed_on() -> None:
    body = json.dumps({"choices": [], "text": "word " * 200_000}).encode()
    upstream = Server(raw(gzip.compress(body), headers={"Content-Encoding": "gzip"}))
    with upstream, tapping("--forward", upstream.url) as (port, _):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("POST", "/v1/messages", b"{}")
        assert connection.getresponse().read() == body
        connection.close()


# --- all bodies together


def test_who_finds_no_room_waits_and_is_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_ROOM_TIMEOUT", 0.1)

    async def work() -> None:
        budget = Budget(100)
        first, second = Share(budget), Share(budget)
        await first.take(60)
        with pytest.raises(BodyRefused) as caught:
            await second.take(50)
        assert caught.value.status == 503
        waiting = asyncio.ensure_future(second.take(50))
        await asyncio.sleep(0.02)
        first.give_back()
        await waiting
        second.give_back()
        second.give_back()  # once is enough
        assert budget.free == 100

    asyncio.run(work())


@pytest.mark.parametrize("packed", [False, True])
def test_bodies_together_stay_within_the_budget(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six bodies of 4 MB where 10 MB may be held: all are answered, and none waits for ever for another."""
    body, headers = b"x" * (4 * MB), {}
    if packed:
        body, headers = gzip.compress(body), {"Content_Encoding": "gzip"}
    monkeypatch.setattr(server, "Budget", lambda: Budget(10 * MB))
    held: list[int] = []

    class Slow(Scripted):
        async def answer(self, request: Incoming) -> Outgoing:
            held.append(len(request.body))
            assert sum(held) <= 10 * MB
            await asyncio.sleep(0.05)
            held.pop()
            return Outgoing(200, {}, b"ok")

    async def work() -> None:
        tap = Tap(Slow.from_text("echo"))
        await tap.start()
        try:
            asked = (asyncio.to_thread(post, tap.port, body, **headers) for _ in range(6))
            assert await asyncio.gather(*asked) == [200] * 6
        finally:
            await tap.stop()

    asyncio.run(work())


# --- slow ones


class Streaming:
    """Answers with chunks that come when they do."""

    fingerprint = "streaming"

    def __init__(self, chunk: bytes, number: int, pause: float) -> None:
        self._chunk, self._number, self._pause = chunk, number, pause

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def answer(self, request: Incoming) -> Outgoing:
        async def chunks() -> AsyncIterator[bytes]:
            for _ in range(self._number):
                await asyncio.sleep(self._pause)
                yield self._chunk

        return Outgoing(200, {"Content-Type": "text/event-stream"}, chunks())


def connected(answerer: object, test: Callable[[socket.socket], None]) -> None:
    async def work() -> None:
        tap = Tap(answerer)  # type: ignore[arg-type]
        await tap.start()
        try:
            with socket.create_connection(("127.0.0.1", tap.port), timeout=10) as client:
                await asyncio.to_thread(test, client)
        finally:
            await tap.stop()

    asyncio.run(work())


def is_cut(client: socket.socket, within: float) -> bool:
    client.settimeout(within)
    try:
        while client.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@pytest.mark.parametrize("said", [b"", b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nX-Slow"])
def test_a_client_that_does_not_end_its_headers_is_cut(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_HEADER_SECONDS", 0.3)

    def test(client: socket.socket) -> None:
        client.sendall(said)
        assert is_cut(client, 3)

    connected(Scripted.from_text("echo"), test)


def test_a_client_that_does_not_end_its_second_headers_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_IDLE_SECONDS", 0.3)

    def test(client: socket.socket) -> None:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        time.sleep(0.1)
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localh")
        assert is_cut(client, 5)

    connected(Scripted.from_text("echo"), test)


def test_a_client_that_does_not_end_its_body_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_BODY_SECONDS", 0.3)

    def test(client: socket.socket) -> None:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        assert is_cut(client, 3)

    connected(Scripted.from_text("echo"), test)


def test_a_client_that_does_not_read_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_WRITE_SECONDS", 0.5)

    def test(client: socket.socket) -> None:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        time.sleep(1.5)
        got = 0
        try:
            while chunk := client.recv(65536):
                got += len(chunk)
        except OSError:
            pass
        assert got < 64 * MB

    connected(Streaming(b"x" * MB, 64, 0.0), test)


def test_a_slow_model_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    for where, name in ((server, "_WRITE_SECONDS"), (server, "_HEADER_SECONDS"), (intake, "_BODY_SECONDS")):
        monkeypatch.setattr(where, name, 0.2)

    def test(client: socket.socket) -> None:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        said = b""
        while not said.endswith(b"0\r\n\r\n"):
            chunk = client.recv(65536)
            assert chunk, said
            said += chunk
        assert said.count(b"data: 1") == 4

    connected(Streaming(b"data: 1\n\n", 4, 0.4), test)
