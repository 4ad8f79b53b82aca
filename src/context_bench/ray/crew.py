"""Workers of one kind: started where nodes have room, given work, and replaced when they die.

A worker that dies loses only its current calls, which are repeated elsewhere. If its node is still alive, these calls
are repeated one by one, and a call that kills a second worker is given up.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.core.call import Outcome
from context_bench.errors import ContextBenchError, UsageError, warn
from context_bench.ray.cluster import RayCluster
from context_bench.ray.ray_worker import Call, RayWorker, Timed
from context_bench.ray.shipping import Parcel, ParcelQueue, Parts, WorkerLost, pack_calls

MAX_DEATHS = 2  # a call that has killed this many workers is not tried again

_TASKS_PER_WORKER = 2  # tasks of a worker: one that runs, and the next one

_POLL_SECONDS = 1.0  # seconds between two checks of the nodes

_NOTICE_SECONDS = 30.0  # seconds until a run reports that it waits for its first worker

_MAX_FAILED_STARTS = 3


class Poisoned(Exception):
    """A call has killed its worker twice."""


class TaskRefused(Exception):
    """No worker can make such a call."""


class _Member:
    """One worker, its parts, and its current calls."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.node = ""
        self.loading: dict[int, asyncio.Future[str | None]] = {}
        self.refusals: dict[int, str] = {}
        self.at: deque[list[Parcel]] = deque()
        self.over = self.lost = False

    def fits(self, parcel: Parcel) -> bool:
        return not self.refusals or self.refusals.keys().isdisjoint(parcel.keys)

    def find_unmade(self, load: Sequence[Parcel]) -> int | None:
        """Find a part that these calls need and this worker has not built yet."""
        made = {
            key for key, each in self.loading.items() if each.done() and not each.cancelled() and not each.exception()
        }
        return next((key for parcel in load for key in parcel.keys if key not in made), None)


class Crew:
    """Runs calls on workers; without a limit, as many workers as fit."""

    def __init__(self, cluster: RayCluster, parts: Parts, resources: Mapping[str, float], most: int | None) -> None:
        self._cluster, self._parts, self.resources, self.most = cluster, parts, dict(resources), most
        self._queue = ParcelQueue()
        self._members: list[_Member] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed_starts = 0
        self._deaths_of_makers: Counter[int] = Counter()
        self._failure: BaseException | None = None
        self._lost = asyncio.Event()
        self._warned: set[str] = set()
        self._closed = False

    def open(self) -> None:
        """Start the first workers, and supervise them."""
        self._spawn(self._supervise())

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, self._cluster.lost_errors):
                error = ContextBenchError(f"the Ray cluster cannot be reached any more: {error}")
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Fail all waiting calls."""
        self._failure = self._failure or error
        for load in [parcels for member in self._members for parcels in member.at]:
            _set_error(load, self._failure)
        for member in self._members:
            member.over = True
        self._queue.fail_all(self._failure)

    # -- requests from the run

    async def run(self, calls: Sequence[Call], seconds: float | None = None, *, single: bool = False) -> list[Any]:
        """Run calls and return their answers: all answers, or with `seconds` only the first ones.

        A call that killed two workers has `Poisoned` as its answer.

        Raises:
            Refused: No worker can make these calls.
            UsageError: A part cannot be created on a worker.
        """
        try:
            return await self._send(Parcel(calls, seconds, single))
        except WorkerLost:
            return list(await asyncio.gather(*(self._run_alone(call) for call in calls)))

    async def _run_alone(self, call: Call) -> Any:
        for _ in range(1, MAX_DEATHS):
            try:
                return (await self._send(Parcel([call], None, False)))[0]
            except WorkerLost:
                continue
        return Poisoned(f"the example killed its worker {MAX_DEATHS} times")

    async def _send(self, parcel: Parcel) -> list[Any]:
        if self._failure is not None:
            raise self._failure
        self._queue.put(parcel)
        return await parcel.answers

    # -- the workers

    async def _supervise(self) -> None:
        began = time.monotonic()
        while not self._closed:
            if not self._cluster.has_own_node():
                raise ContextBenchError("the Ray node of this machine has died: nothing more can be run on the cluster")
            places = self._cluster.count_places(self)
            wanted = places if self.most is None else min(self.most, places)
            while len(self._members) < wanted:
                member = _Member(self._cluster.make_actor(RayWorker, self.resources))
                self._members.append(member)
                self._spawn(self._serve(member))
            for member in self._members[wanted:] if wanted else ():
                member.over = True
            if not wanted:
                self._warn("no node of the cluster has room for a worker: the run waits for one")
            elif time.monotonic() - began > _NOTICE_SECONDS and not any(each.node for each in self._members):
                self._warn("no worker has started yet (others may be using the cluster): the run waits for one")
            self._queue.wake()
            self._lost.clear()
            try:
                await asyncio.wait_for(self._lost.wait(), _POLL_SECONDS)
            except asyncio.TimeoutError:
                continue

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            warn(text)

    async def _serve(self, member: _Member) -> None:
        """Give a worker calls until it dies or is stopped."""
        lost = self._cluster.lost_errors
        try:
            member.node = await member.actor.find_node.remote()
        except lost as error:
            self._failed_starts += 1
            self._forget(member)
            if self._failed_starts >= _MAX_FAILED_STARTS and not any(each.node for each in self._members):
                said = str(error).strip().splitlines()[-1]
                raise UsageError(f"no worker could be started on the cluster: {said}") from None
            return
        self._failed_starts = 0
        await asyncio.gather(*(self._work(member) for _ in range(_TASKS_PER_WORKER)))
        self._forget(member)
        self._cluster.kill(member.actor)

    def _forget(self, member: _Member) -> None:
        if member in self._members:
            self._members.remove(member)
        self._lost.set()

    async def _work(self, member: _Member) -> None:
        while load := await self._queue.take(member.fits, lambda: member.over):
            member.at.append(load)
            try:
                if await self._load_parts(member, load):
                    await self._run_load(member, load)
                else:
                    self._give_back(load)
            except self._cluster.lost_errors as error:
                await self._lose(member, error)
                return
            except UsageError as error:
                self._fail(error)
                return
            finally:
                if load in member.at:
                    member.at.remove(load)

    def _give_back(self, load: list[Parcel]) -> None:
        """Put back calls that this worker cannot make; refuse those that no worker can."""
        self._put_back(load)
        usable = [each for each in self._members if not each.over]
        reasons = [reason for each in usable for reason in each.refusals.values()]
        hopeless = self._queue.take_all(lambda parcel: not any(each.fits(parcel) for each in usable))
        _set_error(hopeless, TaskRefused(*reasons[:1]))

    async def _load_parts(self, member: _Member, load: list[Parcel]) -> bool:
        """Make a worker build its missing parts; return False if it must not have one of them."""
        for key in {key for parcel in load for key in parcel.keys}:
            if key not in member.loading:
                member.loading[key] = asyncio.ensure_future(self._load_part(member, key))
            reason = await member.loading[key]
            if reason is not None and key not in member.refusals:
                member.refusals[key] = reason
                self._warn(f"a worker on node {member.node[:8]} gets no code to run: {reason}")
        return all(member.fits(parcel) for parcel in load)

    async def _load_part(self, member: _Member, key: int) -> str | None:
        part = self._parts[key]
        try:
            reason: str | None = await member.actor.load.remote(key, part.kind, part.recipe)
        except self._cluster.task_error as error:
            raise UsageError(f"{part.name} {error.cause if error.cause else error}") from None
        return reason

    async def _run_load(self, member: _Member, load: list[Parcel]) -> None:
        calls = [call for parcel in load for call in parcel.calls]
        seconds = load[0].seconds
        try:
            packed, clock = await member.actor.run.remote(pack_calls(calls), seconds)
        except self._cluster.task_error as error:
            _set_error(load, error)
            return
        answers = pickle.loads(packed)
        shift = time.perf_counter() - clock
        for answer, (key, _) in zip(answers, calls):
            if isinstance(answer, Outcome):
                answer.started += shift
                answer.ended += shift
            elif isinstance(answer, Timed):
                self._queue.note_seconds(key, answer.seconds)
        for parcel in load:
            if not parcel.answers.done():
                parcel.answers.set_result(answers[: len(parcel.calls)])
            del answers[: len(parcel.calls)]

    async def _lose(self, member: _Member, error: BaseException) -> None:
        """Repeat the calls of a dead worker elsewhere, to find the one that killed it."""
        first, member.over, member.lost = not member.lost, True, True
        loads, member.at = list(member.at), deque()
        # It worked on its oldest task; the others only waited.
        blamed = (
            loads[0] if first and loads and not await self._cluster.has_left(member.actor, member.node, error) else None
        )
        if blamed is not None and (unmade := member.find_unmade(blamed)) is not None:
            blamed = None
            self._note_death_of_maker(unmade)
        if blamed is not None:
            _set_error(blamed, WorkerLost())
        self._put_back([parcel for load in loads if load is not blamed for parcel in load])
        self._lost.set()

    def _put_back(self, parcels: Sequence[Parcel]) -> None:
        """Put unfinished calls back for other workers, unless the run cannot continue."""
        self._queue.put_back(parcel for parcel in parcels if not parcel.answers.done())
        if self._failure is not None:
            self._queue.fail_all(self._failure)

    def _note_death_of_maker(self, key: int) -> None:
        """Count a worker that died while building a part; no example caused it, so the part is finally given up."""
        self._deaths_of_makers[key] += 1
        if self._deaths_of_makers[key] >= MAX_DEATHS:
            name, deaths = self._parts[key].name, self._deaths_of_makers[key]
            self._fail(UsageError(f"{name} killed the worker that was creating it, {deaths} times: try it without Ray"))

    async def close(self, *, finish: bool) -> None:
        self._closed = True
        # If a worker is still busy, the user stopped the run and does not want to wait.
        actors = [member.actor for member in self._members if member.node and not member.over and not member.at]
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if finish and actors:
            ends = [asyncio.ensure_future(self._finish(actor)) for actor in actors]
            await asyncio.wait(ends, timeout=60.0)
        for member in self._members:
            self._cluster.kill(member.actor)
        self._members.clear()

    @staticmethod
    async def _finish(actor: Any) -> None:
        try:
            await actor.finish.remote()
        except Exception as error:  # noqa: BLE001 - whatever a part does at its end, the rows are kept
            warn(f"a part on a worker failed in finish(): {str(error).splitlines()[-1]}")


def _set_error(load: Sequence[Parcel], error: BaseException) -> None:
    for parcel in load:
        if not parcel.answers.done():
            parcel.answers.set_exception(error)
