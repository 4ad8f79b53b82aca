"""Where the work of a run is done: in this process, or on the workers of a cluster.

What an example goes through is the same code everywhere. An engine only says where systems are called and where slow
evaluators run; order, interleaving, budgets, limits and the store stay with whoever started the run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, Protocol, runtime_checkable

from context_bench.engine.call import Caller, Outcome, call_several, is_endpoint
from context_bench.engine.scheduler import Lane
from context_bench.engine.threads import Threads, call_in_thread
from context_bench.traits import system_traits
from context_bench.types import Example, System

__all__ = ["Engine", "LocalEngine", "Placement", "SystemCaller", "build_lanes", "count_workers"]


class SystemCaller(Protocol):
    """Calls one system on one example; `works_elsewhere` says that our own work does not compete with it."""

    works_elsewhere: bool

    async def call(self, example: Example) -> Outcome: ...


class Placement(Protocol):
    """The places of one run, from its start to its end.

    Attributes:
        lanes: The queues of the run, each with so many slots.
        max_judging: Answers that may wait for slow evaluators while their systems go on.
    """

    lanes: list[Lane]
    max_judging: int

    def make_caller(self, system: System) -> SystemCaller:
        """Return what calls a system."""

    async def call_several(self, calls: Sequence[tuple[System, Example]], outcomes: list[Outcome]) -> None:
        """Call systems of lanes that are `here`: at least the first call, and as many more as make sense at a time."""

    def open_scoring(self) -> Executor:
        """Return what runs slow evaluators; the run shuts it down."""

    def choose_local(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts that are prepared and finished in this process."""

    async def close(self) -> None:
        """End what was opened for the run."""


@runtime_checkable
class Engine(Protocol):
    """A way to place runs; `name` stands in the `config` of a result, and in no cache key."""

    name: str

    def check(self, systems: Any, *, debug: bool) -> None:
        """Refuse what cannot be run in this way, before anything is built or sent.

        Raises:
            UsageError: One sentence says what, and what to do instead.
        """

    async def open(self, systems: Sequence[System], parts: Sequence[Any], max_workers: int | None) -> Placement:
        """Open the places of a run: of its systems, and of the evaluators that are known beforehand."""


class LocalEngine:
    """Does everything in this process: endpoints on its event loop, other systems and slow evaluators in threads."""

    name = "local"

    def check(self, systems: Any, *, debug: bool) -> None:
        """Refuse nothing."""

    async def open(self, systems: Sequence[System], parts: Sequence[Any], max_workers: int | None) -> Placement:  # noqa: ARG002
        """Open the places of a run."""
        return _LocalPlacement(build_lanes(systems, max_workers))


class _LocalPlacement:
    def __init__(self, lanes: list[Lane]) -> None:
        self.lanes = lanes
        self.max_judging = 8 * _count_cores()
        self._threads = Threads(max(lane.slots for lane in lanes), "context-bench-system")
        self._callers: dict[int, Caller] = {}

    def make_caller(self, system: System) -> Caller:
        caller = self._callers.get(id(system))
        if caller is None:
            caller = self._callers[id(system)] = Caller(system, self._threads)
        return caller

    async def call_several(self, calls: Sequence[tuple[System, Example]], outcomes: list[Outcome]) -> None:
        """Call them in a thread: to hand one call over takes longer than many a system, so several share that."""
        prepared = [(self.make_caller(system), example) for system, example in calls]
        await call_in_thread(self._threads, call_several, prepared, outcomes)

    def open_scoring(self) -> Executor:
        return Threads(_count_cores(), "context-bench-score")

    def choose_local(self, parts: Sequence[Any]) -> list[Any]:
        return list(parts)

    async def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)


def count_workers(system: System, max_workers: int | None) -> int:
    """Count the examples that a system may have in flight; work on this machine has one lane, its own or shared."""
    traits = system_traits(system)
    own = traits.max_workers if is_endpoint(system) and not traits.takes_turns else None
    return max_workers or own or 1


def build_lanes(systems: Sequence[System], max_workers: int | None) -> list[Lane]:
    """Build one lane for each endpoint, and one for all systems whose work is done on this machine."""
    lanes: list[Lane] = []
    here = Lane(max_workers or 1)
    for place, system in enumerate(systems):
        traits = system_traits(system)
        if is_endpoint(system) and not traits.takes_turns:
            lanes.append(Lane(count_workers(system, max_workers), [(place, system)]))
        else:
            here.systems.append((place, system))
    here.here = not any(is_endpoint(system) for _, system in here.systems)
    return [*lanes, here] if here.systems else lanes


def _count_cores() -> int:
    return os.cpu_count() or 1
