"""The one scheduler: reads examples lazily, and keeps every lane busy within its bound.

A lane is a queue with so many slots. Each endpoint has a lane of its own; systems in this process share
one, so that with one slot they run one at a time and their latency means something. Lanes stay within
a few examples of each other: systems are interleaved, and memory does not grow with the dataset.

An engine says where systems and slow evaluators run: in this process, or on a cluster. Order, interleaving, limits and
the store stay with the process that started the run.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, runtime_checkable

from context_bench.core.call import Caller, Outcome, call_several
from context_bench.core.examples import Item
from context_bench.core.row import Job
from context_bench.core.threads import Threads, find_failure, give_up
from context_bench.systems.reference import Passthrough
from context_bench.traits import is_endpoint, system_traits
from context_bench.types import Example, System

_LOOKUP_BATCH = 16  # examples that are read and looked up together; larger batches gain little

MAX_QUOTA = 64  # the most jobs of systems in this process that are done at a time


@dataclass(slots=True)
class Lane:
    """Systems that share slots."""

    slots: int
    systems: list[tuple[int, System]] = field(default_factory=list)
    # whether their work is done in this process. Their jobs then come to a slot several at a time; `quota` is how
    # many, as long as they are done quickly, and `max_quota` the most.
    here: bool = False
    quota: int = 1
    max_quota: int = MAX_QUOTA
    position: int = 0
    pending: deque[Job] = field(default_factory=deque)


class Feed:
    """Hands each example to every lane once, and reads no further than the slowest lane allows.

    Args:
        source: The examples.
        width: Jobs for each example, over all lanes and repeats.
        ahead: How many examples a fast lane may be ahead of a slow one, give or take those that are read together.
        screen: Takes jobs and gives back those that are left to do; a few come at once, which costs less.

    Attributes:
        stopped: Whether nothing more is handed out.
        error: What reading the examples raised, if anything.
    """

    def __init__(
        self,
        source: Iterator[Item],
        lanes: list[Lane],
        width: int,
        repeats: int,
        ahead: int,
        screen: Callable[[list[Job]], list[Job]] = lambda jobs: jobs,
    ) -> None:
        self._source, self._lanes, self._screen = source, lanes, screen
        self._width, self._repeats, self._ahead = width, repeats, ahead
        self._usual = self._stride = max(1, min(_LOOKUP_BATCH, ahead // 8))
        self._held: deque[Item] = deque()
        self._first = 0
        self._ended = self.stopped = False
        self._moved = asyncio.Event()
        self.error: BaseException | None = None

    def stop(self) -> None:
        """Hand out nothing more; what was handed out goes on."""
        self._ended = self.stopped = True
        self._held.clear()
        for lane in self._lanes:
            lane.pending.clear()
        self._moved.set()

    def drop(self, system: System) -> None:
        """Hand out no more jobs of one system; a lane that has no other holds nobody up from now on."""
        for lane in self._lanes:
            lane.systems = [(place, each) for place, each in lane.systems if each is not system]
            lane.pending = deque(job for job in lane.pending if job.system is not system)
        self._lanes = [lane for lane in self._lanes if lane.systems]
        if self._lanes:
            self._forget_finished()
        self._moved.set()

    async def next(self, lane: Lane) -> Job | None:
        """Return the next job of a lane, waiting for it if need be; None when there are no more."""
        while (job := self.next_at_once(lane)) is None:
            if not lane.systems:
                return None
            if self._must_wait(lane):
                self._moved.clear()
                await self._moved.wait()
            elif self._ended and lane.position - self._first >= len(self._held):
                return None
            else:
                await asyncio.sleep(0)  # every job was cached already: let other tasks run
        return job

    def next_at_once(self, lane: Lane) -> Job | None:
        """Return the next job of a lane if there is one now, else None."""
        if not lane.pending and lane.systems and not self._must_wait(lane):
            self._fill(lane)
        return lane.pending.popleft() if lane.pending else None

    def take_more(self, lane: Lane, count: int) -> list[Job]:
        """Take up to so many more jobs that are there already."""
        pending = lane.pending
        return [pending.popleft() for _ in range(min(count, len(pending)))]

    def give_back(self, lane: Lane, jobs: Sequence[Job]) -> None:
        """Put back jobs that were not done, to be the next ones; unless nothing more is to be handed out."""
        if not self.stopped:
            lane.pending.extendleft(reversed(self._keep_wanted(lane, jobs)))

    @staticmethod
    def _keep_wanted(lane: Lane, jobs: Sequence[Job]) -> list[Job]:
        """Leave out the jobs of systems that were dropped."""
        kept = {id(system) for _, system in lane.systems}
        return [job for job in jobs if id(job.system) in kept]

    def _must_wait(self, lane: Lane) -> bool:
        return lane.position - self._first >= self._ahead and not self._ended

    def _fill(self, lane: Lane) -> None:
        """Add the jobs of the next few examples to a lane."""
        index = lane.position - self._first
        stride = max(self._stride, lane.quota // (len(lane.systems) * self._repeats))
        if index >= len(self._held) and not self._ended:
            self._read(stride)
        items = list(islice(self._held, index, index + stride))
        if not items:
            return
        jobs: list[Job] = []
        for position, item in enumerate(items, lane.position):
            base = (position if item.place is None else item.place) * self._width
            for repeat in range(self._repeats):
                jobs += [
                    Job(base + place * self._repeats + repeat, system, item, repeat) for place, system in lane.systems
                ]
        lane.position += len(items)
        left = self._screen(jobs)
        self._stride = self._usual if left else min(2 * self._stride, 4 * _LOOKUP_BATCH)
        if not self.stopped:  # what is known may have been the reason to stop, or to drop a system
            lane.pending.extend(left if len(left) == len(jobs) else self._keep_wanted(lane, left))
        if self._lanes:
            self._forget_finished()

    def _read(self, wanted: int) -> None:
        items = []
        try:
            for item in islice(self._source, wanted):
                items.append(item)  # noqa: PERF402 - those before one that fails are good
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - input that fails ends the input, not what was done before
            self.error = error
        self._held.extend(items)
        if len(items) < wanted:
            self._ended = True
            self._moved.set()

    def _forget_finished(self) -> None:
        """Drop the examples that all lanes have handed out."""
        slowest = min([lane.position for lane in self._lanes])
        if slowest > self._first:
            for _ in range(min(slowest - self._first, len(self._held))):
                self._held.popleft()
            self._first = slowest
            self._moved.set()


class Workers:
    """Works through a feed with all slots of all lanes, from the moment that it is made.

    `work_here` does several jobs of systems in this process, and returns those that are left; None does them one by
    one.
    """

    def __init__(
        self,
        feed: Feed,
        lanes: Sequence[Lane],
        work: Callable[[Job], Awaitable[object]],
        work_here: Callable[[list[Job]], Awaitable[list[Job]]] | None = None,
    ) -> None:
        self._feed, self._work, self._work_here = feed, work, work_here
        self._tasks: set[asyncio.Future[None]] = set()
        # done when all jobs are; it has the first error of `work` itself, which ends the run
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for lane in lanes:
            self._start(lane, 1)

    def _start(self, lane: Lane, number: int) -> None:
        task = asyncio.ensure_future(self._fill_slot(lane, number))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Future[None]) -> None:
        self._tasks.discard(task)
        if (error := find_failure(task)) is not None:
            self.fail(error)
        elif not self._tasks and not self.over.done():
            self.over.set_result(None)

    def fail(self, error: BaseException) -> None:
        """End the work with an error, unless it is over."""
        if not self.over.done():
            self.over.set_exception(error)

    async def _fill_slot(self, lane: Lane, number: int) -> None:
        feed, work, work_here = self._feed, self._work, self._work_here if lane.here else None
        has_next = number < lane.slots
        while (job := feed.next_at_once(lane) or await feed.next(lane)) is not None:
            if has_next:  # a slot is opened when the one before it has work: a thousand for six examples cost nothing
                has_next = False
                self._start(lane, number + 1)
            if work_here is None:
                await work(job)
                continue
            jobs = [job, *feed.take_more(lane, lane.quota - 1)]
            left = await work_here(jobs)
            if left:
                feed.give_back(lane, left)
                lane.quota = max(1, len(jobs) - len(left))
            elif len(jobs) == lane.quota:
                lane.quota = min(2 * lane.quota, lane.max_quota)

    async def close(self) -> None:
        """Cancel the work that is left, and wait until it has ended."""
        left = list(self._tasks)
        give_up(left)
        await asyncio.gather(*left, return_exceptions=True)
        if self.over.done() and not self.over.cancelled():
            self.over.exception()  # it may be that nobody awaits it any more


async def run_examples(examples: Iterator[Item], slots: int, work: Callable[[Job], Awaitable[object]]) -> None:
    """Work on each example once, `slots` of them at a time; for work that asks no system.

    Raises what `examples` raised, after the work on those before it.
    """
    lane = Lane(slots, [(0, Passthrough())])  # stands for the system, and is never called
    feed = Feed(examples, [lane], 1, 1, 2 * slots + 2)
    workers = Workers(feed, [lane], work)
    try:
        await workers.over
    finally:
        await workers.close()
    if feed.error is not None:
        raise feed.error


class SystemCaller(Protocol):
    """Calls one system on one example; `works_elsewhere` says that our own work does not compete with it."""

    works_elsewhere: bool

    def call(self, example: Example) -> Awaitable[Outcome]: ...


class Placement(Protocol):
    """The places of one run, from its start to its end."""

    lanes: list[Lane]  # the queues of the run, each with so many slots
    max_judging: int  # answers that may wait for slow evaluators while their systems go on

    def make_caller(self, system: System) -> SystemCaller:
        """Return what calls a system."""

    def call_several(self, calls: Sequence[tuple[System, Example]], outcomes: list[Outcome]) -> Awaitable[None]:
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

    def call_several(self, calls: Sequence[tuple[System, Example]], outcomes: list[Outcome]) -> Awaitable[None]:
        """Call them in a thread: to hand one call over takes longer than many a system, so several share that."""
        prepared = [(self.make_caller(system), example) for system, example in calls]
        return asyncio.get_running_loop().run_in_executor(self._threads, call_several, prepared, outcomes)

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
    queues = sum(system_traits(system).queues for _, system in here.systems)
    if max_workers is not None and max_workers > 1:
        here.slots = max_workers * max(1, queues)
    here.here = not any(is_endpoint(system) for _, system in here.systems)
    return [*lanes, here] if here.systems else lanes


def _count_cores() -> int:
    return os.cpu_count() or 1
