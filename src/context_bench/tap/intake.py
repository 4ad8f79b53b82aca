"""How much a tap takes in: the size of one body, of all bodies together, and the time that a client may take.

Sizes are those of unpacked bodies, and are watched while they are unpacked: a small one may unpack to gigabytes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["MAX_BODY", "BodyRefused", "Budget", "Share", "limit_seconds", "read_body"]

MAX_BODY = 80 * 1024 * 1024
"""Bytes of one request or reply; ten times the longest prompt that a model takes."""
MAX_TOGETHER = 256 * 1024 * 1024
"""Bytes of all requests and replies under way."""
_PATIENCE = 20.0
"""Seconds that a body waits for room before it is refused."""
_BODY_SECONDS = 60.0
_STEP = 1024 * 1024
"""Bytes that a body of unknown size takes at a time."""


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
        deadline = asyncio.get_running_loop().time() + _PATIENCE
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
    room = _STEP if packed or request.content_length is None else request.content_length
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
                await share.take(_STEP)
                room += _STEP
            parts.append(chunk)
    share.give_back(keep=size)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _make_refusal() -> BodyRefused:
    return BodyRefused(413, f"the tap takes no body of more than {MAX_BODY >> 20} MB")
