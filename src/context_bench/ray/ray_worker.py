"""The worker process on a node: it builds each part once, calls it like the local engine, and returns the outcome.

Nothing here needs Ray. Calls and answers travel as our own pickles, so an answer that cannot be sent is an error of its
example, not of the whole task.
"""

from __future__ import annotations

import asyncio
import inspect
import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from context_bench.core.call import Caller, Outcome, list_frames
from context_bench.errors import BadOutput, ContextBenchError, SystemFailure, UsageError, describe
from context_bench.http.transport import Reply, get_shared_transport
from context_bench.traits import find_finish, find_prepare
from context_bench.types import Example

Call = tuple[int, tuple[Any, ...]]  # the key of a part, and its arguments


@dataclass(frozen=True)
class WorkerFailure:
    """An exception of a part: its text for a row, and its frames in the user's code."""

    text: str
    frames: list[str]


@dataclass(frozen=True)
class Timed:
    """The value that a part returned, and the seconds that it took."""

    value: Any
    seconds: float


class RayWorker:
    """Holds the parts of a run in a process of a cluster, and calls one of them at a time."""

    def __init__(self) -> None:
        self._calls: dict[int, Callable[..., Any]] = {}
        self._parts: list[Any] = []
        self._threads = ThreadPoolExecutor(1)

    def find_node(self) -> str:
        """Return the id of the node that this runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    def load(self, key: int, kind: str, recipe: bytes) -> str | None:
        """Build a part; return the reason if this worker cannot."""
        make, arguments = pickle.loads(recipe)
        try:
            part = make(**arguments)
            if (prepare := find_prepare(part)) is not None:
                asyncio.run(prepare())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the driver says it in one sentence
            raise UsageError(f"cannot be created on a worker: {describe(error)}") from None
        if kind == "evaluator" and (reason := _find_missing_sandbox(part)) is not None:
            return reason
        self._parts.append(part)
        self._calls[key] = _make_call(kind, part, self._threads)
        return None

    def run(self, packed: bytes, seconds: float | None) -> tuple[bytes, float]:
        """Make calls one after the other, for at most `seconds` but at least one; return the answers and the time on
        this clock."""
        calls: Sequence[Call] = pickle.loads(packed)
        end = None if seconds is None else time.perf_counter() + seconds
        answers: list[Any] = []
        for key, arguments in calls:
            answers.append(self._calls[key](*arguments))
            if end is not None and time.perf_counter() > end:
                break
        return _pack(answers), time.perf_counter()

    def finish(self) -> None:
        for part in self._parts:
            finish = find_finish(part)
            ended = None if finish is None else finish()
            if inspect.isawaitable(ended):
                asyncio.run(_await(ended))


class Sender:
    """Sends requests from a node; the driver decides when and whether."""

    def find_node(self) -> str:
        """Return the id of the node that this runs on."""
        import ray

        return str(ray.get_runtime_context().get_node_id())

    async def request(
        self, method: str, url: str, headers: Sequence[str], body: bytes | None, timeout: float, timed: bool
    ) -> Reply | ContextBenchError:
        """Send one request; errors are returned, not raised, since Ray would wrap them."""
        try:
            return await get_shared_transport().request(method, url, headers, body, timeout, timed=timed)
        except ContextBenchError as error:
            return error

    async def connect(self, url: str, timeout: float) -> ContextBenchError | None:
        """Check whether a server listens."""
        try:
            await get_shared_transport().connect(url, timeout)
        except ContextBenchError as error:
            return error
        return None


async def _await(something: Any) -> Any:
    return await something


def _find_missing_sandbox(evaluator: Any) -> str | None:
    """Return the reason why an evaluator must not run programs here."""
    from context_bench.evaluators.code import CodeExecution

    return evaluator.explain_refusal() if isinstance(evaluator, CodeExecution) else None


def _make_call(kind: str, part: Any, threads: ThreadPoolExecutor) -> Callable[..., Any]:
    if kind == "system":
        caller = Caller(part, threads)
        return lambda example: _without_cause(caller.call_here(example))
    if kind == "compressor":
        return lambda example: _compress(part, example)
    return lambda original, processed: _score(part, original, processed)


def _without_cause(outcome: Outcome) -> Outcome:
    outcome.cause = None  # a foreign exception may not survive a pickle; its text and its frames do
    return outcome


def _compress(compressor: Any, example: Example) -> Timed | WorkerFailure:
    started = time.perf_counter()
    try:
        made = compressor.process(example)
    except BaseException as error:  # noqa: BLE001 - it is that example's
        return WorkerFailure(describe(error), list_frames(error))
    return Timed(made, time.perf_counter() - started)


def _score(evaluator: Any, original: Example, processed: Example) -> Timed | WorkerFailure:
    started = time.perf_counter()
    try:
        scores = evaluator.score(original, processed)
    except BaseException as error:  # noqa: BLE001 - a scorer that fails is a missing score
        return WorkerFailure(describe(error), list_frames(error))
    return Timed(scores, time.perf_counter() - started)


def _pack(answers: list[Any]) -> bytes:
    try:
        return pickle.dumps(answers, protocol=5)
    except Exception:  # noqa: BLE001 - one of them is to blame
        return pickle.dumps([_check(answer) for answer in answers], protocol=5)


def _check(answer: Any) -> Any:
    """Return an answer that can be sent, else a failure."""
    try:
        pickle.dumps(answer, protocol=5)
        return answer
    except Exception as error:  # noqa: BLE001
        problem = f"what it returned cannot be sent from a worker ({describe(error)})"
        if isinstance(answer, Outcome):
            text = describe(BadOutput(problem))
            return Outcome(latency=answer.latency, error=text, started=answer.started, ended=answer.ended)
        return WorkerFailure(describe(SystemFailure(problem)), [])
