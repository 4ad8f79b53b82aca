"""When a request is tried again, and how long to wait before it: the only place that decides."""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["RetryPolicy", "is_transient", "retry_after"]

_TRANSIENT = {408, 409, 429}


def is_transient(status: int) -> bool:
    """Whether a later attempt may succeed: time-outs, conflicts, rate limits and the server's own faults."""
    return status in _TRANSIENT or 500 <= status <= 599


def retry_after(value: str | None, now: Callable[[], float] = time.time) -> float | None:
    """Seconds to wait by a Retry-After header, given as a number or as a date; None when it says nothing."""
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
    """How often and how patiently.

    Attributes:
        max_retries: Attempts after the first. A 429 uses up none, and is waited out until the deadline; with 0 it is
            not tried again either.
        base_delay: Seconds before the first retry; doubled each time.
        max_delay: The longest wait, whatever the server asks for.
        deadline: Seconds for one example, all attempts and waits together.
    """

    max_retries: int = 3
    base_delay: float = 1.0
    max_delay: float = 60.0
    deadline: float = 300.0

    def allows(self, retries: int, *, refused: bool) -> bool:
        """Whether there may be another attempt after so many retries; `refused` says that this one met a 429."""
        return self.max_retries > 0 if refused else retries < self.max_retries

    def delay(self, retry: int, asked: float | None, jitter: Callable[[], float] = random.random) -> float:
        """Seconds before retry number `retry` (from 0); the server's wish is a lower bound."""
        backoff = min(self.max_delay, self.base_delay * 2.0 ** min(retry, 64)) * (0.5 + jitter() / 2)
        return min(self.max_delay, max(backoff, asked or 0.0))
