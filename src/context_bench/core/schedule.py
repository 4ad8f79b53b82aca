"""The scheduler: reads examples lazily and keeps all slots of all lanes busy.

A lane is a queue with a number of slots, the most jobs that run at a time. Each endpoint has its own lane. Systems in
this process share one lane, usually with one slot: they run one at a time, so their latency is meaningful. Lanes stay
within a few examples of each other, so systems are interleaved and memory does not grow with the dataset.

An engine decides where systems and slow evaluators run: in this process or on a cluster. Order, interleaving, limits
and the store stay in the process that started the run.
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

_LOOKUP_BATCH = 16  # examples to read and look up together; larger batches gain little

MAX_QUOTA = 64  # the most jobs of systems in this process in one batch


@dataclass(slots=True)
class Lane:
    """Systems that share slots."""

    slots: int
    systems: list[tuple[int, System]] = field(default_factory=list)
    # Whether they work in this process. A slot then takes up to `quota` jobs at a time, and `quota` grows to
    # `max_quota` while the jobs are quick.
    here: bool = False
    quota: int = 1
    max_quota: int = MAX_QUOTA
    position: int = 0
    pending: deque[Job] = field(default_factory=deque)


class Feed:
    """Hands each example to every lane once; reads only as far ahead as the slowest lane allows.

    Args:
        source: The examples.
        width: The number of jobs per example, over all lanes and repeats.
        ahead: How many examples a fast lane may be ahead of a slow one, plus or minus one batch of reading.
        screen: Takes a batch of jobs, and returns those that are not in the cache.

    Attributes:
        stopped: Whether no more jobs are handed out.
        error: The error that reading the examples raised, if any.
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
        """Hand out no more jobs; jobs that were handed out continue."""
        self._ended = self.stopped = True
        self._held.clear()
        for lane in self._lanes:
            lane.pending.clear()
        self._moved.set()

    def drop(self, system: System) -> None:
        """Hand out no more jobs of one system; a lane without other systems no longer holds up the others."""
        for lane in self._lanes:
            lane.systems = [(place, each) for place, each in lane.systems if each is not system]
            lane.pending = deque(job for job in lane.pending if job.system is not system)
        self._lanes = [lane for lane in self._lanes if lane.systems]
        if self._lanes:
            self._forget_finished()
        self._moved.set()

    async def next(self, lane: Lane) -> Job | None:
        """Wait for the next job of a lane; None if there are no more."""
        while (job := self.next_at_once(lane)) is None:
            if not lane.systems:
                return None
            if self._must_wait(lane):
                self._moved.clear()
                await self._moved.wait()
            elif self._ended and lane.position - self._first >= len(self._held):
                return None
            else:
                await asyncio.sleep(0)  # all jobs were cached: let other tasks run
        return job

    def next_at_once(self, lane: Lane) -> Job | None:
        """Return the next job of a lane if one is ready, else None."""
        if not lane.pending and lane.systems and not self._must_wait(lane):
            self._fill(lane)
        return lane.pending.popleft() if lane.pending else None

    def take_more(self, lane: Lane, count: int) -> list[Job]:
        """Take up to a number of jobs that are ready."""
        pending = lane.pending
        return [pending.popleft() for _ in range(min(count, len(pending)))]

    def give_back(self, lane: Lane, jobs: Sequence[Job]) -> None:
        """Put jobs that were not done back at the front; drop them if the feed is stopped."""
        if not self.stopped:
            lane.pending.extendleft(reversed(self._keep_wanted(lane, jobs)))

    @staticmethod
    def _keep_wanted(lane: Lane, jobs: Sequence[Job]) -> list[Job]:
        """Drop the jobs of dropped systems."""
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
        if not self.stopped:  # rows from the cache may have stopped the run or dropped a system
            lane.pending.extend(left if len(left) == len(jobs) else self._keep_wanted(lane, left))
        if self._lanes:
            self._forget_finished()

    def _read(self, wanted: int) -> None:
        items = []
        try:
            for item in islice(self._source, wanted):
                items.append(item)  # noqa: PERF402 - those before one that fails are good
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - a failure ends the input only
            self.error = error
        self._held.extend(items)
        if len(items) < wanted:
            self._ended = True
            self._moved.set()

    def _forget_finished(self) -> None:
        """Forget the examples that all lanes have handed out."""
        slowest = min([lane.position for lane in self._lanes])
        if slowest > self._first:
            for _ in range(min(slowest - self._first, len(self._held))):
                self._held.popleft()
            self._first = slowest
            self._moved.set()


class Workers:
    """Runs the jobs of a feed in all slots of all lanes; starts when it is constructed.

    `work_here` runs a batch of jobs of systems in this process and returns those that it did not start; None runs them
    one by one.
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
        # done when all jobs are; fails with the first error of `work` itself, which ends the run
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
        """End the work with an error, unless it has ended."""
        if not self.over.done():
            self.over.set_exception(error)

    async def _fill_slot(self, lane: Lane, number: int) -> None:
        feed, work, work_here = self._feed, self._work, self._work_here if lane.here else None
        has_next = number < lane.slots
        while (job := feed.next_at_once(lane) or await feed.next(lane)) is not None:
            if has_next:  # a slot opens when the one before it has work: unused slots cost nothing
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
        """Cancel the remaining work and wait for its end."""
        left = list(self._tasks)
        give_up(left)
        await asyncio.gather(*left, return_exceptions=True)
        if self.over.done() and not self.over.cancelled():
            self.over.exception()  # perhaps nothing awaits it any more


async def run_examples(examples: Iterator[Item], slots: int, work: Callable[[Job], Awaitable[object]]) -> None:
    """Run `work`, which asks no system, once for each example, `slots` at a time.

    If reading `examples` raises, raise that after the work on the earlier examples.
    """
    lane = Lane(slots, [(0, Passthrough())])  # a placeholder, never called
    feed = Feed(examples, [lane], 1, 1, 2 * slots + 2)
    workers = Workers(feed, [lane], work)
    try:
        await workers.over
    finally:
        await workers.close()
    if feed.error is not None:
        raise feed.error


class SystemCaller(Protocol):
    """Calls one system on one example; `works_elsewhere` means that our own work does not compete with it."""

    works_elsewhere: bool

    def call(self, example: Example) -> Awaitable[Outcome]: ...


class Placement(Protocol):
    """Where the systems and slow evaluators of one run work."""

    lanes: list[Lane]  # the queues of the run
    max_judging: int  # the most answers that wait for slow evaluators while their systems continue

    def make_caller(self, system: System) -> SystemCaller:
        """Return the caller of a system."""

    def call_several(self, calls: Sequence[tuple[System, Example]], outcomes: list[Outcome]) -> Awaitable[None]:
        """Call systems of `here` lanes: at least one call, and as many more as one batch can do efficiently."""

    def open_scoring(self) -> Executor:
        """Return the executor of slow evaluators; the run shuts it down."""

    def choose_local(self, parts: Sequence[Any]) -> list[Any]:
        """Return the parts to prepare and finish in this process."""

    async def close(self) -> None:
        """Release everything that was opened for the run."""


@runtime_checkable
class Engine(Protocol):
    """A way to place runs; `name` is in the `config` of a result, but in no cache key."""

    name: str

    def check(self, systems: Any, *, debug: bool) -> None:
        """Refuse runs that this engine cannot do, before anything is built or sent.

        Raises:
            UsageError: The message says why, and what to do instead.
        """

    async def open(self, systems: Sequence[System], parts: Sequence[Any], max_workers: int | None) -> Placement:
        """Open the placement of a run, for its systems and the evaluators that are known in advance."""


class LocalEngine:
    """Runs everything in this process: endpoints on its event loop, other systems and slow evaluators in threads."""

    name = "local"

    def check(self, systems: Any, *, debug: bool) -> None:
        """Accept every run."""

    async def open(self, systems: Sequence[System], parts: Sequence[Any], max_workers: int | None) -> Placement:  # noqa: ARG002
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
        """Make the calls in one thread: handing over one often takes longer than the call, so several share that
        cost."""
        prepared = [(self.make_caller(system), example) for system, example in calls]
        return asyncio.get_running_loop().run_in_executor(self._threads, call_several, prepared, outcomes)

    def open_scoring(self) -> Executor:
        return Threads(_count_cores(), "context-bench-score")

    def choose_local(self, parts: Sequence[Any]) -> list[Any]:
        return list(parts)

    async def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)


def count_workers(system: System, max_workers: int | None) -> int:
    """Return how many examples a system may have in flight; 1 by default on this machine."""
    traits = system_traits(system)
    own = traits.max_workers if is_endpoint(system) and not traits.takes_turns else None
    return max_workers or own or 1


def build_lanes(systems: Sequence[System], max_workers: int | None) -> list[Lane]:
    """Build one lane for each endpoint, and one for all systems that work on this machine."""
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
