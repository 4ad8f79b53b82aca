"""An answerer that forwards requests to one upstream, with the client's own key.

No request can change its destination, neither by its path nor by its Host. Redirects are returned to the client and not
followed. Only our own marks are removed; a body without marks is forwarded byte for byte.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from hashlib import blake2b
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from context_bench.errors import MissingExtra, UsageError, describe
from context_bench.http.loop import work_beside
from context_bench.http.open_files import SHORTAGES
from context_bench.http.secrets import find_api_root, is_loopback
from context_bench.tap.answering import LONG_BODY, Incoming, Outgoing, build_error
from context_bench.tap.matching import MARK, MARK_HEADER
from context_bench.text.masking import find_url_secrets, mask_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession


_CONNECT_SECONDS = 10.0
_IDLE_SECONDS = 3.0
"""Servers close idle connections after 5 s or more; a request sent on a closing connection would be lost."""
_MAX_HEADER = 64 * 1024
_PIECE_BYTES = 512 * 1024

_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
_OURS = {"host", "content-length", "accept-encoding", "expect", MARK_HEADER.lower()}
_DECODED = ("gzip", "deflate", "br", "zstd")


class Forward:
    """Forwards requests to one server.

    Args:
        url: Base URL of the server, with or without /v1.
        timeout: Seconds for a whole reply.
    """

    def __init__(self, url: str, *, timeout: float = 600.0) -> None:
        if "@" in urlsplit(url).netloc:
            raise UsageError("the URL to forward to has a password, which is not sent: the client sends its own key")
        self.url = find_api_root(url)
        self.timeout = timeout
        self.secrets = tuple(find_url_secrets(self.url))
        self._shown = mask_text(self.url)
        # A key in the path is not shown, but changes the fingerprint.
        masked = "" if self._shown == self.url else f" {blake2b(self.url.encode(), digest_size=8).hexdigest()}"
        self.fingerprint = f"forward {self._shown}{masked}"
        self._proxy = _find_proxy(self.url)
        self._session: ClientSession | None = None

    async def open(self) -> None:
        try:
            import aiohttp
        except ImportError as error:
            raise MissingExtra("the tap", "tap") from error
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_IDLE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),  # cookies are left to the client
            timeout=aiohttp.ClientTimeout(total=self.timeout, sock_connect=_CONNECT_SECONDS),
            skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
            max_line_size=_MAX_HEADER,
            max_field_size=_MAX_HEADER,
        )

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def answer(self, request: Incoming) -> Outgoing:
        """Ask the upstream and return its answer; 502 if there is none, 504 after the timeout."""
        import aiohttp

        if not request.path.startswith("/"):  # else it could change the host
            return build_error(400, f"{request.path!r} is not a path", request.form)
        try:
            return await self._ask(request)
        except asyncio.TimeoutError:
            return build_error(504, f"{self._shown} did not answer within {self.timeout:g} s", request.form)
        except (aiohttp.ClientError, OSError) as error:
            if getattr(error, "errno", None) in SHORTAGES:
                why = f"the tap has no free connection to {self._shown}: {mask_text(describe(error))}"
                return build_error(503, why, request.form)
            return build_error(502, f"{self._shown} does not answer: {mask_text(describe(error))}", request.form)

    async def _ask(self, request: Incoming) -> Outgoing:
        from yarl import URL

        assert self._session is not None, "not opened yet"
        query = f"?{request.query}" if request.query else ""
        response = await self._session.request(
            request.method,
            URL(f"{self.url}{request.path}{query}", encoded=True),
            headers=_filter_request_headers(request.headers),
            data=_make_payload(request) if len(request.body) < LONG_BODY else await work_beside(_make_payload, request),
            allow_redirects=False,
            proxy=self._proxy,
        )
        if response.status == 101:
            response.close()
            return build_error(502, f"{self._shown} switched to another protocol unrequested", request.form)
        headers = _filter_reply_headers(response.headers)
        if _is_streamed(response) or _may_be_large(response):
            return Outgoing(response.status, headers, _Chunks(response))
        async with response:
            return Outgoing(response.status, headers, await response.read())


class _Chunks:
    """The body of a reply as it arrives. Closing it early closes the connection."""

    def __init__(self, response: ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._response.content.readany()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self._response.close()


def _make_payload(request: Incoming) -> bytes | BytesIO | None:
    """Return the body to send; a large one in pieces, since a single write would block all other requests."""
    if not request.body and request.method != "POST":
        return None
    body = remove_marks(request.body)
    return BytesIO(body) if len(body) > _PIECE_BYTES else body


def remove_marks(body: bytes) -> bytes:
    """Remove our marks from a body; a body without marks is returned unchanged."""
    if MARK.search(body) is None:
        return body
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(document, dict) or not _remove_from(document):
        return body
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which is valid in JSON but not in UTF-8
        return json.dumps(document, separators=(",", ":")).encode()


def _remove_from(document: dict[str, Any]) -> bool:
    """Remove the marks from a request; return whether there were any."""
    found = False
    if _is_mark(document.get("user")):
        del document["user"]
        found = True
    metadata = document.get("metadata")
    if isinstance(metadata, dict) and _is_mark(metadata.get("user_id")):
        del metadata["user_id"]
        found = True
        if not metadata:
            del document["metadata"]
    return found


def _is_mark(value: Any) -> bool:
    return isinstance(value, str) and MARK.fullmatch(value.encode("utf-8", "replace")) is not None


def _filter_request_headers(headers: Mapping[str, str]) -> dict[str, str]:
    dropped = _HOP_BY_HOP | _OURS | _list_named(headers.get("connection"))
    kept = {name: value for name, value in headers.items() if name.lower() not in dropped}
    return {**kept, "Accept-Encoding": "identity"}


def _filter_reply_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return the headers of a reply to pass on, without the encoding, since the body is already decoded."""
    from multidict import CIMultiDict

    dropped = _HOP_BY_HOP | {"content-length"} | _list_named(headers.get("Connection"))
    if headers.get("Content-Encoding", "").lower() in _DECODED:
        dropped.add("content-encoding")
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)


def _list_named(connection: str | None) -> set[str]:
    """List the hop-by-hop headers that a Connection header names."""
    return {name.strip().lower() for name in (connection or "").split(",")}


def _is_streamed(response: ClientResponse) -> bool:
    chunked = "chunked" in response.headers.get("Transfer-Encoding", "").lower()
    return chunked or response.content_type == "text/event-stream"


def _may_be_large(response: ClientResponse) -> bool:
    """Whether a reply may be too large to hold as a whole, so that it is streamed."""
    size = response.content_length
    return size is None or size > _PIECE_BYTES or "Content-Encoding" in response.headers


def _find_proxy(url: str) -> str | None:
    """Return the environment's HTTP proxy for a server; None for this machine."""
    parts = urlsplit(url)
    if is_loopback(url) or proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)
