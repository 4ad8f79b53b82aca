"""Many transfers on one event loop."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from io import BytesIO
from typing import Any

import pycurl
import pytest

from context_bench.http.loop import new_event_loop
from context_bench.http.multi import EpollMulti, open_multi
from servers import Server, completion, free_port, hang
from timing import depends_on_time

pytestmark = pytest.mark.skipif(not hasattr(select, "epoll"), reason="epoll is Linux's")


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


def test_where_there_is_no_epoll_it_is_pycurls_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "epoll")

    async def main() -> None:
        multi = open_multi()
        assert isinstance(multi, pycurl.AsyncCurlMulti)
        await multi.aclose()

    asyncio.run(main())


def test_more_transfers_than_one_look_takes_in() -> None:
    with Server(completion("Paris")) as server:

        async def work(multi: EpollMulti) -> list[bytes]:
            pairs = [transfer(server.url + "/v1/chat/completions") for _ in range(400)]
            await asyncio.gather(*(multi.add_handle(curl) for curl, _ in pairs))
            return [body.getvalue() for _, body in pairs]

        bodies = run(work)
    assert len(bodies) == 400
    assert all(b"Paris" in body for body in bodies)


def test_nobody_there() -> None:
    async def work(multi: EpollMulti) -> None:
        curl, _ = transfer(f"http://127.0.0.1:{free_port()}/")
        with pytest.raises(pycurl.error) as caught:
            await multi.add_handle(curl)
        assert caught.value.args[0] == pycurl.E_COULDNT_CONNECT

    run(work)


@depends_on_time("time-outs end in the order and at the moments of the clock on the wall")
def test_a_time_out_comes_in_time_beside_a_longer_one() -> None:
    with Server(hang(5)) as server:

        async def work(multi: EpollMulti) -> list[Any]:
            long, short = transfer(server.url, 0.6)[0], transfer(server.url, 0.2)[0]
            loop, moments = asyncio.get_running_loop(), []
            started = loop.time()

            async def one(curl: Any) -> None:
                with pytest.raises(pycurl.error):
                    await multi.add_handle(curl)
                moments.append(loop.time() - started)

            await asyncio.gather(one(long), one(short))
            return moments

        first, second = run(work)
    assert 0.15 < first < 0.5
    assert 0.5 < second < 2.0


def test_what_is_cancelled_is_taken_out_and_the_rest_goes_on() -> None:
    with Server(hang(5), completion("Paris")) as server:

        async def work(multi: EpollMulti) -> bytes:
            given_up = transfer(server.url)[0]
            waiting = multi.add_handle(given_up)
            await asyncio.sleep(0.2)
            multi.remove_handle(given_up)
            with pytest.raises(asyncio.CancelledError):
                await waiting
            multi.remove_handle(given_up)
            curl, body = transfer(server.url + "/v1/chat/completions")
            await multi.add_handle(curl)
            return body.getvalue()

        assert b"Paris" in run(work)


def test_closing_ends_what_is_under_way() -> None:
    with Server(hang(5)) as server:

        async def work(multi: EpollMulti) -> None:
            waiting = multi.add_handle(transfer(server.url)[0])
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
                await multi.add_handle(transfer(f"http://127.0.0.1:{listener.getsockname()[1]}/")[0])
            await resetting

        run(work)


# A socket stays in the epoll set between two transfers


class Answering:
    """A server that answers "Paris" in pieces and may hang up 0.1 s later."""

    def __init__(self, pieces: int = 1, hangs_up: bool = False) -> None:
        self.pieces, self.hangs_up = pieces, hangs_up
        self.connections: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"

    def __enter__(self) -> Answering:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self.connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listener, *self.connections):
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self.connections.append(self._listener.accept()[0])
                self._threads.append(threading.Thread(target=self._talk, args=self.connections[-1:]))
                self._threads[-1].start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(ConnectionResetError, BrokenPipeError):
            while connection.recv(65536):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (5 * self.pieces))
                for _ in range(self.pieces):
                    connection.sendall(b"Paris")
                    time.sleep(0.02)
                if self.hangs_up:
                    time.sleep(0.1)
                    connection.shutdown(socket.SHUT_RDWR)


class Client:
    """Reads replies, and keeps the number of each socket that is opened for it."""

    def __init__(self, multi: EpollMulti, url: str) -> None:
        self.multi, self.url, self.opened = multi, url, list[int]()

    async def read(self, *options: tuple[int, Any]) -> bytes:
        curl, body = transfer(self.url, 3)
        for option, value in ((pycurl.SOCKOPTFUNCTION, self._note), *options):
            curl.setopt(option, value)
        await self.multi.add_handle(curl)
        return body.getvalue()

    def _note(self, number: int, _purpose: int) -> int:
        self.opened.append(number)
        return int(pycurl.SOCKOPT_OK)


async def assert_idle() -> None:
    before = time.process_time()
    await asyncio.sleep(0.4)
    assert time.process_time() - before < 0.1


def test_a_reply_in_many_pieces_comes_whole() -> None:
    async def work(multi: EpollMulti) -> None:
        with Answering(pieces=20) as server:
            client = Client(multi, server.url)
            for _ in range(2):
                assert await client.read() == b"Paris" * 20
            assert len(client.opened) == 1

    run(work)


def test_a_server_that_hangs_up_between_transfers_keeps_nobody_busy() -> None:
    async def work(multi: EpollMulti) -> None:
        with Answering(hangs_up=True) as server:
            client = Client(multi, server.url)
            for _ in range(3):
                assert await client.read() == b"Paris"
                await assert_idle()
            assert len(client.opened) == 3
            assert len(set(client.opened)) < 3  # a number came back

    run(work)


def test_the_number_of_a_closed_socket_serves_another_purpose() -> None:
    async def work(multi: EpollMulti) -> None:
        with Answering() as server:
            client = Client(multi, server.url)
            await client.read()
            await client.read((pycurl.FORBID_REUSE, 1))  # over the same connection, which is closed at the end
            ends = os.pipe()
            assert client.opened[0] in ends
            os.write(ends[1], b"nothing for libcurl")
            await assert_idle()
            assert await client.read() == b"Paris"
            for end in ends:
                os.close(end)
            assert await client.read((pycurl.FRESH_CONNECT, 1)) == b"Paris"
            first, _, third = client.opened
            assert first == third

    run(work)


def test_a_connection_that_somebody_else_holds_open_keeps_nobody_busy() -> None:
    """As a forked process does: the kernel then goes on to watch what libcurl has closed."""

    async def work(multi: EpollMulti) -> None:
        with Answering() as server:
            client = Client(multi, server.url)
            await client.read()
            held = os.dup(client.opened[0])
            await client.read((pycurl.FORBID_REUSE, 1))
            assert await client.read() == b"Paris"
            server.connections[0].sendall(b"an unwanted word")
            await assert_idle()
            assert await client.read() == b"Paris"
            os.close(held)
            first, second = client.opened
            assert first == second

    run(work)


def test_a_socket_that_cannot_be_watched_any_more_ends_its_own_transfer_alone() -> None:
    """In the middle of a reply its number comes to stand for something that epoll refuses."""

    async def work(multi: EpollMulti) -> None:
        with Answering(pieces=20) as server, open(os.devnull) as nothing:
            client, others = Client(multi, server.url), Client(multi, server.url)
            heard, complaints = list[bytes](), list[Any]()
            asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

            def replace(*_: float) -> None:  # libcurl calls it when it has read what there was
                if len(heard) == 1:
                    os.dup2(nothing.fileno(), client.opened[0])
                    heard.append(b"no more")

            async def read() -> None:
                options = ((pycurl.NOPROGRESS, 0), (pycurl.XFERINFOFUNCTION, replace), (pycurl.TIMEOUT_MS, 1000))
                await client.read((pycurl.WRITEFUNCTION, heard.append), *options)

            lost, *whole = await asyncio.gather(read(), others.read(), others.read(), return_exceptions=True)
            assert isinstance(lost, pycurl.error)
            assert heard[1:] == [b"no more"]
            assert complaints == [], "whatever else was ready was seen to"
            assert [*whole, await others.read()] == [b"Paris" * 20] * 3

    run(work)
