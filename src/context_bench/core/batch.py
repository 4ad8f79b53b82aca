"""Answers that are completed together: scored, made into rows and stored at half of what it costs one by one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Batch"]

MAX_BATCH = 64

MAX_BATCH_DELAY = 0.01
"""Seconds: an answer is on disk within 50 ms, and what writes it down takes a part of that."""

MAX_LOOP_BLOCK = 0.003
"""Seconds for which one batch keeps the event loop busy: replies that come in meanwhile wait, and look slow."""

T = TypeVar("T")


class Batch(Generic[T]):
    """Gathers items until there are enough of them, or the first has waited long enough.

    How many are enough follows from the time that the last batch took.

    Args:
        complete: Takes a batch.
        fail: Told what `complete` raised.
        limit: The most items; with 1 nothing is to be gathered.
    """

    def __init__(
        self, complete: Callable[[list[T]], None], fail: Callable[[BaseException], None], limit: int = MAX_BATCH
    ) -> None:
        self._complete, self._fail = complete, fail
        self.limit = min(limit, MAX_BATCH)
        self._enough = 1
        self._items: list[T] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, item: T) -> None:
        """Add one item; the batch may be complete with it."""
        self._items.append(item)
        if len(self._items) >= self._enough:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MAX_BATCH_DELAY, self._flush_in_time)

    def _flush_in_time(self) -> None:
        self._timer = None
        self.flush()

    def flush(self) -> None:
        """Complete what was gathered so far."""
        items, self._items = self._items, []
        if not items:
            return
        started = time.perf_counter()
        try:
            self._complete(items)
        except Exception as error:  # noqa: BLE001 - whoever waits for the end of all work raises it
            self._fail(error)
        else:
            each = max((time.perf_counter() - started) / len(items), 1e-6)
            self._enough = max(1, min(self.limit, int(MAX_LOOP_BLOCK / each)))

    def close(self) -> None:
        """Complete what is left."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()
