"""One request, one reply, over real connections."""

from __future__ import annotations

import asyncio
import gc
import gzip
import select
import socket
import sys
import time
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from context_bench.errors import ConnectionFailed, RequestFailed, TimedOut
from context_bench.http import transport as module
from context_bench.http.transport import Transport, get_shared_transport, leave_shared_transport
from servers import Server, completion, cut, free_port, hang, raw, reply
from timing import depends_on_time


@pytest.fixture(params=["epoll", "pycurl's own"])
def _multi(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over both ways to drive transfers: one is Linux's alone."""
    if request.param != "epoll":
        monkeypatch.delattr(select, "epoll", raising=False)
    elif not hasattr(select, "epoll"):
        pytest.skip("epoll is Linux's")


both = pytest.mark.usefixtures("_multi")


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 20))


def post(url: str, body: bytes = b"{}", times: int = 1, **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        transport = Transport()
        try:
            return [await transport.request("POST", url, body=body, **options) for _ in range(times)]
        finally:
            await transport.aclose()

    replies: list[Any] = run(main())
    return replies


@both
def test_what_is_sent_and_what_comes_back() -> None:
    with Server(raw(b"\x00\xffbytes", 418, {"X-Thing": "one", "x-thing": "two"})) as server:
        (got,) = post(f"{server.url}/a/b?c=d", b"\x00body\xff", headers=["X-Mine: yes"])
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/a/b?c=d", b"\x00body\xff")
    assert request.headers["x-mine"] == "yes"
    assert (got.status, got.body) == (418, b"\x00\xffbytes")
    assert got.header("X-THING") == "two"
    assert got.header("absent") is None
    assert 0 < got.seconds < 5


@both
def test_connections_are_kept() -> None:
    async def main() -> None:
        transport = Transport()
        for _ in range(5):
            await transport.request("POST", server.url, body=b"{}")
        await transport.aclose()

    with Server() as server:
        opened: list[Any] = []
        original = server.opened
        server.opened = lambda connection: (opened.append(connection), original(connection))[1]  # type: ignore[method-assign]
        run(main())
    assert len(server.chats) == 5
    assert len(opened) == 1


@both
def test_an_idle_connection_keeps_neither_what_was_sent_nor_what_came_back() -> None:
    large = b'"' + b"x" * 2_000_000 + b'"'

    def find_kept(transport: Transport) -> list[int]:
        """Find the sizes of the large texts that the transport can still reach."""
        seen, left, sizes = set(), [transport], []
        while left:
            each: Any = left.pop()
            if id(each) in seen or isinstance(each, type) or callable(each):
                continue
            seen.add(id(each))
            if isinstance(each, bytes | str) and len(each) > 100_000:
                sizes.append(len(each))
            left += gc.get_referents(each)
        return sizes

    async def work(url: str) -> list[int]:
        transport = Transport()
        try:
            replies = [await transport.request("POST", url, (), large) for _ in range(2)]
            assert [(reply.status, len(reply.body)) for reply in replies] == [(200, len(large))] * 2
            del replies
            return find_kept(transport)
        finally:
            await transport.aclose()

    with Server(lambda _: raw(large)) as server:
        assert run(work(server.url)) == []


@both
def test_a_get_after_a_post_is_a_get() -> None:
    async def main() -> None:
        transport = Transport()
        await transport.request("POST", server.url, body=b"{}")
        await transport.request("GET", server.url)
        await transport.request("POST", server.url, body=b"[]")
        await transport.aclose()

    with Server() as server:
        run(main())
    assert [(each.method, each.body) for each in server.requests] == [("POST", b"{}"), ("GET", b""), ("POST", b"[]")]


@both
def test_headers_are_those_of_one_request() -> None:
    async def main() -> None:
        transport = Transport()
        for headers in (["X-Mine: one"], [], ["X-Other: two"], []):
            await transport.request("POST", server.url, headers, b"{}")
        await transport.aclose()

    with Server() as server:
        run(main())
    sent = [(each.headers.get("x-mine"), each.headers.get("x-other")) for each in server.chats]
    assert sent == [("one", None), (None, None), (None, "two"), (None, None)]


@both
def test_a_compressed_reply_is_unpacked() -> None:
    with Server(raw(gzip.compress(b"plain"), headers={"Content-Encoding": "gzip"})) as server:
        assert post(server.url)[0].body == b"plain"


@both
def test_a_large_body_is_sent_without_asking_first() -> None:
    body = b"x" * 3_000_000
    with Server() as server:
        post(server.url, body, headers=["Expect:"])
    assert server.requests[0].body == body
    assert "expect" not in server.requests[0].headers


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with Server() as elsewhere, Server(raw(b"", status, {"Location": elsewhere.url})) as server:
        (got,) = post(server.url, headers=["Authorization: Bearer secret"])
    assert got.status == status
    assert elsewhere.requests == []


@both
def test_nobody_listens() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    before = time.monotonic()
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1"):
        post(url)
    assert time.monotonic() - before < 30


@both
def test_no_such_host() -> None:
    with pytest.raises(ConnectionFailed, match=r"nowhere\.invalid"):
        post("http://nowhere.invalid", timeout=5)


@both
def test_an_address_that_never_answers_is_a_failed_connection() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        address = deaf.getsockname()
        fillers = []
        for _ in range(3):  # fill the queue, so that the next one hears nothing
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(address)
            fillers.append(filler)
        try:
            with pytest.raises(ConnectionFailed):
                post(f"http://127.0.0.1:{address[1]}", timeout=0.5)
        finally:
            for filler in fillers:
                filler.close()


@both
@pytest.mark.parametrize("after", [0, 10])
def test_a_connection_that_is_cut(after: int) -> None:
    with Server(cut(after)) as server, pytest.raises(ConnectionFailed):
        post(server.url)


@both
def test_something_that_does_not_speak_http() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]

        async def main() -> None:
            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.read(10)
                writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
                await writer.drain()
                writer.close()

            server = await asyncio.start_server(talk, sock=listener.dup())
            transport = Transport()
            try:
                with pytest.raises(RequestFailed):
                    await transport.request("POST", f"http://127.0.0.1:{port}", body=b"{}", timeout=5)
            finally:
                await transport.aclose()
                server.close()
                await server.wait_closed()

        run(main())


@depends_on_time("a time-out is a promise about the clock on the wall")
@both
def test_no_answer_in_time() -> None:
    with Server(hang(5)) as server:
        before = time.monotonic()
        with pytest.raises(TimedOut, match=r"within 0\.2 s"):
            post(server.url, timeout=0.2)
        assert time.monotonic() - before < 4.8  # the answer would take five


@both
def test_a_reply_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BODY", 2**20)
    with Server(raw(b"x" * (2**20 + 1))) as server, pytest.raises(RequestFailed, match="larger than 1 MB"):
        post(server.url)


@both
def test_after_a_failure_the_transport_still_works() -> None:
    async def main() -> int:
        transport = Transport()
        for url in (f"http://127.0.0.1:{free_port()}", server.url):
            with pytest.raises(ConnectionFailed):
                await transport.request("POST", url, body=b"{}")
        got = await transport.request("POST", server.url, body=b"{}")
        await transport.aclose()
        return int(got.status)

    with Server(cut(), reply(201)) as server:
        assert run(main()) == 201


@both
def test_a_request_that_is_given_up_leaves_the_others_alone() -> None:
    async def main() -> list[int]:
        transport = Transport()
        slow = asyncio.create_task(transport.request("POST", server.url, body=b"{}"))
        await asyncio.sleep(0.05)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        replies = await asyncio.gather(*(transport.request("POST", server.url, body=b"{}") for _ in range(5)))
        await transport.aclose()
        return [each.status for each in replies]

    with Server(hang(5), completion()) as server:
        assert run(main()) == [200] * 5


@both
def test_many_at_once() -> None:
    async def main() -> set[int]:
        transport = Transport()
        replies = await asyncio.gather(*(transport.request("POST", server.url, body=b"{}") for _ in range(100)))
        await transport.aclose()
        return {each.status for each in replies}

    with Server(completion(delay=1.0)) as server:
        assert run(main()) == {200}
    assert len(server.chats) == 100
    assert server.most_in_flight > 30


@depends_on_time("closing must be quicker than the answer, by the clock on the wall")
@both
def test_closing_ends_what_is_in_flight() -> None:
    async def main() -> None:
        transport = Transport()
        waiting = asyncio.ensure_future(transport.request("POST", server.url, body=b"{}"))
        while not server.chats:
            await asyncio.sleep(0.005)
        await transport.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    with Server(hang(5)) as server:
        before = time.monotonic()
        run(main())
        assert time.monotonic() - before < 4.8  # the answer would take five


@both
def test_when_each_chunk_came() -> None:
    with Server(completion()) as server:
        (got,) = post(server.url, timed=True)
    assert b"".join(part for _, part in got.chunks) == got.body
    assert all(0 <= moment <= got.seconds + 0.1 for moment, _ in got.chunks)


@both
def test_the_transport_of_a_loop_that_was_closed_is_forgotten() -> None:
    async def use() -> weakref.ref[asyncio.AbstractEventLoop]:
        await get_shared_transport().request("POST", server.url, body=b"{}")
        return weakref.ref(asyncio.get_running_loop())

    async def leave() -> None:
        get_shared_transport()
        await leave_shared_transport()

    with Server(completion()) as server:
        loop = run(use())
        run(leave())
    gc.collect()
    assert loop() is None


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    with Server(completion()) as server:
        assert post(server.url)[0].status == 200


# --- a loop that is held up


def _hold_loop(timeout: float, hold: float, *, delay: float, requests: int = 5) -> list[float]:
    """Seconds of requests to a server that takes `delay`, while something else keeps the event loop busy."""

    async def main() -> list[float]:
        transport = Transport()
        try:
            await transport.request("POST", server.url, body=b"{}", timeout=timeout)
            sent = [
                asyncio.ensure_future(transport.request("POST", server.url, body=b"{}", timeout=timeout))
                for _ in range(requests)
            ]
            await asyncio.sleep(0.15)  # they are on their way
            time.sleep(hold)
            return [reply.seconds for reply in await asyncio.gather(*sent)]
        finally:
            await transport.aclose()

    with Server(completion("first"), completion("Paris", delay=delay)) as server:
        return asyncio.run(main())


@depends_on_time("a time-out is a promise about the clock on the wall")
def test_a_reply_that_came_in_time_is_no_time_out_when_the_loop_was_held_up() -> None:
    assert len(_hold_loop(1.0, 2.0, delay=0.3)) == 5


@depends_on_time("latency is what the clock on the wall says")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when the last byte came")
def test_the_seconds_of_a_reply_end_with_its_last_byte_not_with_our_attention() -> None:
    seconds = _hold_loop(10.0, 2.0, delay=0.3)
    assert all(0.25 < each < 1.5 for each in seconds), seconds


@depends_on_time("a time-out is a promise about the clock on the wall")
def test_a_server_that_is_too_slow_is_a_time_out_also_when_the_loop_was_held_up() -> None:
    started = time.monotonic()
    with pytest.raises(TimedOut):
        _hold_loop(0.5, 1.0, delay=4.0, requests=1)
    assert time.monotonic() - started < 4.0
