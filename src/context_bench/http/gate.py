"""How many requests an endpoint gets at once, and how fast: one gate for all who talk to it.

The limit shrinks when the server says 429 and grows back as it answers; a pause holds everyone, not
only the request that was refused. Twenty failed connections in a row close the gate until somebody answers a probe.
"""

from __future__ import annotations

import asyncio
from collections import deque

from context_bench.errors import ConnectionFailed

__all__ = ["Gate"]

DEAD_AFTER = 20
_LOOK_AGAIN = 0.25


class Gate:
    """Admits requests to one endpoint.

    Args:
        place: The endpoint's name, for messages.
        limit: The most requests in flight; None sets no bound of its own.
        max_rpm: The most requests started in a minute.
        max_tpm: The most tokens spent in a minute.
    """

    def __init__(
        self, place: str, limit: int | None = None, max_rpm: float | None = None, max_tpm: float | None = None
    ) -> None:
        self.place = place
        self._ceiling = float(limit or 100_000)
        self._limit = self._ceiling
        self._interval = 60.0 / max_rpm if max_rpm else 0.0
        self._token_seconds = 60.0 / max_tpm if max_tpm else 0.0
        self._next_start = 0.0
        self._open_at = 0.0
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._failed_connections = 0
        self._death: str | None = None

    def enter_at_once(self) -> bool:
        """Go in if nothing stands against it, which costs less than to wait for nothing; leave() goes out."""
        if self._death or self._interval or self._waiting or self._in_flight >= int(self._limit):
            return False
        if (self._open_at or self._next_start) and self._wait(asyncio.get_running_loop().time()) > 0:
            return False
        self._in_flight += 1
        return True

    async def enter(self) -> None:
        """Go in when there is room and time for it; leave() goes out."""
        if self._death:
            raise ConnectionFailed(self._death)
        loop = asyncio.get_running_loop()
        if self._waiting or self._in_flight >= max(1, int(self._limit)):
            await self._turn(loop)
        else:
            self._in_flight += 1
        try:
            while (wait := self._wait(loop.time())) > 0 and not self._death:
                await asyncio.sleep(min(wait, _LOOK_AGAIN))  # it may close meanwhile
            if self._interval:
                self._next_start = max(self._next_start, loop.time()) + self._interval
            if self._death:
                raise ConnectionFailed(self._death)
        except BaseException:
            self.leave()
            raise

    async def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until somebody who leaves hands his place over: first come, first served."""
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was handed over already
                self.leave()
            raise

    def _wait(self, now: float) -> float:
        return max(self._open_at, self._next_start) - now

    def leave(self) -> None:
        """Make room for another."""
        self._in_flight -= 1
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        while self._waiting and self._in_flight < max(1, int(self._limit)):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1  # for him: nobody who comes now may be faster
                turn.set_result(None)

    def refused(self, pause: float) -> None:
        """The server said 429: halve what it gets, and hold everyone for a while."""
        now = asyncio.get_running_loop().time()
        if now >= self._open_at:  # replies to one and the same burst count once
            self._limit = max(1.0, min(self._limit, self._in_flight) / 2)
        self._open_at = max(self._open_at, now + pause)

    def spend(self, tokens: int) -> None:
        """So many tokens were spent: the next request waits until they fit into the rate."""
        if self._token_seconds:
            now = asyncio.get_running_loop().time()
            self._next_start = max(self._next_start, now) + tokens * self._token_seconds

    def answered(self) -> None:
        """The server answered: it is alive, and may get a little more."""
        self._failed_connections = 0
        if self._limit < self._ceiling:
            self._limit = min(self._ceiling, self._limit + 1 / self._limit)
            self._wake()

    def unreachable(self, why: str) -> None:
        """A connection failed; after enough of them in a row nobody is let in any more."""
        self._failed_connections += 1
        if self._failed_connections >= DEAD_AFTER:
            self.close(f"{self.place} is down: {self._failed_connections} connections in a row failed ({why})")

    def close(self, why: str) -> None:
        """Let nobody in any more; everybody who waits is told why."""
        self._death = why
        self._limit = self._ceiling
        self._wake()

    def reopen(self) -> None:
        """Somebody answered after all: let everybody in again."""
        self._death, self._failed_connections = None, 0

    @property
    def closed(self) -> bool:
        """Whether the endpoint was found to be dead."""
        return self._death is not None
