"""Admit requests to a tap: only from programs, of bounded size, and recorded without secrets.

A web page could send requests to loopback, and by DNS rebinding even read the answers. A request from a page is
recognised by `Origin`, `Sec-Fetch-Site` and the name in `Host`.

Headers, query parameters and body fields count as secret by their names; so does every value that is a known secret.
Secrets are never stored, even if a body or a reply repeats them.
"""

from __future__ import annotations

import asyncio
import codecs
import ipaddress
import json
import re
from base64 import b64decode
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import orjson

from context_bench.text.masking import MASK, PROMPT_FIELDS, find_secrets, is_secret_name, may_name_secret

if TYPE_CHECKING:
    from aiohttp import web


MAX_BODY = 80 * 1024 * 1024  # bytes of one request or reply; ten times the longest prompt that a model takes
MAX_TOGETHER = 256 * 1024 * 1024  # bytes of all requests and replies in flight
_ROOM_TIMEOUT = 20.0  # seconds that a body waits for memory before it is refused
_BODY_SECONDS = 60.0
_STEP_BYTES = 1024 * 1024  # the steps by which a body of unknown size reserves memory


class BodyRefused(Exception):
    """Refusal of a body, with the HTTP status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Budget:
    """A limit of bytes held at once; requests that need more wait until other requests release some."""

    def __init__(self, most: int = MAX_TOGETHER) -> None:
        self.free = self.most = most
        self.growing = asyncio.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self, size: int) -> None:
        """Wait until the bytes are free; BodyRefused after a timeout."""
        deadline = asyncio.get_running_loop().time() + _ROOM_TIMEOUT
        while self.free < size:
            await self._wait(deadline)
        self.free -= size

    async def _wait(self, deadline: float) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait_for(turn, deadline - loop.time())
        except asyncio.TimeoutError:
            held = f"requests in flight at the tap already take {self.most >> 20} MB"
            raise BodyRefused(503, f"{held}: send fewer or smaller ones at once") from None

    def give_back(self, size: int) -> None:
        """Release bytes and wake all waiters."""
        self.free += size
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)


class Share:
    """The share of a budget that one exchange holds for its request and its reply, given back at its end."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._held = budget, 0

    async def take(self, size: int) -> None:
        """Reserve more bytes of the budget."""
        if self._budget.free >= size:
            self._budget.free -= size
        else:
            await self._budget.take(size)
        self._held += size

    def give_back(self, keep: int = 0) -> None:
        """Release all but `keep` bytes."""
        self._held, spare = keep, self._held - keep
        self._budget.give_back(spare)

    @property
    def growing(self) -> asyncio.Lock:
        """The lock for a body that grows beyond its reservation; without it, two such bodies could deadlock."""
        return self._budget.growing


@contextmanager
def limit_seconds(request: web.BaseRequest, seconds: float) -> Iterator[None]:
    """Close the connection of a client after a timeout; a timer costs less than one task for each wait."""
    transport = request.transport
    if transport is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(seconds, transport.abort)
    try:
        yield
    finally:
        timer.cancel()


async def read_body(request: web.BaseRequest, share: Share) -> bytes:
    """Read and decode a body; BodyRefused if it is too large."""
    if not request.can_read_body:
        return b""
    packed = request.headers.get("Content-Encoding", "identity").lower() != "identity"
    room = _STEP_BYTES if packed or request.content_length is None else request.content_length
    if room > MAX_BODY:
        raise _make_refusal()
    await share.take(room)
    parts: list[bytes] = []
    size, growing = 0, False
    with ExitStack() as stack:
        stack.enter_context(limit_seconds(request, _BODY_SECONDS))
        while chunk := await request.content.readany():
            size += len(chunk)
            if size > MAX_BODY:
                raise _make_refusal()
            if size > room and not growing:
                growing = True
                await share.growing.acquire()
                stack.callback(share.growing.release)
            while size > room:
                await share.take(_STEP_BYTES)
                room += _STEP_BYTES
            parts.append(chunk)
    share.give_back(keep=size)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make_refusal() -> BodyRefused:
    return BodyRefused(413, f"the tap accepts bodies of at most {MAX_BODY >> 20} MB")


_FROM_PAGES = {"cross-site", "same-site", "same-origin"}


def find_refusal(headers: Mapping[str, str], own: str, names: Collection[str]) -> str | None:
    """Return the reason to refuse a request; None to admit it.

    `own` is the host that the tap listens on; `names` are further allowed host names in lower case.
    """
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "").lower() in _FROM_PAGES:
        return "the tap answers programs, not web pages: this request has an Origin"
    host = _bare_host(headers.get("Host", ""))
    if not host or host == own.lower() or host in names or _is_local(host):
        return None
    return f"the tap does not answer to the name {host!r}: to allow it, add --tap-host {host}"


def _bare_host(text: str) -> str:
    """Return the name or address of a Host header, without its port."""
    text = text.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].rstrip(".")


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_FIELD = re.compile(r'"([\w.-]{2,60})"(\s*:\s*)"([^"\\]{8,})"')  # a text field of a JSON body whose value may be a key

_NAME = re.compile(r'"([\w.-]{2,60})"\s*:\s*"')
"""The name of a text field in a body. The pattern starts with a rare character, so long texts are searched fast."""

_PIECE_BYTES = 256 * 1024

_MIN_KEY_CHARS = 8  # shorter values are no real keys, and may be words of an answer


class Redactor:
    """Masks the secrets of one request in everything that is recorded."""

    __slots__ = ("_known", "_values")

    def __init__(self, headers: Mapping[str, str], query: str = "", known: Sequence[str] = ()) -> None:
        pairs = [*headers.items(), *(parse_qsl(query) if query else ())]
        forms = {form for name, value in pairs if may_name_secret(name) for form in _list_forms(value)}
        forms.update(form for value in known for form in _list_forms(value))
        self._known = frozenset(known)
        # The longest first: one may contain another.
        self._values = sorted(
            _add_escaped(form for form in forms if len(form) >= _MIN_KEY_CHARS), key=len, reverse=True
        )

    def __repr__(self) -> str:
        return f"Redactor({len(self._values)} secrets)"

    def text(self, data: bytes | bytearray) -> str:
        """Mask the secrets in a body."""
        text = self.line(_decode(data))
        if not any(is_secret_name(found[1]) for found in _NAME.finditer(text)):
            return text
        return _mask_fields(text)

    def line(self, text: str) -> str:
        """Mask the secrets in a path, or in the value of a header."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Mask the secrets in headers."""
        return {
            name: MASK if may_name_secret(name) or value in self._known else self.line(value)
            for name, value in headers.items()
        }


def _decode(data: bytes | bytearray) -> str:
    """Decode a body. Decode invalid UTF-8 in pieces, since one call would block all other threads for long."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pieces = (bytes(data[place : place + _PIECE_BYTES]) for place in range(0, len(data), _PIECE_BYTES))
        return "".join(codecs.iterdecode(pieces, "utf-8", "replace"))


def _mask_fields(text: str) -> str:
    """Mask the values of key-like fields in a body, except in prompts, where such fields are data."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:  # a stream, in which "token" fields are common
        return _FIELD.sub(lambda found: found[0] if found[1].lower() in ("key", "token") else _mask_field(found), text)
    secrets = {each for each in find_secrets(document, (*PROMPT_FIELDS, "logprobs")) if len(each) >= _MIN_KEY_CHARS}
    text = _FIELD.sub(lambda found: _mask_field(found) if found[3] in secrets else found[0], text)
    for quoted in {json.dumps(each, ensure_ascii=ascii) for each in secrets for ascii in (True, False)}:
        if "\\" in quoted:  # the pattern skips it
            text = text.replace(quoted, f'"{MASK}"')
    return text


def _mask_field(found: re.Match[str]) -> str:
    return f'"{found[1]}"{found[2]}"{MASK}"' if is_secret_name(found[1]) else found[0]


def _list_forms(value: str) -> Iterator[str]:
    """List the forms of a secret: whole, without its scheme (`Bearer KEY`), and each cookie."""
    yield value
    for part in re.split("[;,]", value):
        part = part.strip()
        credentials = part.partition(" ")[2].strip()
        yield credentials
        yield part.partition("=")[2]
        if part.lower().startswith("basic "):
            with suppress(ValueError):
                yield b64decode(credentials, validate=True).decode("utf-8", "replace").partition(":")[2]


def _add_escaped(forms: Iterable[str]) -> set[str]:
    """Return the texts, and their JSON-escaped forms."""
    return {each for form in forms for each in (form, json.dumps(form)[1:-1], form.replace("/", "\\/"))}
