"""Asks the evaluators of one row and collects their scores; one that fails leaves a reason in place of a score."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, Protocol

from context_bench.core.threads import call_in_thread, unwrap
from context_bench.core.tracebacks import list_frames
from context_bench.errors import ScoreClash, UsageError, describe
from context_bench.refs import check_awaitable
from context_bench.results import Scores
from context_bench.traits import scores_asynchronously
from context_bench.types import Evaluator, Example

__all__ = [
    "OURS_TO_SAY",
    "Judgement",
    "Memory",
    "Spending",
    "ask_at_once",
    "ask_slowly",
    "is_unread",
    "refuse_all",
    "refuse_context",
]

OURS_TO_SAY = ("tapped", "unscorable", "keep_reasoning")
"""Fields of an answer that no system of a user's can set: what a tap saw, why nothing is judged, how it is read."""


class Memory(Protocol):
    """Remembers what slow evaluators said."""

    def find(self, evaluator: Evaluator) -> Scores | None: ...

    def keep(self, evaluator: Evaluator, scores: Mapping[str, float]) -> None: ...


class Spending(Protocol):
    """Asks an evaluator once its request fits into the spending limit."""

    async def ask(
        self,
        evaluator: Evaluator,
        example: Example,
        processed: Example,
        ask: Callable[[], Awaitable[Mapping[str, float]]],
    ) -> Mapping[str, float]: ...


class Judgement:
    """All scores of one row, with the reasons for those that are missing and the details to keep."""

    __slots__ = ("details", "scores", "transient", "unscored")

    def __init__(self) -> None:
        self.transient = False
        self.scores: dict[str, float] = {}
        self.unscored: dict[str, str] = {}
        self.details: dict[str, Any] = {}

    def add_failure(self, evaluator: Evaluator, error: BaseException) -> None:
        """Note that an evaluator gave no score, which another try may give."""
        raised = unwrap(error)
        self.unscored[evaluator.name] = describe(raised)
        self.transient = True
        if frames := list_frames(raised):
            self.details[evaluator.name] = {"traceback": frames}


def ask_at_once(judgement: Judgement, evaluator: Evaluator, example: Example, processed: Example) -> None:
    """Ask one evaluator that answers at once."""
    try:
        scores = evaluator.score(example, processed)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a scorer that fails is a missing score, not a lost run
        judgement.add_failure(evaluator, error)
    else:
        _add(judgement, evaluator, scores)


def refuse_all(evaluators: Iterable[Evaluator], processed: Example) -> Judgement:
    """Judge nothing of an answer that says why there is nothing to judge."""
    judgement = Judgement()
    judgement.unscored = {each.name: str(processed["unscorable"]) for each in evaluators}
    return judgement


def refuse_context(judgement: Judgement, evaluator: Evaluator) -> None:
    """Let an evaluator of answers not judge a context that no model has read."""
    judgement.unscored[evaluator.name] = "the system returned a context, not an answer"


def is_unread(processed: Example, metadata: Mapping[str, Any] | None = None) -> bool:
    """Whether the response is nothing but the context that the system put out: no model has read it."""
    if processed.get("context") is None or (metadata or {}).get("answered"):
        return False
    return processed.get("response") is processed["context"]


async def ask_slowly(
    judgement: Judgement,
    evaluator: Evaluator,
    example: Example,
    processed: Example,
    threads: Executor,
    memory: Memory | None,
    spending: Spending | None,
) -> None:
    """Ask one evaluator that waits or works long, unless its scores are stored."""
    try:
        scores: Mapping[str, float] | None = memory.find(evaluator) if memory else None
        if scores is None:
            ask = partial(_ask, evaluator, example, processed, threads)
            scores = await (ask() if spending is None else spending.ask(evaluator, example, processed, ask))
            if memory and scores and isinstance(scores, Mapping) and not _is_transient(scores):
                memory.keep(evaluator, scores)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a scorer that fails is a missing score, not a lost run
        judgement.add_failure(evaluator, error)
    else:
        _add(judgement, evaluator, {} if scores is None else scores)


async def _ask(evaluator: Any, example: Example, processed: Example, threads: Executor) -> Any:
    if scores_asynchronously(evaluator):
        return await check_awaitable(evaluator.ascore(example, processed), evaluator, "ascore")
    return await call_in_thread(threads, evaluator.score, example, processed)


def _add(judgement: Judgement, evaluator: Evaluator, scores: Any) -> None:
    if type(scores) is not dict and not isinstance(scores, Mapping):
        raise UsageError(f"evaluator {evaluator.name!r} returned {type(scores).__name__}; it must return a dict")
    own = judgement.scores
    if type(scores) is dict and scores and not own and _are_finite_floats(scores):
        judgement.scores = scores.copy()
        return
    for key, value in scores.items():
        if key in own:
            raise ScoreClash(f"the score {key!r} comes from two evaluators, one of them {evaluator.name!r}")
        number = value if type(value) is float else _number(value)
        if math.isfinite(number):
            own[key] = number
        else:
            judgement.unscored[evaluator.name] = f"{key} is not a number: {value!r}"
    reason = scores.reason if isinstance(scores, Scores) else None
    if reason or not scores:
        judgement.unscored.setdefault(evaluator.name, reason or "returned no score")
    if isinstance(scores, Scores):
        judgement.transient |= scores.transient
        if scores.details:
            judgement.details[evaluator.name] = scores.details


def _are_finite_floats(scores: Mapping[str, Any]) -> bool:
    return set(map(type, scores.values())) == {float} and all(map(math.isfinite, scores.values()))


def _is_transient(scores: Mapping[str, float]) -> bool:
    return isinstance(scores, Scores) and scores.transient


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
