"""The tap's server: accepts requests like a model's API, passes them to its answerer, and records both.

By default it listens on this machine alone. It answers programs, not web pages. Replies are passed on as they arrive: a
stream chunk by chunk, and a broken stream stays broken. When a client disconnects, its request is cancelled; a client
that sends or reads too slowly is disconnected. Records contain no secrets.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING

from context_bench.errors import MissingExtra, UsageError, describe, warn
from context_bench.http.loop import work_beside
from context_bench.http.open_files import warn_of_few_files
from context_bench.tap.address import LOOPBACK, url_of
from context_bench.tap.answering import LONG_BODY, Answerer, Incoming, Outgoing, build_error
from context_bench.tap.intake import (
    MAX_BODY,
    BodyRefused,
    Budget,
    Redactor,
    Share,
    find_refusal,
    limit_seconds,
    read_body,
)
from context_bench.traffic.calls import Call
from context_bench.wire.forms import FORMS, FirstToken, find_form

if TYPE_CHECKING:
    from aiohttp import web

Watcher = Callable[[Call, Incoming], Awaitable[None] | None]
"""A function that handles a call; it may return an awaitable for long work, and the call continues after that."""

_MAX_HEADER = 64 * 1024
_HEADER_SECONDS = 20.0  # seconds from a new connection to the end of its first headers
_IDLE_SECONDS = 75.0  # seconds from one request of a connection to the end of the next one's headers
_WRITE_SECONDS = 60.0
"""Seconds for the client to accept a chunk of the reply; the model's time is not included."""
_PIECE_BYTES = 256 * 1024
_MAX_REFUSED_BYTES = 1024 * 1024  # recorded bytes of a reply that exceeds the limit
_BACKLOG = 4096
_STOP_GRACE = 0.5  # seconds for replies in flight when the tap stops


_DECODED = ("gzip", "deflate", "br", "zstd")  # content encodings that aiohttp decodes

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())
_log.propagate = False  # it would log invalid requests with their keys


class Tap:
    """A recording upstream on the running event loop.

    Args:
        answerer: Answers the requests; opened and closed with the tap.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        on_call: Receives each POST on arrival, before its answer; the call is completed later.
        on_end: Receives the completed call.
        secrets: Values that are never stored, under any name.
        hosts: Allowed host names in addition to addresses, localhost and `host`.
    """

    def __init__(
        self,
        answerer: Answerer,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        on_call: Watcher | None = None,
        on_end: Watcher | None = None,
        secrets: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> None:
        self.host, self.port = host, port
        self._names = frozenset(name.lower().rstrip(".") for name in hosts)
        self._budget = Budget()
        self._silent: dict[web.RequestHandler, asyncio.TimerHandle] = {}
        self._server: asyncio.Server | None = None
        self._secrets = tuple(secrets)
        self._answerer, self._on_call, self._on_end = answerer, on_call, on_end
        self._runner: web.AppRunner | None = None
        self._telling: set[asyncio.Future[None]] = set()

    def add_secrets(self, values: Sequence[str]) -> None:
        """Add values that must never be stored."""
        self._secrets = (*self._secrets, *values)

    @property
    def url(self) -> str:
        """The URL for a proxy, without /v1."""
        return url_of(self.host, self.port)

    async def start(self) -> None:
        """Start to listen; UsageError if that fails."""
        try:
            from aiohttp import web
        except ImportError as error:
            raise MissingExtra("the tap", "tap") from error
        warn_of_few_files()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_log,
            handler_cancellation=True,
            shutdown_timeout=_STOP_GRACE,
            keepalive_timeout=_IDLE_SECONDS,
            lingering_time=_STOP_GRACE,
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )
        await self._answerer.open()
        try:
            await self._runner.setup()
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._connect, self.host, self.port, backlog=_BACKLOG)
        except OSError as error:
            await self.stop()
            raise UsageError(_explain(error, self.host, self.port)) from error
        self.port = self._server.sockets[0].getsockname()[1]

    def _connect(self) -> web.RequestHandler:
        """Make the protocol of a new connection, which is closed unless a request comes soon."""
        assert self._runner is not None
        assert self._runner.server is not None
        protocol = self._runner.server()
        loop = asyncio.get_running_loop()
        self._silent[protocol] = loop.call_later(_HEADER_SECONDS, self._cut_silent, protocol)
        return protocol

    def _cut_silent(self, protocol: web.RequestHandler) -> None:
        self._silent.pop(protocol, None)
        if protocol.transport is not None:
            protocol.transport.abort()

    async def stop(self) -> None:
        """Stop listening; cut replies in flight after a short time."""
        if self._server is not None:
            self._server.close()
            self._server = None
        while self._silent:
            self._silent.popitem()[1].cancel()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
            if self._telling:
                await asyncio.wait(self._telling)
            await self._answerer.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if timer := self._silent.pop(request.protocol, None):
            timer.cancel()
        share = Share(self._budget)
        try:
            if refusal := find_refusal(request.headers, self.host, self._names):
                raise BodyRefused(403, refusal)
            if request.headers.get("Upgrade", "").lower() == "websocket":
                raise BodyRefused(426, f"the tap does not support WebSockets: ask {request.path} by plain HTTP")
            if request.method == "GET" and request.path == "/health":
                return _health()
            return await self._record(request, await _read(request, share), share)
        except BodyRefused as refused:
            with suppress(UserWarning):  # if warnings are errors, the server continues
                warn(f"refused at the tap: {refused}")
            return await _refuse(request, refused)
        finally:
            share.give_back()

    async def _record(self, request: web.Request, incoming: Incoming, share: Share) -> web.StreamResponse:
        """Answer a request, and record it with its reply."""
        redactor = Redactor(incoming.headers, incoming.query, self._secrets)
        started = perf_counter()
        body = await _redact(redactor, incoming.body)
        call = Call(redactor.line(incoming.path), body, redactor.headers(incoming.headers), started)
        watched = request.method == "POST"
        try:
            if watched and self._on_call:
                await self._tell(self._on_call, call, incoming)
            outgoing = await self._answer(incoming)
            call.status = outgoing.status
            if isinstance(outgoing.body, bytes):
                return await _send(request, outgoing, outgoing.body, call, redactor)
            return await _stream(request, outgoing, outgoing.body, call, redactor, share)
        finally:
            if call.ended is None:
                call.ended, call.cut = perf_counter(), True
            if watched and self._on_end:
                await self._tell(self._on_end, call, incoming)

    async def _tell(self, watcher: Watcher, call: Call, incoming: Incoming) -> None:
        """Report a call. The report completes even if the client disconnects, since every call is counted."""
        work = watcher(call, incoming)
        if work is None:
            return
        task = asyncio.ensure_future(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)
        await _see_to_the_end(task)

    async def _answer(self, incoming: Incoming) -> Outgoing:
        try:
            return await self._answerer.answer(incoming)
        except Exception as error:  # noqa: BLE001 - an answerer may be the user's, and the server must continue
            return build_error(500, describe(error), incoming.form)


def _health() -> web.Response:
    from aiohttp import web

    return web.json_response({"status": "ok"})


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} of {host} is in use: stop the program that uses it, or choose another port"
    return f"the tap cannot listen on {host}:{port}: {error.strerror or error}"


async def _refuse(request: web.Request, refused: BodyRefused) -> web.StreamResponse:
    """Refuse a request with the reason, without reading the rest of it."""
    from aiohttp import web

    reply = build_error(refused.status, str(refused), find_form(request.path))
    assert isinstance(reply.body, bytes)
    response = web.Response(status=reply.status, headers=reply.headers, body=reply.body)
    response.force_close()
    return response


async def _read(request: web.Request, share: Share) -> Incoming:
    """Read the whole request, and decode its body."""
    body = await read_body(request, share)
    headers: dict[str, str] = {}
    for name, value in request.headers.items():
        name = name.lower()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if headers.get("content-encoding", "").lower() in _DECODED:
        del headers["content-encoding"]
    url, path = request.rel_url, request.rel_url.raw_path
    if path.startswith(("/models", "/embeddings", "/completions", *(form.route for form in FORMS))):
        path = f"/v1{path}"  # the client uses a base without /v1
    return Incoming(request.method, path, url.raw_query_string, headers, body)


async def _send(
    request: web.Request, outgoing: Outgoing, body: bytes, call: Call, redactor: Redactor
) -> web.StreamResponse:
    """Send a body of a known size; a large one in pieces, to detect a client that does not read it."""
    from aiohttp import web

    if len(body) <= _PIECE_BYTES or request.method == "HEAD":
        response: web.StreamResponse = web.Response(status=outgoing.status, headers=outgoing.headers, body=body)
        await response.prepare(request)
    else:
        response = web.StreamResponse(status=outgoing.status, headers=outgoing.headers)
        response.content_length = len(body)
        await response.prepare(request)
        for place in range(0, len(body), _PIECE_BYTES):
            with limit_seconds(request, _WRITE_SECONDS):
                await response.write(body[place : place + _PIECE_BYTES])
    await response.write_eof()
    await _keep_reply(call, body, redactor, ended=perf_counter())
    return response


async def _redact(redactor: Redactor, body: bytes | bytearray) -> str:
    """Mask the secrets in a body; in a thread if it is long."""
    return redactor.text(body) if len(body) < LONG_BODY else await work_beside(redactor.text, body)


async def _keep_reply(call: Call, body: bytes | bytearray, redactor: Redactor, ended: float | None) -> None:
    """Record the reply of a call and, if it was sent completely, its end time."""

    async def keep() -> None:
        call.reply = await _redact(redactor, body)
        if ended is not None:
            call.first, call.ended = call.first or ended, ended

    await (keep() if len(body) < LONG_BODY else _see_to_the_end(asyncio.ensure_future(keep())))


async def _see_to_the_end(task: asyncio.Future[None]) -> None:
    """Await work that continues even if the client disconnects; keep its share of the budget until it ends."""
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise


async def _stream(
    request: web.Request, outgoing: Outgoing, chunks: AsyncIterator[bytes], call: Call, redactor: Redactor, share: Share
) -> web.StreamResponse:
    """Send a body chunk by chunk; if it breaks off, cut the reply instead of ending it normally."""
    from aiohttp import web

    response = web.StreamResponse(status=outgoing.status, headers=outgoing.headers)
    sent, ended = bytearray(), None
    first_byte: float | None = None
    token = FirstToken()
    try:
        await response.prepare(request)
        async for chunk in chunks:
            if chunk:
                if len(sent) + len(chunk) > MAX_BODY:
                    raise BodyRefused(502, f"a reply of more than {MAX_BODY >> 20} MB is cut")
                await share.take(2 * len(chunk))  # kept as bytes, and as text once recorded
                with limit_seconds(request, _WRITE_SECONDS):
                    await response.write(chunk)
                passed = perf_counter()
                first_byte = first_byte or passed
                if call.first is None and token.came_with(chunk):
                    call.first = passed
                sent += chunk
        await response.write_eof()
        ended = perf_counter()
    except Exception as error:  # noqa: BLE001 - an answerer may be anybody's; to the client it is a cut connection
        _log.debug("a stream broke off: %s", describe(error))
        _cut(request)
        if isinstance(error, BodyRefused):
            del sent[_MAX_REFUSED_BYTES:]
    finally:
        if hasattr(chunks, "aclose"):
            await chunks.aclose()
        call.first = call.first or first_byte
        await _keep_reply(call, sent, redactor, ended)
    return response


def _cut(request: web.Request) -> None:
    """Close the connection without ending the reply, so that the client sees that the reply is incomplete."""
    transport = request.transport
    if transport is None:
        return
    if request.version >= (1, 1):
        transport.close()  # written data still arrives; the last chunk is missing
        return
    # Closing the connection would end the reply normally: reset it instead.
    linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()
