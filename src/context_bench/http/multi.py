"""Many libcurl transfers on one event loop, driven through a separate epoll set.

The loop watches one file descriptor instead of one per connection, and handles all ready sockets at once: at a high
rate, this costs a third as much as one watcher per socket. Without epoll, `open_multi` returns pycurl's own asyncio
multi.

A program that keeps the loop busy must not look like a slow server. So this module handles timeouts, not libcurl: they
exclude the time in which the loop was blocked, and data that has arrived is read first. The kernel then reports when
the reply was complete.
"""

from __future__ import annotations

import asyncio
import math
import select
import socket
import sys
from dataclasses import dataclass
from time import monotonic
from typing import Any

import pycurl

_IN, _OUT, _ONCE = (getattr(select, name, 0) for name in ("EPOLLIN", "EPOLLOUT", "EPOLLONESHOT"))
_MASKS = {pycurl.POLL_IN: _IN | _ONCE, pycurl.POLL_OUT: _OUT | _ONCE, pycurl.POLL_INOUT: _IN | _OUT | _ONCE}
_SIGNALS = {_IN: pycurl.CSELECT_IN, _OUT: pycurl.CSELECT_OUT}
"""epoll events in libcurl's terms; for 0, such as a broken connection, libcurl checks the socket itself."""

_BATCH = 64

_TICK_SECONDS = 0.025  # seconds between two checks of the clock while transfers run; a timeout is late by at most this

_LAST_RECEIVED = slice(52, 56)  # where Linux' `struct tcp_info` has the milliseconds since the last byte was received


@dataclass(slots=True)
class _Transfer:
    """One transfer in flight. Its limits are times of a clock that stops while the loop is blocked."""

    done: asyncio.Future[float]
    connect_by: float
    end_by: float


def open_multi() -> Any:
    """Open an EpollMulti for the running event loop, or pycurl's own multi without epoll."""
    return EpollMulti(asyncio.get_running_loop()) if hasattr(select, "epoll") else PortableMulti()


class PortableMulti(pycurl.AsyncCurlMulti):  # type: ignore[misc]
    """EpollMulti's interface on pycurl's own multi: timeouts are libcurl's, so a blocked loop looks like a slow
    server."""

    held = 0.0

    async def add_handle(self, curl: Any, timeout: float = math.inf, connect_timeout: float = math.inf) -> float:
        """Make one transfer and return the time of its end; raise pycurl.error if it fails."""
        for option, seconds in ((pycurl.TIMEOUT_MS, timeout), (pycurl.CONNECTTIMEOUT_MS, connect_timeout)):
            if seconds < math.inf:
                curl.setopt(option, max(1, int(seconds * 1000)))
        await super().add_handle(curl)
        return monotonic()


class EpollMulti:
    """Runs transfers on one loop. `held` is the seconds in which the loop could not listen. libcurl releases a socket
    after each transfer and takes it again for the next. In between, the socket stays in the epoll set, armed for one
    event at a time; this halves the system calls.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._multi = pycurl.CurlMulti()
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}
        self._waiting: dict[Any, _Transfer] = {}
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._beat: asyncio.TimerHandle | None = None
        self._listened = 0.0
        self.held = 0.0
        self.setopt = self._multi.setopt
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        loop.add_reader(self._epoll.fileno(), self._ready)

    def add_handle(
        self, curl: Any, timeout: float = math.inf, connect_timeout: float = math.inf
    ) -> asyncio.Future[float]:
        """Start one transfer; the future gets the time at which the last byte arrived, or a pycurl.error."""
        self._multi.add_handle(curl)
        if self._beat is None:
            self._listened = monotonic()
            self._beat = self._loop.call_later(_TICK_SECONDS, self._look_at_clock)
        now = monotonic() - self.held
        done: asyncio.Future[float] = self._loop.create_future()
        self._waiting[curl] = _Transfer(done, now + connect_timeout, now + timeout)
        self._act_soon()
        return done

    def remove_handle(self, curl: Any) -> None:
        """Abandon a transfer; a finished one is unaffected."""
        transfer = self._waiting.pop(curl, None)
        if transfer is not None:
            self._multi.remove_handle(curl)
            transfer.done.cancel()

    def _look_at_clock(self) -> None:
        """End the transfers whose time is up; after a blocked loop, first read the data that has arrived."""
        self._beat = None
        if monotonic() - self._listened > 2 * _TICK_SECONDS:
            for _ in range(1 + len(self._waiting) // _BATCH):
                self._act(self._epoll.poll(0, _BATCH))
            self.held += monotonic() - self._listened - _TICK_SECONDS
        self._listened = monotonic()
        now = self._listened - self.held
        for curl, transfer in list(self._waiting.items()):
            if now >= transfer.end_by or (now >= transfer.connect_by and not self._has_connected(curl, transfer)):
                self._finish(curl, pycurl.error(pycurl.E_OPERATION_TIMEDOUT, "time-out"))
        if self._waiting:
            self._beat = self._loop.call_later(_TICK_SECONDS, self._look_at_clock)

    @staticmethod
    def _has_connected(curl: Any, transfer: _Transfer) -> bool:
        if not curl.getinfo(pycurl.REQUEST_SIZE):
            return False
        transfer.connect_by = math.inf
        return True

    def _act_soon(self) -> None:
        """Start all transfers that were added in one turn of the loop together."""
        if self._soon is None:
            self._soon = self._loop.call_soon(self._start)

    def _start(self) -> None:
        self._soon = None
        self._act([(pycurl.SOCKET_TIMEOUT, 0)])

    def _ready(self) -> None:
        self._act(self._epoll.poll(0, _BATCH))

    def _act(self, ready: list[tuple[int, int]]) -> None:
        try:
            for fd, events in ready:
                self._multi.socket_action(fd, _SIGNALS.get(events, 0))
                if fd in self._watched:
                    self._arm(fd, self._watched[fd])
            self._take_finished()
            self._set_timer(self._multi.timeout())
        except pycurl.error as error:  # the multi itself is broken: none of its transfers will end
            for curl in list(self._waiting):
                self._finish(curl, error)

    def _take_finished(self) -> None:
        left = 1
        while left:
            left, good, bad = self._multi.info_read()
            now = monotonic()
            held = now - self._listened > 2 * _TICK_SECONDS
            for curl in good:
                self._finish(curl, None, now - _read_silence(curl) if held else now)
            for curl, code, message in bad:
                self._finish(curl, pycurl.error(code, message))

    def _finish(self, curl: Any, error: pycurl.error | None, moment: float = 0.0) -> None:
        self._multi.remove_handle(curl)
        done = self._waiting.pop(curl).done
        if done.done():
            return
        if error is None:
            done.set_result(moment)
        else:
            done.set_exception(error)

    def _watch(self, what: int, fd: int, _multi: Any, _state: Any) -> None:
        """Handle libcurl's request to watch a socket."""
        mask = _MASKS.get(what)
        if mask is None:
            self._watched.pop(fd, None)
        else:
            self._watched[fd] = mask
            self._arm(fd, mask)

    def _arm(self, fd: int, mask: int) -> None:
        try:
            try:
                self._epoll.modify(fd, mask)
            except FileNotFoundError:  # a new one; the kernel forgot an earlier one of that number when it was closed
                self._epoll.register(fd, mask)
        except OSError:  # it cannot be watched: libcurl's own timeout ends this transfer, and no other is affected
            self._watched.pop(fd, None)

    def _set_timer(self, milliseconds: int) -> None:
        """Set the time by which libcurl must be called; the timer is moved only if it would fire too late."""
        if milliseconds == 0:
            self._act_soon()
        elif milliseconds > 0:
            self._due = self._loop.time() + milliseconds / 1000
            if self._later is None or self._later.when() > self._due:
                self._wait()

    def _wait(self) -> None:
        if self._later is not None:
            self._later.cancel()
        self._later = self._loop.call_at(self._due, self._wake)

    def _wake(self) -> None:
        self._later = None
        if self._loop.time() < self._due - 0.001:  # it was postponed
            self._wait()
        else:
            self._start()

    async def aclose(self) -> None:
        """Cancel running transfers and close every connection."""
        self._loop.remove_reader(self._epoll.fileno())
        for handle in (self._soon, self._later, self._beat):
            if handle is not None:
                handle.cancel()
        for curl in list(self._waiting):
            self.remove_handle(curl)
        self._multi.close()
        self._epoll.close()


def _read_silence(curl: Any) -> float:
    """Ask the kernel how many seconds ago the last byte of a transfer arrived; 0 if unknown."""
    number = curl.getinfo(pycurl.ACTIVESOCKET)
    try:
        sock = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, 0, number)
        try:
            info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_RECEIVED.stop)
        finally:
            sock.detach()  # it is libcurl's to close
    except (OSError, AttributeError, ValueError):  # ValueError: the connection is closed already
        return 0.0
    return int.from_bytes(info[_LAST_RECEIVED], sys.byteorder) / 1000
