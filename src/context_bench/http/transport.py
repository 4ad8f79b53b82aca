"""One request, one reply, over pooled keep-alive connections (libcurl).

It never follows a redirect, so a key reaches no host but the one it was given for; it bounds time and
size; it knows nothing of retries. A transport belongs to the event loop that first used it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import pycurl

from context_bench.errors import ConnectionFailed, RequestFailed, TimedOut

__all__ = ["Reply", "Transport"]

MAX_BODY = 64 * 1024 * 1024
CONNECT_SECONDS = 10.0

_TIMEOUTS = {pycurl.E_OPERATION_TIMEDOUT}
_TOO_LARGE = {pycurl.E_WRITE_ERROR, pycurl.E_FILESIZE_EXCEEDED}


@dataclass(slots=True)
class Reply:
    """What came back: status, body, raw headers, and the seconds from the request to the last byte."""

    status: int
    body: bytes
    raw_headers: bytes
    seconds: float
    chunks: list[tuple[float, bytes]] = field(default_factory=list)

    def header(self, name: str) -> str | None:
        """One header by name, in any case; the last one where it is repeated."""
        wanted, found = name.lower().encode() + b":", None
        for line in self.raw_headers.split(b"\r\n"):
            if line[: len(wanted)].lower() == wanted:
                found = line[len(wanted) :].strip().decode("latin-1")
        return found


class Transport:
    """Connections to any number of hosts.

    Args:
        max_connections: How many may be open to one host at once.
    """

    def __init__(self, max_connections: int = 1024) -> None:
        self._multi: Any = None
        self._idle: list[Any] = []
        self._max_connections = max_connections
        self.runs = 0

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Sequence[str] = (),
        body: bytes | None = None,
        timeout: float = 30.0,
        timed: bool = False,
    ) -> Reply:
        """Send one request and wait for its whole reply; `timed` also keeps when each chunk came."""
        loop = asyncio.get_running_loop()
        multi = self._opened()
        curl = self._idle.pop() if self._idle else _new_handle()
        sink = _Sink(loop.time if timed else None)
        head: list[bytes] = []
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.HTTPHEADER, list(headers))
        if body is None:
            curl.setopt(pycurl.HTTPGET, 1)
        else:
            curl.setopt(pycurl.POSTFIELDS, body)
        curl.setopt(pycurl.CUSTOMREQUEST, method)
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(timeout * 1000)))
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(min(timeout, CONNECT_SECONDS) * 1000)))
        curl.setopt(pycurl.WRITEFUNCTION, sink.write)
        curl.setopt(pycurl.HEADERFUNCTION, head.append)
        started = loop.time()
        try:
            await multi.perform(curl)
        except pycurl.error as error:
            connected = curl.getinfo(pycurl.CONNECT_TIME) > 0
            curl.close()
            raise _failure(error, url, timeout, sink, connected) from None
        except asyncio.CancelledError:
            curl.close()
            raise
        seconds = loop.time() - started
        reply = Reply(
            curl.getinfo(pycurl.RESPONSE_CODE),
            b"".join(sink.parts),
            b"".join(head),
            seconds,
            sink.timed(started),
        )
        self._idle.append(curl)
        return reply

    def _opened(self) -> Any:
        if self._multi is None:
            self._multi = pycurl.AsyncCurlMulti()
            self._multi.setopt(pycurl.M_MAX_HOST_CONNECTIONS, self._max_connections)
            self._multi.setopt(pycurl.M_MAXCONNECTS, self._max_connections)
        return self._multi

    async def aclose(self) -> None:
        """Close every connection."""
        multi, self._multi = self._multi, None
        for curl in self._idle:
            curl.close()
        self._idle.clear()
        if multi is not None:
            await multi.aclose()


class _Sink:
    """Collects a body, and refuses to grow without bound."""

    __slots__ = ("_clock", "_times", "parts", "size")

    def __init__(self, clock: Any) -> None:
        self.parts: list[bytes] = []
        self.size = 0
        self._clock = clock
        self._times: list[float] = []

    def write(self, chunk: bytes) -> int:
        self.size += len(chunk)
        if self.size > MAX_BODY:
            return -1
        self.parts.append(chunk)
        if self._clock is not None:
            self._times.append(self._clock())
        return len(chunk)

    def timed(self, started: float) -> list[tuple[float, bytes]]:
        return [(moment - started, part) for moment, part in zip(self._times, self.parts)]


class _NoProxy:
    """Hosts that are reached directly whatever the proxy variables say: this machine, and the user's own list."""

    @cached_property
    def hosts(self) -> str:
        own = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        return ",".join(filter(None, ["localhost", "127.0.0.1", "::1", own]))


_no_proxy = _NoProxy()


def _new_handle() -> Any:
    curl = pycurl.Curl()
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.ACCEPT_ENCODING, "")
    curl.setopt(pycurl.NOPROXY, _no_proxy.hosts)
    curl.setopt(pycurl.TCP_NODELAY, 1)
    curl.setopt(pycurl.MAXFILESIZE_LARGE, MAX_BODY)
    return curl


def _failure(error: pycurl.error, url: str, timeout: float, sink: _Sink, connected: bool) -> RequestFailed:
    code, message = error.args[0], str(error.args[1])
    place = url.split("?", 1)[0]
    if code in _TIMEOUTS and not connected:
        return ConnectionFailed(f"{place}: no connection within {min(timeout, CONNECT_SECONDS):g} s")
    if code in _TIMEOUTS:
        heard = f" ({sink.size} bytes of the reply had come)" if sink.size else ""
        return TimedOut(f"no complete answer from {place} within {timeout:g} s{heard}")
    if code in _TOO_LARGE and (sink.size > MAX_BODY or code == pycurl.E_FILESIZE_EXCEEDED):
        return RequestFailed(f"the reply of {place} is larger than {MAX_BODY // 2**20} MB")
    return ConnectionFailed(f"{place}: {message}")


_transports: WeakKeyDictionary[asyncio.AbstractEventLoop, Transport] = WeakKeyDictionary()


def shared_transport() -> Transport:
    """The transport of the running event loop; every endpoint of a run shares it."""
    loop = asyncio.get_running_loop()
    if loop not in _transports:
        _transports[loop] = Transport()
    return _transports[loop]


def join_shared_transport() -> None:
    """Say that a run uses the connections of the running event loop: two runs may share one loop."""
    shared_transport().runs += 1


async def leave_shared_transport() -> None:
    """The end of a run: the last one closes the connections."""
    loop = asyncio.get_running_loop()
    transport = shared_transport()
    transport.runs -= 1
    if transport.runs <= 0:
        del _transports[loop]
        await transport.aclose()
