"""One request, one reply, over pooled keep-alive connections (libcurl).

Redirects are not followed, so a key reaches only the host that it was given for. Time and size are limited. Failed
requests are not retried. A transport belongs to the event loop that first used it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from time import monotonic
from typing import Any

import pycurl

from context_bench.errors import ConnectionFailed, LocalShortage, RequestFailed, TimedOut
from context_bench.http.multi import open_multi
from context_bench.http.open_files import SHORTAGES, connection_limit, is_out_of_files, warn_of_few_files
from context_bench.text.masking import mask_text

MAX_BODY = 64 * 1024 * 1024
CONNECT_SECONDS = 10.0
_UPLOAD_BYTES = 524_288
"""Bytes handed to the kernel in one call, so that a long context does not take many calls of 64 KB."""

_TIMEOUTS = {pycurl.E_OPERATION_TIMEDOUT}
_TOO_LARGE = {pycurl.E_WRITE_ERROR, pycurl.E_FILESIZE_EXCEEDED}


@dataclass(slots=True)
class Reply:
    """A raw reply: status, body, raw headers, and the seconds from the request to the last byte.

    `queued` is the seconds before that in which the request waited for a free connection, `arrived` the time of the
    last byte by `time.monotonic`, and `held` the seconds in which our event loop was blocked.
    """

    status: int
    body: bytes
    raw_headers: bytes
    seconds: float
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    queued: float = 0.0
    arrived: float = 0.0
    held: float = 0.0

    def header(self, name: str) -> str | None:
        """Return a header by name, ignoring case; the last one if it is repeated."""
        wanted, found = name.lower().encode() + b":", None
        for line in self.raw_headers.split(b"\r\n"):
            if line[: len(wanted)].lower() == wanted:
                found = line[len(wanted) :].strip().decode("latin-1")
        return found


class Transport:
    """Connections to any number of hosts; by default, as many at once as the limit of open files allows."""

    def __init__(self, max_connections: int | None = None) -> None:
        self._multi: Any = None
        self._idle: list[_Handle] = []
        self._max_connections = max_connections
        self._free = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self.runs = 0

    async def request(
        self,
        method: str,
        url: str,
        headers: Sequence[str] = (),
        body: bytes | None = None,
        timeout: float = 30.0,
        *,
        timed: bool = False,
    ) -> Reply:
        """Send one request and wait for its whole reply; `timed` also keeps when each chunk came."""
        multi = self._multi or self._open()
        held = multi.held
        queued = 0.0 if self._free > 0 else await self._wait_for_room()
        self._free -= 1
        try:
            handle = self._idle.pop() if self._idle else _Handle()
            handle.prepare(method, url, headers, body, timed)
            arrived = await multi.add_handle(handle.curl, timeout, min(timeout, CONNECT_SECONDS))
        except pycurl.error as error:
            failure = _failure(error, url, timeout, handle)
            failure.held = multi.held - held
            _drop(handle.curl, multi)
            raise failure from None
        except asyncio.CancelledError:
            _drop(handle.curl, multi)
            raise
        finally:
            self._leave_room()
        reply = handle.reply(arrived)
        reply.queued, reply.held = queued, multi.held - held
        self._idle.append(handle)
        return reply

    async def _wait_for_room(self) -> float:
        """Wait until a connection may be opened, and return the seconds that it took.

        libcurl has its own queue, but counts the time in it as the server's time.
        """
        before = monotonic()
        warn_of_few_files()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn  # the place is handed over, not freed
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave_room()
            raise
        self._free += 1
        return monotonic() - before

    def _leave_room(self) -> None:
        """Give a free place to the request that has waited longest, if any waits."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    async def connect(self, url: str, timeout: float) -> None:
        """Check whether the server accepts connections, TLS included; no request is sent."""
        multi, curl = self._multi or self._open(), pycurl.Curl()
        try:
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.CONNECT_ONLY, 1)
            curl.setopt(pycurl.NOSIGNAL, 1)
            curl.setopt(pycurl.NOPROXY, _list_direct_hosts())
            await multi.add_handle(curl, timeout)
        except pycurl.error as error:
            place = _mask_place(url)
            raise _shortage(curl, place) or _disconnect(place, str(error.args[1])) from None
        finally:
            _drop(curl, multi)

    def _open(self) -> Any:
        self._multi = multi = open_multi()
        most = self._max_connections or connection_limit()
        self._free = most
        multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, most)
        multi.setopt(pycurl.M_MAXCONNECTS, most)
        return multi

    async def aclose(self) -> None:
        """Close every connection."""
        multi, self._multi = self._multi, None
        for handle in self._idle:
            handle.curl.close()
        self._idle.clear()
        if multi is not None:
            await multi.aclose()


class _Handle:
    """A libcurl handle and its reply; options that never change are set once."""

    def __init__(self) -> None:
        self.curl = curl = pycurl.Curl()
        self.size = 0
        self._started = 0.0
        self._timed = self._sends_much = False
        self._parts: list[bytes] = []
        self._head: list[bytes] = []
        self._times: list[float] = []
        self._set: tuple[Any, ...] = ()
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.ACCEPT_ENCODING, "")
        curl.setopt(pycurl.NOPROXY, _list_direct_hosts())
        curl.setopt(pycurl.TCP_NODELAY, 1)
        curl.setopt(pycurl.UPLOAD_BUFFERSIZE, _UPLOAD_BYTES)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, MAX_BODY)
        curl.setopt(pycurl.WRITEFUNCTION, self._write)
        curl.setopt(pycurl.HEADERFUNCTION, self._head.append)

    def prepare(self, method: str, url: str, headers: Sequence[str], body: bytes | None, timed: bool) -> None:
        """Make the handle ready for a request, which starts now."""
        curl = self.curl
        self.size, self._timed, self._started = 0, timed, monotonic()
        settings = (method, url, headers, body is None)
        if settings != self._set:
            self._set = settings
            curl.setopt(pycurl.URL, url)
            curl.unsetopt(pycurl.HTTPHEADER)  # an empty list would leave the headers of the previous request
            curl.setopt(pycurl.HTTPHEADER, list(headers))
            curl.setopt(pycurl.HTTPGET if body is None else pycurl.POST, 1)
            curl.setopt(pycurl.CUSTOMREQUEST, method)
        self._sends_much = body is not None and len(body) >= _UPLOAD_BYTES
        if body is not None:
            curl.setopt(pycurl.POSTFIELDS, body)

    def _write(self, chunk: bytes) -> int | None:
        self.size += len(chunk)
        if self.size > MAX_BODY:
            return -1
        self._parts.append(chunk)
        if self._timed:
            self._times.append(monotonic() - self._started)
        return None  # all of it was accepted

    @property
    def connected(self) -> bool:
        """Whether a connection existed, so that the request could be sent; a reused one has no connect time."""
        return bool(self.curl.getinfo(pycurl.REQUEST_SIZE) > 0)

    def reply(self, arrived: float) -> Reply:
        """Return the reply, complete at the time `arrived`; the handle itself keeps no part of it."""
        status, seconds = self.curl.getinfo(pycurl.RESPONSE_CODE), arrived - self._started
        parts = self._parts
        chunks = list(zip(self._times, parts)) if self._timed else []
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        reply = Reply(status, body, b"".join(self._head), seconds, chunks, 0.0, arrived)
        self._parts = []
        self._head.clear()
        if self._timed:
            self._times = []
        if self._sends_much:
            self.curl.setopt(pycurl.POSTFIELDS, b"")
        return reply


@cache
def _list_direct_hosts() -> str:
    """List the hosts that are always reached directly, without an HTTP proxy: this machine, and the user's list."""
    own = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return ",".join(filter(None, ["localhost", "127.0.0.1", "::1", own]))


def _failure(error: pycurl.error, url: str, timeout: float, handle: _Handle) -> RequestFailed:
    code, message = error.args[0], str(error.args[1])
    place = _mask_place(url)
    if code in _TIMEOUTS and not handle.connected:
        return _disconnect(place, f"no connection within {min(timeout, CONNECT_SECONDS):g} s")
    if code in _TIMEOUTS:
        heard = f" ({handle.size} bytes of the reply had arrived)" if handle.size else ""
        return TimedOut(f"no complete answer from {place} within {timeout:g} s{heard}")
    if code in _TOO_LARGE and (handle.size > MAX_BODY or code == pycurl.E_FILESIZE_EXCEEDED):
        return RequestFailed(f"the reply of {place} is larger than {MAX_BODY // 2**20} MB")
    if shortage := _shortage(handle.curl, place):
        return shortage
    return _disconnect(place, message, connected=handle.connected)


_CURL_PLACE = re.compile(r"^(?:Failed to connect to|Connection to) .*? after \d+ ms: ")
"""The part of a libcurl message that repeats the address before the error."""


def _disconnect(place: str, message: str, *, connected: bool = False) -> ConnectionFailed:
    """Make the error for a connection that failed or was cut."""
    reason = _CURL_PLACE.sub("", message)
    error = ConnectionFailed(f"{place}: {reason}")
    error.never_connected, error.reason = not connected, reason
    return error


@lru_cache(maxsize=64)
def _mask_place(url: str) -> str:
    """Return a URL as an error may show it: without parameters, and without a key in its path."""
    return mask_text(url.split("?", 1)[0])


def _shortage(curl: pycurl.Curl, place: str) -> LocalShortage | None:
    """Return an error if this machine has no free connection; libcurl does not say why it could not open a socket."""
    number = curl.getinfo(pycurl.OS_ERRNO)
    if number not in SHORTAGES and not is_out_of_files():
        return None
    why = os.strerror(number) if number in SHORTAGES else "too many open files"
    return LocalShortage(f"this machine has no free connection for {place} ({why}): lower --max-workers")


def _drop(curl: pycurl.Curl, multi: Any) -> None:
    """Close a handle, and end its transfer if that is still running."""
    with suppress(RuntimeError):  # pycurl's own multi refuses a handle that it has not got any more
        multi.remove_handle(curl)
    curl.close()


_transports: dict[asyncio.AbstractEventLoop, Transport] = {}


def get_shared_transport() -> Transport:
    """Return the transport of the running event loop; every endpoint of a run shares it."""
    loop = asyncio.get_running_loop()
    transport = _transports.get(loop)
    return _open_shared(loop) if transport is None else transport


def _open_shared(loop: asyncio.AbstractEventLoop) -> Transport:
    """Open a new transport, and drop those of closed loops."""
    for other in list(_transports):
        if other.is_closed():
            _transports.pop(other, None)
    transport = _transports[loop] = Transport()
    return transport


def share_transport(transport: Any) -> None:
    """Make the running event loop send by another transport, such as that of a cluster, unless it has one already."""
    _transports.setdefault(asyncio.get_running_loop(), transport)


def join_shared_transport() -> None:
    """Register a run on the connections of the running event loop, which two runs may share."""
    get_shared_transport().runs += 1


async def leave_shared_transport() -> None:
    """Unregister a run; the last one closes the connections."""
    loop = asyncio.get_running_loop()
    transport = get_shared_transport()
    transport.runs -= 1
    if transport.runs <= 0:
        del _transports[loop]
        await transport.aclose()
