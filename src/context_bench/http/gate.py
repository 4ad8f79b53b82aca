"""Decides when a request may be sent: rate limits, connections, and retries after a failure."""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from context_bench.errors import ConnectionFailed, LocalShortage, RequestFailed

DEAD_AFTER = 20
MAX_IN_FLIGHT = 1024  # requests to one endpoint by default: more would use up the ports of this machine
RECENT_REPLIES = 20
REFUSING_SHARE = (
    0.3  # share of 429s among recent replies from which on the server is over its limit, not just refusing at random
)
LEAST_REFUSALS = 3  # with 5% random 429s, about 1 in 50 runs of 100 requests is then held up
QUICK_GROWTH = 0.5  # places for each answer; near the limit that was refused, one for each round of answers
_RECHECK_SECONDS = 0.25


class Gate:
    """Admits requests to one endpoint, at most `limit` (or MAX_IN_FLIGHT) at a time; `place` names it in messages."""

    def __init__(
        self, place: str, limit: int | None = None, max_rpm: float | None = None, max_tpm: float | None = None
    ) -> None:
        self.place = place
        self._ceiling = float(limit or MAX_IN_FLIGHT)
        self._limit = self._ceiling
        self._refused_at = 0.0
        self._recent: deque[bool] = deque(maxlen=RECENT_REPLIES)  # True is a refusal
        self._interval = 60.0 / max_rpm if max_rpm else 0.0
        self._token_seconds = 60.0 / max_tpm if max_tpm else 0.0
        self._next_start = 0.0
        self._open_at = 0.0
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._failed_connections = 0
        self._death: str | None = None
        self.refusing = False
        self._shortage: LocalShortage | None = None

    def enter_at_once(self) -> bool:
        """Admit a request now if it need not wait, which is cheaper than `enter`; `leave` ends it."""
        if self._death or self._interval or self._waiting or self._in_flight >= int(self._limit):
            return False
        if (self._open_at or self._next_start) and self._wait(asyncio.get_running_loop().time()) > 0:
            return False
        self._in_flight += 1
        return True

    async def enter(self, deadline: float = math.inf) -> None:
        """Wait until a request may be sent; `leave` ends it.

        Raises RequestFailed if the deadline (by the loop's clock) passes while the server refuses everything. Waiting
        for our own limits has no deadline.
        """
        if self._death:
            raise self._make_closed_error(self._death)
        loop = asyncio.get_running_loop()
        if self._waiting or self._in_flight >= max(1, int(self._limit)):
            await self._turn(loop, deadline)
        else:
            self._in_flight += 1
        try:
            while (wait := self._wait(loop.time())) > 0 and not self._death:
                if self.refusing and loop.time() >= deadline:
                    raise self._refusing_error()
                await asyncio.sleep(min(wait, _RECHECK_SECONDS))  # it may close meanwhile
            if self._interval:
                self._next_start = max(self._next_start, loop.time()) + self._interval
            if self._death:
                raise self._make_closed_error(self._death)
        except BaseException:
            self.leave()
            raise

    @staticmethod
    def _make_closed_error(why: str) -> ConnectionFailed:
        error = ConnectionFailed(why)
        error.never_connected = True
        return error

    def _refusing_error(self) -> RequestFailed:
        if self._shortage is not None:
            return self._shortage
        return RequestFailed(f"{self.place} refused every attempt (429) until the deadline of this request", status=429)

    async def _turn(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        """Wait until another request ends: first come, first served."""
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        expiry = loop.call_at(deadline, self._expire, loop, turn) if deadline < math.inf else None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was handed over already
                self.leave()
            raise
        finally:
            if expiry is not None:
                expiry.cancel()

    def _expire(self, loop: asyncio.AbstractEventLoop, turn: asyncio.Future[None]) -> None:
        """End the wait of a request at its deadline, but only if the server refuses everything."""
        if turn.done():
            return
        if self.refusing:
            turn.set_exception(self._refusing_error())
        else:
            loop.call_later(_RECHECK_SECONDS, self._expire, loop, turn)

    def _wait(self, now: float) -> float:
        return max(self._open_at, self._next_start) - now

    def leave(self) -> None:
        """End a request, and admit the next."""
        self._in_flight -= 1
        if self._waiting:
            self._wake()

    def _wake(self) -> None:
        while self._waiting and self._in_flight < max(1, int(self._limit)):
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1  # taken for the one that waits, before a new one can take it
                turn.set_result(None)

    def note_refusal(self, pause: float, shortage: LocalShortage | None = None) -> None:
        """Note a 429 or a shortage on this machine. After a shortage or many 429s, halve the limit and hold all
        requests; after a few 429s, only the refused requests wait.
        """
        self._recent.append(True)
        refusals = sum(self._recent)
        # A 429 arrives sooner than an answer, so requests that are still open have to be counted too.
        known = min(RECENT_REPLIES, len(self._recent) + self._in_flight)
        if shortage is None and (refusals < LEAST_REFUSALS or refusals < REFUSING_SHARE * known):
            return
        self._recent.clear()
        self.refusing, self._shortage = True, shortage
        now = asyncio.get_running_loop().time()
        if now >= self._open_at:  # refusals of one burst count once
            self._refused_at = min(self._limit, self._in_flight)
            self._limit = max(1.0, self._refused_at / 2)
        self._open_at = max(self._open_at, now + pause)

    @property
    def counts_tokens(self) -> bool:
        """Whether the tokens per minute are limited."""
        return self._token_seconds > 0

    def spend(self, tokens: int) -> None:
        """Count spent tokens; the next request waits until the rate allows it."""
        if self._token_seconds:
            now = asyncio.get_running_loop().time()
            self._next_start = max(self._next_start, now) + tokens * self._token_seconds

    def note_answer(self, *, served: bool = True) -> None:
        """Note an answer: the server is alive, and the limit grows a little unless it refused (`served=False`)."""
        self._failed_connections = 0
        if not served:
            return
        self._recent.append(False)
        self.refusing = False
        if self._limit < self._ceiling:
            is_far = self._limit < max(8, 0.75 * self._refused_at)
            self._limit = min(self._ceiling, self._limit + (QUICK_GROWTH if is_far else 1 / self._limit))
            self._wake()

    def unreachable(self, why: str) -> None:
        """Note a failed connection; after enough of them in a row the gate closes."""
        self._failed_connections += 1
        if self._failed_connections >= DEAD_AFTER:
            self.close(f"{self.place} is down: {self._failed_connections} connections in a row failed ({why})")

    def close(self, why: str) -> None:
        """Stop admitting requests; waiting ones fail with the reason."""
        self._death = why
        self._limit = self._ceiling
        self._wake()

    def reopen(self) -> None:
        """Admit requests again, since the server answered."""
        self._death, self._failed_connections = None, 0

    @property
    def closed(self) -> bool:
        """Whether the endpoint was found to be dead."""
        return self._death is not None


_TRANSIENT = {408, 409, 429}


def is_transient(status: int) -> bool:
    """Whether a later attempt may succeed: after timeouts, conflicts, rate limits and server errors."""
    return status in _TRANSIENT or 500 <= status <= 599


def retry_after(value: str | None, now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds to wait by a Retry-After header (a number or a date); None if unreadable."""
    if not value:
        return None
    try:
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now())
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to retry."""

    # After the first attempt. A 429 does not use one up: it is retried until the deadline, unless this is 0.
    max_retries: int = 3
    base_delay: float = 1.0  # seconds before the first retry; doubled each time
    max_delay: float = 60.0  # the longest wait, whatever the server asks for
    deadline: float = 300.0  # seconds for one example, all attempts and waits together

    def allows(self, retries: int, *, refused: bool) -> bool:
        """Whether to try again after this number of retries; `refused` means that the last attempt got a 429."""
        return self.max_retries > 0 if refused else retries < self.max_retries

    def delay(self, retry: int, asked: float | None, jitter: Callable[[], float] = random.random) -> float:
        """Return the seconds before retry number `retry` (from 0); at least as long as the server asked for."""
        backoff = min(self.max_delay, self.base_delay * 2.0 ** min(retry, 64)) * (0.5 + jitter() / 2)
        return min(self.max_delay, max(backoff, asked or 0.0))
