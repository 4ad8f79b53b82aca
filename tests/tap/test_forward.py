"""Requests that go on to one upstream, over real sockets: nothing added, nothing lost, nowhere else."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from context_bench.errors import UsageError
from context_bench.tap.answering import Incoming, Outgoing
from context_bench.tap.forward import Forward, remove_marks
from context_bench.tap.server import Tap
from context_bench.traffic.calls import Call
from servers import Server, completion, cut, free_port, hang, message, raw, reply, stream

KEY = "sk-live-0123456789abcdef"


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 30))


def ask(forward: Forward, *requests: Incoming) -> list[Outgoing]:
    """The replies, their bodies read to the end."""

    async def work() -> list[Outgoing]:
        await forward.open()
        try:
            answers = []
            for request in requests:
                answer = await forward.answer(request)
                if not isinstance(answer.body, bytes):
                    answer.body = b"".join([chunk async for chunk in answer.body])
                answers.append(answer)
            return answers
        finally:
            await forward.close()

    return asyncio.run(asyncio.wait_for(work(), 30))


def post(body: bytes = b"{}", path: str = "/v1/chat/completions", query: str = "", **headers: str) -> Incoming:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Incoming("POST", path, query, {"content-type": "application/json", **named}, body)


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/"])
def test_the_request_goes_on_as_it_came(base: str) -> None:
    body = b'{ "z": 1.0,  "a": "\\u00e9\xc3\xa9", "big": 123456789012345678901234567890 }'
    with Server(completion("Paris", usage={"prompt_tokens": 3})) as server:
        request = post(body, query="beta=a%20b", authorization=f"Bearer {KEY}", x_own="1", user_agent="proxy/1")
        (answer,) = ask(Forward(server.url + base), request)
        (seen,) = server.chats
    assert (answer.status, json.loads(answer.body)["usage"]) == (200, {"prompt_tokens": 3})
    assert (seen.path, seen.body) == ("/v1/chat/completions?beta=a%20b", body)
    assert seen.headers.pop("host") == server.url.removeprefix("http://")
    assert seen.headers == {
        "content-type": "application/json",
        "authorization": f"Bearer {KEY}",
        "x-own": "1",
        "user-agent": "proxy/1",
        "accept-encoding": "identity",
        "content-length": str(len(body)),
    }


def test_a_base_may_have_a_path_of_its_own() -> None:
    with Server(completion()) as server:
        ask(Forward(server.url + "/api/v1"), post())
        assert server.chats[0].path == "/api/v1/chat/completions"


def test_headers_that_are_meant_for_one_hop_stay_there() -> None:
    extra = {
        "Connection": "close, x-hop",
        "X-Hop": "1",
        "Keep-Alive": "timeout=5",
        "X-Kept": "1",
        "Proxy-Authenticate": "a",
    }
    hop = {"connection": "x-secret-hop, keep-alive", "x_secret_hop": "1", "te": "trailers", "proxy_authorization": KEY}
    with Server(reply(headers=extra)) as server:
        (answer,) = ask(
            Forward(server.url),
            post(host="evil", accept_encoding="br", x_context_bench_mark="cb-0123456789abcdef01234567", **hop),
        )
        seen = server.chats[0].headers
    assert set(seen) == {"host", "content-type", "accept-encoding", "content-length"}
    assert seen["host"].startswith("127.0.0.1:")
    names = {name.lower() for name in answer.headers}
    assert "x-kept" in names
    assert not names & {"connection", "x-hop", "keep-alive", "proxy-authenticate", "content-length"}


@pytest.mark.parametrize(
    ("body", "passed"),
    [
        ('{"model":"m","user":"cb-0123456789abcdef01234567","n":1}', {"model": "m", "n": 1}),
        ('{"user":"cb-0123456789abcdef01234567"}', {}),
        ('{"metadata":{"user_id":"cb-0123456789abcdef01234567"},"n":1}', {"n": 1}),
        ('{"metadata":{"user_id":"cb-0123456789abcdef01234567","own":1},"n":1}', {"metadata": {"own": 1}, "n": 1}),
        (
            '{"user":"cb-0123456789abcdef01234567","metadata":{"user_id":"cb-0123456789abcdef01234567"}, '
            '"big":123456789012345678901234}',
            {"big": 123456789012345678901234},
        ),
        ('{"user":"cb-0123456789abcdef01234567","text":"\\ud800 é"}', {"text": "\ud800 é"}),
    ],
)
def test_marks_do_not_go_on(body: str, passed: dict[str, Any]) -> None:
    assert json.loads(remove_marks(body.encode())) == passed


@pytest.mark.parametrize(
    "body",
    [
        '{ "user" : "alice", "text": "cb-0123456789abcdef01234567" }',
        '{ "user": 5, "metadata": "cb-0123456789abcdef01234567" }',
        '{ "metadata": { "user_id": "me" }, "note": "cb-" }',
        '{ "messages": [{"user": "cb-0123456789abcdef01234567"}] }',
        '["cb-0123456789abcdef01234567", "user"]',
        "cb- no JSON",
        "[" * 100_000 + '"cb-"',
    ],
)
def test_a_body_without_a_mark_is_not_touched(body: str) -> None:
    assert remove_marks(body.encode()) == body.encode()


def test_a_large_body_goes_on_whole() -> None:
    body = b'{"text":"' + b"x" * (3 << 20) + b'"}'
    with Server(completion()) as server:
        ask(Forward(server.url), post(body))
        assert server.chats[0].body == body


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503, 529])
def test_errors_are_relayed_as_they_are(status: int) -> None:
    error = {"error": {"message": "wait", "type": "x", "param": None}}
    with Server(reply(status, error, headers={"Retry-After": "7", "X-Request-Id": "r1"})) as server:
        (answer,) = ask(Forward(server.url), post())
    assert (answer.status, json.loads(answer.body)) == (status, error)
    assert (answer.headers["Retry-After"], answer.headers["X-Request-Id"]) == ("7", "r1")


def test_redirects_are_relayed_and_not_followed() -> None:
    with Server(completion("elsewhere")) as other, Server(raw(b"", 307, {"Location": other.url})) as server:
        (answer,) = ask(Forward(server.url), post(authorization=KEY))
        assert (answer.status, answer.headers["Location"]) == (307, other.url)
        assert other.requests == []


def test_a_reply_comes_back_without_an_encoding() -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    with Server(raw(gzip.compress(b'{"a":1}'), headers=headers)) as server:
        (answer,) = ask(Forward(server.url), post())
    assert answer.body == b'{"a":1}'
    assert "Content-Encoding" not in answer.headers


def test_cookies_of_one_client_are_not_given_to_another() -> None:
    with Server(reply(headers={"Set-Cookie": "session=1; Path=/"})) as server:
        first, _ = ask(Forward(server.url), post(), post())
        assert first.headers["Set-Cookie"] == "session=1; Path=/"
        assert all("cookie" not in request.headers for request in server.chats)


def test_other_paths_and_methods_go_on_too() -> None:
    with Server() as server:
        (answer,) = ask(Forward(server.url), Incoming("GET", "/v1/models", "limit=2", {"x-api-key": KEY}, b""))
        (seen,) = server.requests
    assert (answer.status, answer.body) == (404, b"not found")
    assert (seen.method, seen.path, seen.headers["x-api-key"]) == ("GET", "/v1/models?limit=2", KEY)
    assert "content-length" not in seen.headers


@pytest.mark.parametrize("path", ["@evil.example/", ".evil.example/", ":80@evil.example/", "*", ""])
def test_what_is_no_path_goes_nowhere(path: str) -> None:
    with Server() as server:
        (answer,) = ask(Forward(server.url), post(path=path))
        assert answer.status == 400
        assert server.requests == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_dead_upstream_is_a_502_in_the_form_of_the_dialect(path: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    (answer,) = ask(Forward(url), post(path=path, authorization=f"Bearer {KEY}"))
    document = json.loads(answer.body)
    assert answer.status == 502
    assert document.get("type") == ("error" if path.endswith("messages") else None)
    assert document["error"]["type"]
    assert document["error"]["message"].startswith(f"{url} does not answer: ")
    assert KEY.encode() not in answer.body


def test_an_upstream_that_says_no_http_is_a_502() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        async def test() -> None:
            forward = Forward(f"http://127.0.0.1:{server.getsockname()[1]}")
            await forward.open()
            pending = asyncio.ensure_future(forward.answer(post()))
            connection, _ = await asyncio.to_thread(server.accept)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")
            assert (await pending).status == 502
            connection.close()
            await forward.close()

        run(test)


def test_a_switch_of_protocols_that_nobody_asked_for_is_a_502() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        async def test() -> None:
            forward = Forward(f"http://127.0.0.1:{server.getsockname()[1]}")
            await forward.open()
            pending = asyncio.ensure_future(forward.answer(post()))
            connection, _ = await asyncio.to_thread(server.accept)
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: own\r\nConnection: upgrade\r\n\r\nxyz")
            answer = await pending
            assert answer.status == 502
            assert isinstance(answer.body, bytes)
            assert "switched to another protocol" in json.loads(answer.body)["error"]["message"]
            assert await asyncio.to_thread(lambda: connection.recv(65536) and connection.recv(1)) == b""
            connection.close()
            await forward.close()

        run(test)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_slow_upstream_is_a_504(path: str) -> None:
    with Server(hang(20)) as server:
        (answer,) = ask(Forward(server.url, timeout=0.2), post(path=path))
    assert answer.status == 504
    assert json.loads(answer.body)["error"]["message"] == f"{server.url} did not answer within 0.2 s"


def test_a_reply_that_is_cut_short_is_a_502() -> None:
    with Server(cut(10)) as server:
        (answer,) = ask(Forward(server.url), post())
    assert answer.status == 502


@pytest.mark.parametrize(
    "url", ["ftp://x", "localhost:9000", "http://", "http://h?x=1", f"http://user:{KEY}@h", "http://h:x", "http://a b"]
)
def test_a_wrong_url_is_one_sentence_and_shows_no_password(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Forward(url)
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_its_fingerprint_is_its_upstream() -> None:
    assert Forward("https://api.openai.com/v1/").fingerprint == "forward https://api.openai.com"


def test_proxies_of_the_environment_are_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(completion("by the proxy")) as proxy, Server(completion("by itself")) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        (near,) = ask(Forward(server.url), post())
        (far,) = ask(Forward("http://upstream.invalid"), post())
        assert b"by itself" in near.body
        assert b"by the proxy" in far.body
        assert proxy.chats[0].path == "http://upstream.invalid/v1/chat/completions"


class Through:
    """A tap that forwards to a server, and a client."""

    def __init__(self, url: str) -> None:
        self.calls: list[Call] = []
        self.tap = Tap(Forward(url), on_end=lambda call, _: self.calls.append(call))

    async def __aenter__(self) -> Through:
        await self.tap.start()
        self.client = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.tap.stop()

    async def ended(self) -> Call:
        for _ in range(500):
            if self.calls:
                return self.calls[0]
            await asyncio.sleep(0.01)
        raise AssertionError("no call ended")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_stream_passes_through_as_it_comes(path: str) -> None:
    pieces, pause = [b"event: a\ndata: 1\n\n", "data: grüß\n\n".encode(), b"data: [DONE]\n\n"], 0.1

    async def test(server: Server) -> None:
        async with Through(server.url) as through:
            async with through.client.post(through.tap.url + path, data=b"{}") as answer:
                assert answer.headers["Content-Type"] == "text/event-stream"
                assert answer.headers["X-Own"] == "1"
                arrived = [(time.perf_counter(), chunk) async for chunk in answer.content.iter_any()]
            call = await through.ended()
        assert [chunk for _, chunk in arrived] == pieces
        assert all(later - earlier > pause / 2 for (earlier, _), (later, _) in pairwise(arrived))
        assert call.reply.encode() == b"".join(pieces)
        assert call.ended is not None

    with Server(stream(*pieces, pause=pause, headers={"X-Own": "1"})) as server:
        run(lambda: test(server))


def test_a_stream_that_breaks_is_relayed_as_broken() -> None:
    async def test(server: Server) -> None:
        async with Through(server.url) as through:
            got = b""
            async with through.client.post(through.tap.url + "/v1/messages", data=b"{}") as answer:
                try:
                    while True:
                        got += await answer.content.readany()
                        assert not answer.content.is_eof()  # else it would have ended
                except aiohttp.ClientPayloadError:
                    pass
            call = await through.ended()
        assert got == b"data: 1\n\ndata: 2\n\n"
        assert (call.reply.encode(), call.cut, call.status) == (got, True, 200)

    with Server(stream(b"data: 1\n\n", b"data: 2\n\n", pause=0.05, ended=False)) as server:
        run(lambda: test(server))


def test_a_client_that_goes_away_ends_the_request_upstream() -> None:
    gone = asyncio.Event()

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"9\r\ndata: 1\n\n\r\n")
        while await reader.read(100):
            pass
        gone.set()
        writer.close()

    async def test() -> None:
        server = await asyncio.start_server(upstream, "127.0.0.1", 0)
        async with server, Through(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as through:
            async with through.client.post(through.tap.url + "/v1/messages", data=b"{}") as answer:
                assert await answer.content.readany() == b"data: 1\n\n"
                answer.close()
            await asyncio.wait_for(gone.wait(), 5)
            call = await through.ended()
            assert (call.reply, call.cut) == ("data: 1\n\n", True)

    run(test)


@pytest.mark.parametrize(
    "line",
    [
        "POST http://evil.invalid/v1/messages HTTP/1.1",
        "POST //evil.invalid/v1/messages HTTP/1.1",
        "POST /\\evil.invalid/v1/messages HTTP/1.1",
        "POST /v1/messages HTTP/1.1",
    ],
)
def test_nothing_in_a_request_changes_where_it_goes(line: str) -> None:
    async def test(server: Server) -> None:
        async with Through(server.url) as through:
            reader, writer = await asyncio.open_connection("127.0.0.1", through.tap.port)
            more = "Host: 127.0.0.2:80\r\nX-Forwarded-Host: evil.invalid\r\nContent-Length: 2\r\nConnection: close"
            writer.write(f"{line}\r\n{more}\r\n\r\n{{}}".encode())
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")
            writer.close()
        (seen,) = server.chats
        assert seen.path.endswith("/v1/messages")
        assert seen.headers["host"] == f"127.0.0.1:{server.port}"

    with Server(message()) as server:
        run(lambda: test(server))


def test_a_mark_is_recorded_at_the_tap_and_not_seen_upstream() -> None:
    async def test(server: Server) -> None:
        body = b'{"model":"m","user":"cb-0123456789abcdef01234567"}'
        async with Through(server.url) as through:
            headers = {"X-Context-Bench-Mark": "cb-0123456789abcdef01234567"}
            async with through.client.post(through.tap.url + "/chat/completions", data=body, headers=headers) as answer:
                assert answer.status == 200
            call = await through.ended()
        assert call.body == body.decode()
        assert call.headers["x-context-bench-mark"] == "cb-0123456789abcdef01234567"
        assert server.chats[0].json == {"model": "m"}
        assert "x-context-bench-mark" not in server.chats[0].headers

    with Server(completion()) as server:
        run(lambda: test(server))


def test_taking_the_mark_out_of_a_long_body_leaves_the_event_loop_free() -> None:
    text = "The clerk counted the boxes in the hall.\n" * 500_000
    body = json.dumps({"messages": [{"role": "user", "content": text}], "user": "cb-" + "0" * 24}).encode()
    held = 0.0

    async def test(url: str) -> Outgoing:
        nonlocal held
        forward = Forward(url)
        await forward.open()
        task = asyncio.ensure_future(forward.answer(Incoming("POST", "/v1/chat/completions", "", {}, body)))
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0.001)
            held = max(held, time.thread_time() - before)
        await forward.close()
        return task.result()

    with Server(completion("Paris")) as server:
        assert asyncio.run(test(server.url)).status == 200
        assert server.chats[0].json == {"messages": [{"role": "user", "content": text}]}
    started = time.thread_time()
    remove_marks(body)
    assert held < (time.thread_time() - started) / 2, "the thread of the loop did the work itself"
