"""Let requests into a tap: from programs alone, of bounded size, and without their secrets.

A web page could send requests to loopback, and by DNS rebinding even read the answers. Browsers reveal pages by
`Origin`, `Sec-Fetch-Site` and the name in `Host`.

A header, query parameter or body field is secret by its name, other values because we know them to be. Such a value is
kept nowhere, not even in a body or a reply that repeats it.
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
MAX_TOGETHER = 256 * 1024 * 1024  # bytes of all requests and replies under way
_ROOM_TIMEOUT = 20.0  # seconds that a body waits for room before it is refused
_BODY_SECONDS = 60.0
_STEP_BYTES = 1024 * 1024  # bytes that a body of unknown size takes at a time


class BodyRefused(Exception):
    """A body that is not taken in, with the status to answer."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Budget:
    """Bytes that may be held at once; whoever wants more waits for others to give some back."""

    def __init__(self, most: int = MAX_TOGETHER) -> None:
        self.free = self.most = most
        self.growing = asyncio.Lock()
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self, size: int) -> None:
        """Wait until there is room; BodyRefused if that takes too long."""
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
            held = f"the bodies under way at the tap take {self.most >> 20} MB already"
            raise BodyRefused(503, f"{held}: send fewer or smaller ones at once") from None

    def give_back(self, size: int) -> None:
        """Make room for others."""
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
        """Take so many more bytes of the budget."""
        if self._budget.free >= size:
            self._budget.free -= size
        else:
            await self._budget.take(size)
        self._held += size

    def give_back(self, keep: int = 0) -> None:
        """Give bytes back to the budget, down to this many."""
        self._held, spare = keep, self._held - keep
        self._budget.give_back(spare)

    @property
    def growing(self) -> asyncio.Lock:
        """The lock of the one body that may grow beyond what it has taken, as two might wait for each other."""
        return self._budget.growing


@contextmanager
def limit_seconds(request: web.BaseRequest, seconds: float) -> Iterator[None]:
    """Cut the connection of a client that takes longer than this; a timer costs less than a task for each wait."""
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
    """Read a body without its encoding; BodyRefused when it is too large."""
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
    return BodyRefused(413, f"the tap takes no body of more than {MAX_BODY >> 20} MB")


_FROM_PAGES = {"cross-site", "same-site", "same-origin"}


def find_refusal(headers: Mapping[str, str], own: str, names: Collection[str]) -> str | None:
    """Find why a request gets no answer; None when it may have one.

    `own` is the host that the tap listens on, `names` are further names by which it may be called, in lower case.
    """
    if "Origin" in headers or headers.get("Sec-Fetch-Site", "").lower() in _FROM_PAGES:
        return "the tap answers programs, not web pages: this request has an Origin"
    host = _bare_host(headers.get("Host", ""))
    if not host or host == own.lower() or host in names or _is_local(host):
        return None
    return f"the tap does not answer to the name {host!r}: add --tap-host {host} if a program is to reach it so"


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


_FIELD = re.compile(r'"([\w.-]{2,60})"(\s*:\s*)"([^"\\]{8,})"')  # a field of a JSON body with a text that may be a key

_NAME = re.compile(r'"([\w.-]{2,60})"\s*:\s*"')
"""The name of such a field. It begins with a quotation mark, which few letters are: a long text is passed over fast."""

_PIECE_BYTES = 256 * 1024

_MIN_KEY_CHARS = 8  # anything shorter is no real key, and may well be a word of an answer


class Redactor:
    """Masks the secrets of one request in whatever is kept of it."""

    __slots__ = ("_known", "_values")

    def __init__(self, headers: Mapping[str, str], query: str = "", known: Sequence[str] = ()) -> None:
        pairs = [*headers.items(), *(parse_qsl(query) if query else ())]
        forms = {form for name, value in pairs if may_name_secret(name) for form in _list_forms(value)}
        forms.update(form for value in known for form in _list_forms(value))
        self._known = frozenset(known)
        # The longest first: one may hold another.
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
    """Decode a body; one that is not UTF-8 piece by piece, as one call would stop every other thread for long."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        pieces = (bytes(data[place : place + _PIECE_BYTES]) for place in range(0, len(data), _PIECE_BYTES))
        return "".join(codecs.iterdecode(pieces, "utf-8", "replace"))


def _mask_fields(text: str) -> str:
    """Mask the values of key-like fields in a body, but not in what a model reads: there such a field is data."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:  # a stream, whose tokens have names too
        return _FIELD.sub(lambda found: found[0] if found[1].lower() in ("key", "token") else _mask_field(found), text)
    secrets = {each for each in find_secrets(document, (*PROMPT_FIELDS, "logprobs")) if len(each) >= _MIN_KEY_CHARS}
    text = _FIELD.sub(lambda found: _mask_field(found) if found[3] in secrets else found[0], text)
    for quoted in {json.dumps(each, ensure_ascii=ascii) for each in secrets for ascii in (True, False)}:
        if "\\" in quoted:  # the pattern passes it over
            text = text.replace(quoted, f'"{MASK}"')
    return text


def _mask_field(found: re.Match[str]) -> str:
    return f'"{found[1]}"{found[2]}"{MASK}"' if is_secret_name(found[1]) else found[0]


def _list_forms(value: str) -> Iterator[str]:
    """List the forms of a secret that may come back: whole, without its scheme (`Bearer KEY`), one of the cookies."""
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
    """Return the texts, and each as JSON escapes it."""
    return {each for form in forms for each in (form, json.dumps(form)[1:-1], form.replace("/", "\\/"))}
