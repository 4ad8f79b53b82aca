"""Calls on their way to a worker: which go together, and what is known of those whose worker died."""

from __future__ import annotations

import asyncio
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from context_bench.engine.ray.ray_worker import Call

__all__ = ["LEAST_WORK", "Parcel", "ParcelQueue", "WorkerLost", "pack_calls"]

LEAST_WORK = 0.1
"""Seconds of work that a task should be: to hand one over takes about two milliseconds."""

MAX_PARCELS = 256
"""The most single calls that are sent together."""


class WorkerLost(Exception):
    """A worker died while it was at these calls, and its node did not."""


@dataclass(slots=True, eq=False)
class Parcel:
    """Calls that are sent together.

    Attributes:
        seconds: The worker stops after that time, and answers the first calls alone; None answers all.
        single: It is one call of many like it: several such parcels may be sent as one.
        answers: The answers, in order; WorkerLost when the worker died of them or beside them.
    """

    calls: Sequence[Call]
    seconds: float | None
    single: bool
    answers: asyncio.Future[list[Any]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    @property
    def keys(self) -> set[int]:
        """The parts that it needs."""
        return {key for key, _ in self.calls}


class ParcelQueue:
    """First come, first served; single calls are taken as many at a time as make enough work."""

    def __init__(self) -> None:
        self._waiting: deque[Parcel] = deque()
        self._changed = asyncio.Event()
        self._seconds: dict[int, float] = {}

    def put(self, parcel: Parcel) -> None:
        """Add a parcel."""
        self._waiting.append(parcel)
        self._changed.set()

    def put_back(self, parcels: Iterable[Parcel]) -> None:
        """Put back parcels that were not done, before all others."""
        self._waiting.extendleft(reversed(list(parcels)))
        self._changed.set()

    def take_all(self, chosen: Callable[[Parcel], bool]) -> list[Parcel]:
        """Take out every parcel of that kind."""
        taken = [parcel for parcel in self._waiting if chosen(parcel)]
        self._waiting = deque(parcel for parcel in self._waiting if parcel not in taken)
        return taken

    def fail_all(self, error: BaseException) -> None:
        """End all that waits."""
        for parcel in self._waiting:
            if not parcel.answers.done():
                parcel.answers.set_exception(error)
        self._waiting.clear()
        self._changed.set()

    def wake(self) -> None:
        """Let everybody look again: somebody may have been told to stop."""
        self._changed.set()

    def note_seconds(self, key: int, seconds: float) -> None:
        """Learn how long a call of a part takes."""
        known = self._seconds.get(key)
        self._seconds[key] = seconds if known is None else 0.8 * known + 0.2 * seconds

    async def take(self, fits: Callable[[Parcel], bool], over: Callable[[], bool]) -> list[Parcel]:
        """Wait for a parcel that fits, and take what may go with it; nothing when it is over."""
        while not over():
            for index, parcel in enumerate(self._waiting):
                if fits(parcel):
                    del self._waiting[index]
                    return [parcel, *self._take_more(parcel, fits)]
            self._changed.clear()
            await self._changed.wait()
        return []

    def _take_more(self, first: Parcel, fits: Callable[[Parcel], bool]) -> list[Parcel]:
        more: list[Parcel] = []
        work = self._estimate(first)
        while first.single and self._waiting and len(more) < MAX_PARCELS and work < LEAST_WORK:
            parcel = self._waiting[0]
            if not parcel.single or not fits(parcel):
                break
            more.append(self._waiting.popleft())
            work += self._estimate(parcel)
        return more

    def _estimate(self, parcel: Parcel) -> float:
        """Guess the seconds of a single call; one of which nothing is known goes alone."""
        return self._seconds.get(parcel.calls[0][0], LEAST_WORK)


def pack_calls(calls: Sequence[Call]) -> bytes:
    """Pickle calls; what plain pickle cannot, Ray's own can."""
    try:
        return pickle.dumps(calls, protocol=5)
    except Exception:  # noqa: BLE001 - objects of somebody else, made in a notebook for example
        import ray.cloudpickle as cloudpickle

        return bytes(cloudpickle.dumps(calls, protocol=5))
