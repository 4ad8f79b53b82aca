"""The tap's server, over real sockets: what passes, when, what is kept of it, and how it ends."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import socket
import sys
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from context_bench.errors import MissingExtra, UsageError
from context_bench.tap.answering import Incoming, Outgoing
from context_bench.tap.forward import Forward
from context_bench.tap.server import Tap
from context_bench.traffic.calls import Call
from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from timing import depends_on_time

KEY = "sk-live-0123456789abcdef"
EVENTS = {"Content-Type": "text/event-stream"}


@dataclass
class Answering:
    """Answers by a function, and remembers what it was asked."""

    reply: Callable[[Incoming], Outgoing] = lambda _: Outgoing(200, {}, b"ok")
    fingerprint: str = "test"
    asked: list[Incoming] = field(default_factory=list)
    opened: int = 0

    async def open(self) -> None:
        self.opened += 1

    async def answer(self, request: Incoming) -> Outgoing:
        self.asked.append(request)
        return self.reply(request)

    async def close(self) -> None:
        self.opened -= 1


@dataclass
class Running:
    """A tap that listens, what it told of, and a client."""

    tap: Tap
    client: aiohttp.ClientSession
    began: list[Call]
    ended: list[Call]

    def post(self, path: str = "/v1/chat/completions", **options: Any) -> Any:
        return self.client.post(self.tap.url + path, **options)


@asynccontextmanager
async def running(answerer: Any) -> AsyncIterator[Running]:
    began: list[Call] = []
    ended: list[Call] = []
    tap = Tap(answerer, on_call=lambda call, _: began.append(call), on_end=lambda call, _: ended.append(call))
    await tap.start()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:
            yield Running(tap, client, began, ended)
    finally:
        await tap.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


async def until(true: Callable[[], bool]) -> None:
    deadline = time.perf_counter() + 5
    while not true():
        assert time.perf_counter() < deadline, "it never became true"
        await asyncio.sleep(0.005)


async def talk(port: int, request: bytes) -> bytes:
    """Everything that comes back for these bytes until the connection is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


def test_a_request_is_answered_and_kept() -> None:
    async def test() -> None:
        answerer = Answering(lambda _: Outgoing(201, {"X-Own": "1", "Content-Type": "text/plain"}, "grüß".encode()))
        async with running(answerer) as at:
            before = time.perf_counter()
            async with at.post("/v1/messages?beta=true", data='{"ä": 1}'.encode(), headers={"X-Own": "a"}) as reply:
                assert (reply.status, reply.headers["X-Own"]) == (201, "1")
                assert await reply.text() == "grüß"
            await until(lambda: len(at.ended) == 1)
        (request,), (call,) = answerer.asked, at.ended
        assert (request.method, request.path, request.query) == ("POST", "/v1/messages", "beta=true")
        assert (request.headers["x-own"], request.form) == ("a", ANTHROPIC_MESSAGES)
        assert call is at.began[0]
        assert (call.path, call.body, call.status, call.reply) == ("/v1/messages", '{"ä": 1}', 201, "grüß")
        assert call.first is not None
        assert call.ended is not None
        assert before <= call.started <= call.first <= call.ended <= time.perf_counter()
        assert answerer.opened == 0

    run(test)


@pytest.mark.parametrize(
    ("path", "known_as"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/messages", "/v1/messages"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("/a%2Fb", "/a%2Fb"),
    ],
)
def test_a_base_with_v1_leads_to_the_same_place(path: str, known_as: str) -> None:
    async def test() -> None:
        answerer = Answering()
        async with running(answerer) as at:
            from yarl import URL

            async with at.client.post(URL(at.tap.url + path, encoded=True)) as reply:
                assert reply.status == 200
        assert [request.path for request in answerer.asked] == [known_as]
        assert [call.path for call in at.ended] == [known_as]

    run(test)


def test_only_posts_are_kept() -> None:
    async def test() -> None:
        answerer = Answering()
        async with running(answerer) as at:
            for method, path in (("GET", "/v1/models"), ("GET", "/models"), ("GET", "/"), ("HEAD", "/"), ("PUT", "/x")):
                async with at.client.request(method, at.tap.url + path) as reply:
                    assert reply.status == 200
            async with at.client.get(at.tap.url + "/health") as reply:
                assert await reply.json() == {"status": "ok"}
        assert [request.path for request in answerer.asked] == ["/v1/models", "/v1/models", "/", "/", "/x"]
        assert at.began == at.ended == []

    run(test)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_a_stream_arrives_chunk_by_chunk(dialect: str) -> None:
    pause, path = 0.1, {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[dialect]
    sent = [f"event: e\ndata: {number}\n\n".encode() for number in range(4)]

    async def chunks() -> AsyncIterator[bytes]:
        for number, chunk in enumerate(sent):
            if number:
                await asyncio.sleep(pause)
            yield chunk
            yield b""  # is no end

    async def test() -> None:
        async with running(Answering(lambda _: Outgoing(200, EVENTS, chunks()))) as at:
            async with at.post(path) as reply:
                arrived = [(time.perf_counter(), chunk) async for chunk in reply.content.iter_any()]
            await until(lambda: len(at.ended) == 1)
        assert [chunk for _, chunk in arrived] == sent
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(arrived)]
        assert min(gaps) > pause / 2
        (call,) = at.ended
        assert call.reply.encode() == b"".join(sent)
        assert call.first is not None
        assert call.ended is not None
        assert call.first - call.started < pause
        assert call.ended - call.first >= 2.5 * pause
        assert not call.cut

    run(test)


def test_a_stream_has_begun_with_its_first_token() -> None:
    pause, opening = 0.2, b'data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}\n\n'
    token = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Oslo"}}

    async def chunks() -> AsyncIterator[bytes]:
        yield opening
        await asyncio.sleep(pause)
        yield f"data: {json.dumps(token)}\n\n".encode()

    async def test() -> None:
        async with running(Answering(lambda _: Outgoing(200, EVENTS, chunks()))) as at:
            async with at.post("/v1/messages") as reply:
                await reply.read()
            await until(lambda: len(at.ended) == 1)
        (call,) = at.ended
        assert call.first is not None
        assert call.first - call.started >= pause

    run(test)


def test_a_stream_that_breaks_off_never_ends_cleanly() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        raise OSError("the upstream is gone")

    async def test() -> None:
        async with running(Answering(lambda _: Outgoing(200, EVENTS, chunks()))) as at:
            line = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            said = await talk(at.tap.port, line)
            assert said.endswith(b"\r\n\r\n9\r\ndata: 1\n\n\r\n")  # and no chunk of length 0
            with pytest.raises(ConnectionResetError):  # where a closed connection is the end of a reply
                await talk(at.tap.port, line.replace(b"1.1", b"1.0"))
            await until(lambda: len(at.ended) == 2)
        assert [(call.cut, call.status) for call in at.ended] == [(True, 200), (True, 200)]
        assert at.ended[0].reply == "data: 1\n\n"

    run(test)


def test_a_client_that_goes_away_ends_the_work_for_it() -> None:
    closed: list[str] = []

    async def chunks() -> AsyncIterator[bytes]:
        try:
            for number in range(1000):
                yield f"data: {number}\n\n".encode()
                await asyncio.sleep(0.02)
        finally:
            closed.append("stream")

    async def test() -> None:
        async with running(Answering(lambda _: Outgoing(200, EVENTS, chunks()))) as at:
            async with at.post() as reply:
                assert await reply.content.readany() == b"data: 0\n\n"
                reply.close()
            await until(lambda: bool(closed) and bool(at.ended))
            (call,) = at.ended
            assert call.reply.startswith("data: 0\n\n")
            assert len(call.reply) < 1000
            assert call.cut
            assert call.status == 200

    run(test)


def test_a_client_that_does_not_wait_for_the_first_byte_ends_it_too() -> None:
    class Slow(Answering):
        cancelled = False

        async def answer(self, request: Incoming) -> Outgoing:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.cancelled = True
                raise
            return Outgoing()

    async def test() -> None:
        answerer = Slow()
        async with running(answerer) as at:
            with pytest.raises(asyncio.TimeoutError):
                await at.post(timeout=aiohttp.ClientTimeout(total=0.1))
            await until(lambda: bool(at.ended))
            assert answerer.cancelled
            assert (at.ended[0].status, at.ended[0].cut) == (0, True)

    run(test)


@pytest.mark.long
@depends_on_time("a thousand connections must be accepted before the slowest of them gives up")
@pytest.mark.parametrize("forwarded", [False, True])
def test_a_thousand_streams_at_once_are_not_mixed_up(forwarded: bool) -> None:
    streams, chunks_each = 1000, 4
    all_there = asyncio.Event()
    waiting = 0

    async def chunks(number: int) -> AsyncIterator[bytes]:
        nonlocal waiting
        yield f"{number}\n".encode()
        waiting += 1
        if waiting == streams:
            all_there.set()
        await all_there.wait()  # so that all are open at the same moment
        for _ in range(chunks_each - 1):
            await asyncio.sleep(0)
            yield f"{number}\n".encode()

    async def ask(at: Running, number: int) -> str:
        async with at.post(json={"number": number}) as reply:
            return await reply.text()

    async def test() -> None:
        answerer = Answering(lambda request: Outgoing(200, EVENTS, chunks(request.document()["number"])))
        upstream = Tap(answerer)
        await upstream.start()
        async with running(Forward(upstream.url) if forwarded else answerer) as at:
            replies = await asyncio.gather(*(ask(at, number) for number in range(streams)))
            await until(lambda: len(at.ended) == streams)
        await upstream.stop()
        assert replies == [f"{number}\n" * chunks_each for number in range(streams)]
        assert waiting == streams
        for call in at.ended:
            assert call.reply == f"{json.loads(call.body)['number']}\n" * chunks_each
            assert call.ended is not None

    run(test)


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_compressed_body_is_kept_and_answered_as_text(coding: str, encode: Callable[[bytes], bytes]) -> None:
    async def test() -> None:
        answerer, body = Answering(), b'{"messages": []}'
        headers = {"Content-Encoding": coding}
        async with running(answerer) as at, at.post(data=encode(body), headers=headers) as reply:
            assert reply.status == 200
        assert answerer.asked[0].body == body
        assert "content-encoding" not in answerer.asked[0].headers
        assert at.began[0].body == body.decode()

    run(test)


def test_large_and_odd_bodies_pass() -> None:
    async def test() -> None:
        answerer = Answering()
        async with running(answerer) as at:
            for body in (b"x" * (65 << 20), b"\xff\x00\xfe", b""):
                async with at.post(data=io.BytesIO(body)) as reply:
                    assert reply.status == 200
                assert answerer.asked.pop().body == body
        assert len(at.began[0].body) == 65 << 20
        assert at.began[1].body == "\ufffd\x00\ufffd"

    run(test)


def test_a_key_is_kept_nowhere() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"you are " + KEY[:9].encode()
        yield KEY[9:].encode()

    def reply(request: Incoming) -> Outgoing:
        assert request.headers["authorization"] == f"Bearer {KEY}"  # the answerer needs it
        return Outgoing(200, {}, chunks() if request.body else f"bad key {KEY}".encode())

    async def test() -> None:
        headers = {"Authorization": f"Bearer {KEY}", "X-Trace": "7"}
        async with running(Answering(reply)) as at:
            for body in (f'{{"echo": "{KEY}"}}'.encode(), b""):
                async with at.post(data=body, headers=headers, params={"key": KEY}) as answer:
                    assert KEY in await answer.text()
            await until(lambda: len(at.ended) == 2)
        assert KEY not in repr([call.as_dict(0.0) for call in at.ended])
        assert [call.reply for call in at.ended] == ["you are ***", "bad key ***"]
        assert (at.ended[0].headers["authorization"], at.ended[0].headers["x-trace"]) == ("***", "7")

    run(test)


def test_requests_that_cannot_be_parsed_are_not_shown(capfd: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with running(Answering()) as at:
            said = await talk(at.tap.port, b"POST / HTTP/1.1\r\nAuthorization: Bearer %s\x00\r\n\r\n" % KEY.encode())
            assert said.startswith(b"HTTP/1.0 400 ")
            said = await talk(at.tap.port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
            assert said.startswith(b"HTTP/1.0 400 ")
        assert at.began == []

    run(test)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("target", [b"*", b"evil:443", b"@evil/", b"..", b""])
def test_what_is_no_path_reaches_nobody(target: bytes) -> None:
    async def test() -> None:
        answerer = Answering()
        async with running(answerer) as at:
            method = b"CONNECT" if b":" in target else b"POST"
            request = (
                method
                + b" "
                + target
                + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            assert (await talk(at.tap.port, request)).startswith((b"HTTP/1.0 400 ", b"HTTP/1.1 40"))
        assert answerer.asked == []

    run(test)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/v1/chat/completions", {"error": {"type": "api_error", "message": "ValueError: no"}}),
        ("/v1/messages", {"type": "error", "error": {"type": "api_error", "message": "ValueError: no"}}),
    ],
)
def test_an_answerer_that_fails_is_a_500_in_the_form_of_the_dialect(path: str, error: dict[str, Any]) -> None:
    def fail(_: Incoming) -> Outgoing:
        raise ValueError("no")

    async def test() -> None:
        async with running(Answering(fail)) as at:
            async with at.post(path) as reply:
                document = await reply.json()
                assert reply.status == 500
            await until(lambda: len(at.ended) == 1)
        assert document.get("type") == error.get("type")
        assert document["error"].items() >= error["error"].items()
        assert json.loads(at.ended[0].reply) == document

    run(test)


def test_it_listens_on_loopback_alone() -> None:
    async def test() -> None:
        async with running(Answering()) as at:
            assert at.tap.url == f"http://127.0.0.1:{at.tap.port}"
            for host in ("127.0.0.2", "::1"):  # other addresses of this very machine
                with pytest.raises(OSError):
                    await asyncio.open_connection(host, at.tap.port)

    run(test)


def test_a_taken_port_is_one_sentence() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port, answerer = taken.getsockname()[1], Answering()
            with pytest.raises(UsageError) as caught:
                await Tap(answerer, port=port).start()
        said = f"port {port} of 127.0.0.1 is in use: stop the program that uses it, or choose another port"
        assert str(caught.value) == said
        assert answerer.opened == 0

    run(test)


def test_an_address_of_another_machine_is_one_sentence() -> None:
    async def test() -> None:
        with pytest.raises(UsageError, match=r"cannot listen on 192\.0\.2\.1:"):
            await Tap(Answering(), host="192.0.2.1").start()

    run(test)


def test_it_stops_with_streams_under_way() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        while True:
            yield b"data: 1\n\n"
            await asyncio.sleep(0.05)

    async def test() -> None:
        answerer = Answering(lambda _: Outgoing(200, EVENTS, chunks()))
        async with running(answerer) as at:
            reply = await at.post()
            assert await reply.content.readany()
            started = time.perf_counter()
            await at.tap.stop()
            assert time.perf_counter() - started < 30
            with pytest.raises(aiohttp.ClientPayloadError):
                await reply.read()
            assert [call.cut for call in at.ended] == [True]
            assert answerer.opened == 0
            await at.tap.stop()  # once more does no harm

    run(test)


@pytest.mark.parametrize("start", [lambda: Tap(Answering()).start(), lambda: Forward("http://h").open()])
def test_without_its_library_it_says_what_to_install(
    start: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ctxbench\[tap\]'"):
        run(start)


def test_a_watcher_may_take_its_time_before_the_call_is_answered() -> None:
    async def test() -> None:
        order: list[str] = []

        async def note(what: str) -> None:
            await asyncio.sleep(0.05)
            order.append(what)

        def answer(_: Incoming) -> Outgoing:
            order.append("answered")
            return Outgoing(200, {}, b"ok")

        tap = Tap(Answering(answer), on_call=lambda *_: note("began"), on_end=lambda *_: note("ended"))
        await tap.start()
        async with aiohttp.ClientSession() as client, client.post(tap.url, data=b"{}") as reply:
            assert await reply.read() == b"ok"
        await tap.stop()  # which waits for what is told
        assert order == ["began", "answered", "ended"]

    run(test)


def test_what_is_told_of_a_call_is_finished_when_the_client_goes_away() -> None:
    async def test() -> None:
        go, told = asyncio.Event(), []
        held: list[int] = []

        async def note(call: Call) -> None:
            await go.wait()
            told.append(call.body)

        tap = Tap(Answering(), on_call=lambda call, _: note(call))
        whole = tap._budget.free
        await tap.start()
        _, writer = await asyncio.open_connection("127.0.0.1", tap.port)
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
        await until(lambda: tap._budget.free < whole)
        writer.close()
        await asyncio.sleep(0.05)
        held.append(whole - tap._budget.free)
        go.set()
        await until(lambda: tap._budget.free == whole)
        await tap.stop()
        assert (held, told) == ([5], ["hello"])

    run(test)


def test_a_long_reply_is_kept_whole_though_its_client_goes_at_once() -> None:
    big = b"x" * 20_000_000

    async def test() -> None:
        async with running(Answering(lambda _: Outgoing(200, {}, big))) as at:
            async with at.post(data=b"{}", headers={"Connection": "close"}) as reply:
                assert len(await reply.read()) == len(big)
            await until(lambda: len(at.ended) == 1)
        assert (len(at.ended[0].reply), at.ended[0].cut) == (len(big), False)

    run(test)
