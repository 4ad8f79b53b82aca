"""Many transfers on one event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from io import BytesIO
from typing import Any

import pycurl
import pytest

from context_bench.http.loop import new_event_loop
from context_bench.http.multi import EpollMulti, open_multi
from servers import Server, completion, free_port, hang

pytestmark = pytest.mark.skipif(not hasattr(__import__("select"), "epoll"), reason="epoll is Linux's")


def run(work: Callable[[EpollMulti], Coroutine[Any, Any, Any]]) -> Any:
    async def main() -> Any:
        multi = open_multi()
        assert isinstance(multi, EpollMulti)
        try:
            return await asyncio.wait_for(work(multi), 30)
        finally:
            await multi.aclose()

    loop = new_event_loop()
    try:
        return loop.run_until_complete(main())
    finally:
        loop.close()


def transfer(url: str, timeout: float = 10.0) -> tuple[Any, BytesIO]:
    curl, body = pycurl.Curl(), BytesIO()
    for option, value in (
        (pycurl.URL, url),
        (pycurl.POSTFIELDS, b"{}"),
        (pycurl.NOPROXY, "*"),
        (pycurl.NOSIGNAL, 1),
        (pycurl.TIMEOUT_MS, int(timeout * 1000)),
        (pycurl.WRITEDATA, body),
    ):
        curl.setopt(option, value)
    return curl, body


def test_more_transfers_than_one_look_takes_in() -> None:
    with Server(completion("Paris")) as server:

        async def work(multi: EpollMulti) -> list[bytes]:
            pairs = [transfer(server.url + "/v1/chat/completions") for _ in range(400)]
            await asyncio.gather(*(multi.perform(curl) for curl, _ in pairs))
            return [body.getvalue() for _, body in pairs]

        bodies = run(work)
    assert len(bodies) == 400
    assert all(b"Paris" in body for body in bodies)


def test_nobody_there() -> None:
    async def work(multi: EpollMulti) -> None:
        curl, _ = transfer(f"http://127.0.0.1:{free_port()}/")
        with pytest.raises(pycurl.error) as caught:
            await multi.perform(curl)
        assert caught.value.args[0] == pycurl.E_COULDNT_CONNECT

    run(work)


def test_a_time_out_comes_in_time_beside_a_longer_one() -> None:
    with Server(hang(5)) as server:

        async def work(multi: EpollMulti) -> list[Any]:
            long, short = transfer(server.url, 0.6)[0], transfer(server.url, 0.2)[0]
            loop, moments = asyncio.get_running_loop(), []
            started = loop.time()

            async def one(curl: Any) -> None:
                with pytest.raises(pycurl.error):
                    await multi.perform(curl)
                moments.append(loop.time() - started)

            await asyncio.gather(one(long), one(short))
            return moments

        first, second = run(work)
    assert 0.15 < first < 0.5
    assert 0.5 < second < 2.0


def test_what_is_cancelled_is_taken_out_and_the_rest_goes_on() -> None:
    with Server(hang(5), completion("Paris")) as server:

        async def work(multi: EpollMulti) -> bytes:
            waiting = asyncio.ensure_future(multi.perform(transfer(server.url)[0]))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            curl, body = transfer(server.url + "/v1/chat/completions")
            await multi.perform(curl)
            return body.getvalue()

        assert b"Paris" in run(work)


def test_closing_ends_what_is_under_way() -> None:
    with Server(hang(5)) as server:

        async def work(multi: EpollMulti) -> None:
            waiting = asyncio.ensure_future(multi.perform(transfer(server.url)[0]))
            await asyncio.sleep(0.2)
            await multi.aclose()
            with pytest.raises(asyncio.CancelledError):
                await waiting

        async def main() -> None:
            await work(open_multi())

        loop = new_event_loop()
        loop.run_until_complete(asyncio.wait_for(main(), 10))
        loop.close()


def test_a_connection_that_is_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        async def work(multi: EpollMulti) -> None:
            async def reset() -> None:
                loop = asyncio.get_running_loop()
                listener.setblocking(False)
                peer, _ = await loop.sock_accept(listener)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                peer.close()

            resetting = asyncio.ensure_future(reset())
            with pytest.raises(pycurl.error):
                await multi.perform(transfer(f"http://127.0.0.1:{listener.getsockname()[1]}/")[0])
            await resetting

        run(work)
