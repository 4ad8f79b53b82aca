"""A run on a cluster: which parts workers call, and how their answers return."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from context_bench.core.call import Caller, Outcome, rebuild_error
from context_bench.core.examples import count_characters
from context_bench.core.schedule import Lane, SystemCaller, build_lanes
from context_bench.core.threads import Raised, Threads
from context_bench.errors import SystemFailure, UsageError, describe, warn
from context_bench.http.transport import share_transport
from context_bench.ray.cluster import RayCluster
from context_bench.ray.crew import Crew, Poisoned, TaskRefused
from context_bench.ray.ray_worker import Timed, WorkerFailure
from context_bench.ray.senders import RemoteTransport
from context_bench.ray.shipping import LEAST_WORK, Parts
from context_bench.traits import find_resources, is_endpoint, system_traits
from context_bench.types import Example, System

_SPARE_WORKERS = 4  # workers for which work is kept ready, in case nodes join

_MAX_CALLS = 4096
_MAX_CHARACTERS = 4_000_000
"""Limits of one task: all tasks in flight must fit into the object store of a small node."""

_MAX_WAITING_SCORES = 64  # answers for each worker that may wait for slow evaluators


class RayPlacement:
    """The places of one run on a cluster. `workers` and `senders` are the largest numbers of each; without a limit, as
    many as fit.
    """

    def __init__(
        self,
        cluster: RayCluster,
        systems: Sequence[System],
        resources: Mapping[str, float],
        workers: int | None,
        senders: int,
        max_workers: int | None,
        restore_frames: Callable[[list[str]], list[str]],
    ) -> None:
        self._cluster, self._resources, self._workers = cluster, resources, workers
        self._restore = restore_frames
        self._parts = Parts()
        self._crews: dict[tuple[tuple[str, float], ...], Crew] = {}
        self._threads = Threads(max_workers or 1, "context-bench-system")
        self._remote: dict[int, Crew] = {}
        self._compressors: list[Callable[[Any], None]] = []
        self._keys: dict[int, int] = {}
        self._placed = [each for each in systems if not is_endpoint(each)]
        for system in self._placed:
            self._remote[id(system)] = self._find_crew(system)
            self._keys[id(system)] = self._parts.add(system, "system")
        for system in systems:
            self._place_compressor(system)
        elsewhere = [each for each in systems if is_endpoint(each)]
        self.lanes = [*(build_lanes(elsewhere, max_workers) if elsewhere else ()), *self._build_lanes()]
        order = {id(system): place for place, system in enumerate(systems)}
        for lane in self.lanes:
            lane.systems = [(order[id(system)], system) for _, system in lane.systems]
        for crew in self._crews.values():
            if self._cluster.count_places(crew) == 0:
                needs = ", ".join(f"{key}={value:g}" for key, value in crew.resources.items())
                raise UsageError(
                    f"no node of the cluster has room for a worker with {needs}: declare less, or add a node"
                )
        for crew in self._crews.values():
            crew.open()
        in_flight = sum(lane.slots for lane in self.lanes if not lane.here) or max_workers or 8
        self.max_judging = _MAX_WAITING_SCORES * senders
        self._transport = RemoteTransport(cluster, min(in_flight, senders))
        share_transport(self._transport)

    def _find_crew(self, part: Any) -> Crew:
        """Return the workers of a part. Parts with equal needs share workers, and run there one at a time."""
        needs = {"num_cpus": 1.0, **find_resources(part), **self._resources}
        kind = tuple(sorted(needs.items()))
        if kind not in self._crews:
            self._crews[kind] = crew = Crew(self._cluster, self._parts, needs, self._workers)
            self._cluster.claim(crew)
        return self._crews[kind]

    def _build_lanes(self) -> list[Lane]:
        lanes = []
        for crew in self._crews.values():
            systems = [(0, each) for each in self._placed if self._remote[id(each)] is crew]
            places = min(self._cluster.count_places(crew) + _SPARE_WORKERS, crew.most or 1_000_000)
            if systems:
                lanes.append(Lane(2 * places, systems, here=True, max_quota=_MAX_CALLS))
        return lanes

    def _place_compressor(self, system: System) -> None:
        """Run the compressor before a reader on workers; the driver's own client asks the reader."""
        place = system_traits(system).place_compressor
        if place is None or system_traits(system).takes_turns:
            return
        compressor = system_traits(system).parts[0]
        while system_traits(compressor).place_compressor is not None:  # the system itself, under another name
            compressor = system_traits(compressor).parts[0]
        crew, key = self._find_crew(compressor), self._parts.add(compressor, "compressor")

        async def compress(example: Example) -> tuple[Any, float, float]:
            (answer,) = await crew.run([(key, (example,))], single=True)
            ended = time.perf_counter()
            if isinstance(answer, Timed):
                return answer.value, ended - answer.seconds, ended
            problem = answer.text if isinstance(answer, WorkerFailure) else str(answer)
            raise SystemFailure(f"{compressor.name} failed: {problem}")

        place(compress)
        self._compressors.append(place)

    # -- requests from the run

    def make_caller(self, system: System) -> SystemCaller:
        """Return the caller of a system: on a worker, or here for an endpoint, whose requests go to senders."""
        crew = self._remote.get(id(system))
        return Caller(system, self._threads) if crew is None else _RemoteCaller(self, system)

    async def call_several(self, calls: Sequence[tuple[System, Example]], outcomes: list[Outcome]) -> None:
        """Let a worker run calls for a tenth of a second, at most as many as fit into one task."""
        if not calls:
            return
        crew = self._remote[id(calls[0][0])]
        size, sent = 0, 0
        for _, example in calls:
            size += count_characters(example)
            if sent and size > _MAX_CHARACTERS:
                break
            sent += 1
        named = [(self._keys[id(system)], (example,)) for system, example in calls[:sent]]
        outcomes += map(self._receive, await crew.run(named, LEAST_WORK))

    def _receive(self, answer: Any) -> Outcome:
        if isinstance(answer, Poisoned):
            now = time.perf_counter()
            return Outcome(error=describe(SystemFailure(str(answer))), started=now, ended=now)
        outcome: Outcome = answer
        if outcome.error is not None and "traceback" in outcome.metadata:
            outcome.metadata["traceback"] = self._restore(outcome.metadata["traceback"])
        return outcome

    def open_scoring(self) -> Executor:
        """Return the executor that runs slow evaluators on workers."""
        return _ScoreExecutor(self)

    async def score(self, evaluator: Any, arguments: tuple[Any, ...]) -> Any:
        """Let a worker score an answer.

        Raises:
            Refused: No worker can score it.
            Raised: The evaluator failed.
        """
        key = self._parts.add(evaluator, "evaluator")
        crew = next(iter(self._crews.values()), None)
        if crew is None:
            crew = self._find_crew(evaluator)
            crew.open()
        (answer,) = await crew.run([(key, arguments)], single=True)
        if isinstance(answer, Timed):
            return answer.value
        if isinstance(answer, WorkerFailure):
            raise Raised(rebuild_error(answer.text, self._restore(answer.frames)))
        raise Raised(SystemFailure(str(answer)))

    def choose_local(self, parts: Sequence[Any]) -> list[Any]:
        """Return the systems that do not run on workers; the others are prepared and finished there."""
        return [each for each in parts if id(each) not in self._remote]

    async def close(self) -> None:
        for place in self._compressors:
            place(None)
        await asyncio.gather(*(crew.close(finish=True) for crew in self._crews.values()))
        self._threads.shutdown(cancel_futures=True)
        self._transport.end_senders()
        self._cluster.close()


class _RemoteCaller:
    """Calls a system on a worker, one example at a time, for runs that may stop after any example."""

    works_elsewhere = True

    def __init__(self, placement: RayPlacement, system: System) -> None:
        self._placement, self._system = placement, system

    async def call(self, example: Example) -> Outcome:
        outcomes: list[Outcome] = []
        await self._placement.call_several([(self._system, example)], outcomes)
        return outcomes[0]


class _ScoreExecutor(Executor):
    """Runs evaluators on workers, or in threads of this process if no worker can run them."""

    def __init__(self, placement: RayPlacement) -> None:
        self._placement = placement
        self._threads = ThreadPoolExecutor(2, "context-bench-score")
        self._kept_here: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Queue a call in the form of `call_in_thread`: a guard, an evaluator's method, and its arguments."""
        evaluator = getattr(arguments[0], "__self__", None) if arguments else None
        if evaluator is None or id(evaluator) in self._kept_here:
            return self._threads.submit(function, *arguments, **named)
        future: Future[Any] = Future()
        task = asyncio.ensure_future(self._run(future, evaluator, function, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return future

    async def _run(
        self, future: Future[Any], evaluator: Any, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        try:
            result = await self._placement.score(evaluator, arguments[1])
        except (TaskRefused, UsageError) as error:
            if isinstance(error, UsageError):
                warn(f"{error}; it runs on this machine")
            self._kept_here.add(id(evaluator))
            here = self._threads.submit(function, *arguments)
            here.add_done_callback(lambda done: _copy_result(done, future))
            return
        except BaseException as error:  # noqa: BLE001 - it is for whoever waits
            if not future.cancelled():
                future.set_exception(error)
            return
        if not future.cancelled():
            future.set_result(result)

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Accept no more calls."""
        for task in self._tasks:
            task.cancel()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)


def _copy_result(done: Future[Any], future: Future[Any]) -> None:
    if future.cancelled():
        return
    if (error := done.exception()) is not None:
        future.set_exception(error)
    else:
        future.set_result(done.result())
