"""Many libcurl transfers on one event loop, driven through an epoll set of their own.

The loop watches one file descriptor instead of one for each connection, and whatever is ready is handled in one
go: at a high rate this costs a third of a watcher for each socket. `open_multi` gives pycurl's own asyncio multi
where there is no epoll.
"""

from __future__ import annotations

import asyncio
import select
from typing import Any

import pycurl

__all__ = ["EpollMulti", "open_multi"]

_IN, _OUT, _ONCE = (getattr(select, name, 0) for name in ("EPOLLIN", "EPOLLOUT", "EPOLLONESHOT"))
_MASKS = {pycurl.POLL_IN: _IN | _ONCE, pycurl.POLL_OUT: _OUT | _ONCE, pycurl.POLL_INOUT: _IN | _OUT | _ONCE}
_SIGNALS = {_IN: pycurl.CSELECT_IN, _OUT: pycurl.CSELECT_OUT}
"""What is ready, as libcurl is told it; with 0, as for a connection that broke, it looks for itself."""

_BATCH = 64


def open_multi() -> Any:
    """Something with `setopt`, `add_handle(curl)`, `remove_handle(curl)` and `aclose()`, for the running event loop."""
    return EpollMulti(asyncio.get_running_loop()) if hasattr(select, "epoll") else pycurl.AsyncCurlMulti()


class EpollMulti:
    """Transfers on a loop; it belongs to that loop.

    libcurl lets go of a socket after each transfer and takes it up again for the next. It stays in the epoll set
    meanwhile, which halves the calls of the kernel: it tells of one event and is silent until it is armed again.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._multi = pycurl.CurlMulti()
        self._epoll = select.epoll()
        self._watched: dict[int, int] = {}
        self._waiting: dict[Any, asyncio.Future[None]] = {}
        self._soon: asyncio.Handle | None = None
        self._later: asyncio.TimerHandle | None = None
        self._due = 0.0
        self.setopt = self._multi.setopt
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        loop.add_reader(self._epoll.fileno(), self._ready)

    def add_handle(self, curl: Any) -> asyncio.Future[None]:
        """Start one transfer; the future ends with it, in a pycurl.error when it fails."""
        self._multi.add_handle(curl)
        done = self._waiting[curl] = self._loop.create_future()
        self._act_soon()
        return done

    def remove_handle(self, curl: Any) -> None:
        """Give up a transfer; nothing happens to one that has ended."""
        done = self._waiting.pop(curl, None)
        if done is not None:
            self._multi.remove_handle(curl)
            done.cancel()

    def _act_soon(self) -> None:
        """All that is added in one turn of the loop is started together."""
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
        except pycurl.error as error:  # the multi itself is broken: nothing on it will come to an end
            for curl in list(self._waiting):
                self._finish(curl, error)

    def _take_finished(self) -> None:
        left = 1
        while left:
            left, good, bad = self._multi.info_read()
            for curl in good:
                self._finish(curl, None)
            for curl, code, message in bad:
                self._finish(curl, pycurl.error(code, message))

    def _finish(self, curl: Any, error: pycurl.error | None) -> None:
        self._multi.remove_handle(curl)
        done = self._waiting.pop(curl)
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def _watch(self, what: int, fd: int, _multi: Any, _state: Any) -> None:
        """libcurl says what it waits for on a socket."""
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
        except OSError:  # nobody can watch it: libcurl's own time-out ends its transfer, and no other suffers
            self._watched.pop(fd, None)

    def _set_timer(self, milliseconds: int) -> None:
        """When libcurl wants to be called at the latest; the one timer is set again only if it is too late."""
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
        if self._loop.time() < self._due - 0.001:  # it was put off meanwhile
            self._wait()
        else:
            self._start()

    async def aclose(self) -> None:
        """Take out what is under way, and close every connection."""
        self._loop.remove_reader(self._epoll.fileno())
        for handle in (self._soon, self._later):
            if handle is not None:
                handle.cancel()
        for curl in list(self._waiting):
            self.remove_handle(curl)
        self._multi.close()
        self._epoll.close()
