"""Judges answers: asks the evaluators of an example, and selects the primary score.

A failed evaluator leaves a reason instead of a score: a missing score is data, not the end of a run.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, Protocol

from context_bench.compare.pairing import NOT_AN_ANSWER, is_unread_row
from context_bench.core.call import list_frames
from context_bench.core.examples import Evaluators, Item, list_judging_fields
from context_bench.core.threads import call_beside, call_in_thread, is_given_up, unwrap
from context_bench.errors import ScoreClash, UsageError, describe
from context_bench.refs import check_awaitable
from context_bench.results import EvalRow, Scores
from context_bench.text.evidence_state import STATE_SCORES
from context_bench.traits import find_score_fields, scores_asynchronously
from context_bench.types import Evaluator, Example


class Memory(Protocol):
    """Stores the scores of slow evaluators."""

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
        """Note that an evaluator failed; a later try may succeed."""
        raised = unwrap(error)
        self.unscored[evaluator.name] = describe(raised)
        self.transient = True
        if frames := list_frames(raised):
            self.details[evaluator.name] = {"traceback": frames}


def ask_at_once(judgement: Judgement, evaluator: Evaluator, example: Example, processed: Example) -> None:
    """Ask one fast evaluator."""
    try:
        scores = evaluator.score(example, processed)
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - a scorer that fails is a missing score, not a lost run
        judgement.add_failure(evaluator, error)
    else:
        _add(judgement, evaluator, scores)


def refuse_all(evaluators: Iterable[Evaluator], processed: Example) -> Judgement:
    """Leave an answer unjudged, and keep the reason that it states."""
    judgement = Judgement()
    judgement.unscored = {each.name: str(processed["unscorable"]) for each in evaluators}
    return judgement


def find_refusal(need: str, processed: Example, *, unread: bool) -> str | None:
    """Say why an evaluator that judges only answers, or only contexts, cannot judge this output; None if it can."""
    if need == "answer":
        return NOT_AN_ANSWER if unread else None
    has_context = isinstance(processed.get("context"), str) or isinstance(processed.get("turns"), list)
    return None if has_context else "the system returned no context"


def is_unread(processed: Example, metadata: Mapping[str, Any] | None = None) -> bool:
    """Whether the response is only the returned context, which no model has read."""
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
    """Ask one slow evaluator, unless its scores are stored."""
    try:
        scores: Mapping[str, float] | None = memory.find(evaluator) if memory else None
        if scores is None:
            ask = partial(_ask, evaluator, example, processed, threads)
            scores = await (ask() if spending is None else spending.ask(evaluator, example, processed, ask))
            passing = isinstance(scores, Scores) and scores.transient
            if memory and scores and isinstance(scores, Mapping) and not passing:
                memory.keep(evaluator, scores)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_given_up():
            raise
        judgement.add_failure(evaluator, error)
    else:
        _add(judgement, evaluator, {} if scores is None else scores)


async def _ask(evaluator: Any, example: Example, processed: Example, threads: Executor) -> Any:
    if scores_asynchronously(evaluator):
        return await check_awaitable(evaluator.ascore(example, processed), evaluator, "ascore")
    return await call_in_thread(threads, evaluator.score, example, processed)


def _add(judgement: Judgement, evaluator: Evaluator, scores: Any) -> None:
    own = judgement.scores
    if type(scores) is dict and scores and not own and _are_finite_floats(scores):  # the usual case
        judgement.scores = scores.copy()
        return
    if not isinstance(scores, Mapping):
        raise UsageError(f"evaluator {evaluator.name!r} returned {type(scores).__name__}; it must return a dict")
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


_FLOAT = frozenset({float})


def _are_finite_floats(scores: Mapping[str, Any]) -> bool:
    return _FLOAT.issuperset(map(type, scores.values())) and all(map(math.isfinite, scores.values()))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


class Scorer(Evaluators):
    """Applies evaluators to examples, and selects the primary score; has the parameters of `Evaluators`.

    A dataset has one primary score for answers and one for contexts that no model has read, so that means do not mix
    scores; an example without it is unscored.
    """

    def show(self, processed: Example) -> Example:
        """Return an answer in the form that the evaluators read."""
        return {**processed, "keep_reasoning": True} if self.keep_reasoning else processed

    async def judge(
        self,
        item: Item,
        processed: Example,
        threads: Executor,
        memory: Memory | None = None,
        long: Executor | None = None,
        spending: Spending | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Judgement:
        """Ask every evaluator that applies; a failed one leaves a reason and no score.

        Args:
            threads: The threads for slow evaluators that are not asynchronous.
            memory: The scores of slow evaluators for this answer in an earlier run.
            long: The threads for all other evaluators if the texts are long; None calls them on the event loop.
            spending: Asks a slow evaluator once its request fits into the limit.
        """
        judgement, example, wiring, processed = Judgement(), item.example, self.wire(item), self.show(processed)
        if "unscorable" in processed:
            return refuse_all(wiring.evaluators, processed)
        unread = is_unread(processed, metadata)
        for evaluator, slow, need in wiring.asks:
            if need is not None and (refusal := find_refusal(need, processed, unread=unread)):
                judgement.unscored[evaluator.name] = refusal
            elif not slow:
                await call_beside(long, ask_at_once, judgement, evaluator, example, processed)
            else:
                await ask_slowly(judgement, evaluator, example, processed, threads, memory, spending)
        return self._set_primary(judgement, item, unread=unread)

    def judge_at_once(self, item: Item, processed: Example, metadata: Mapping[str, Any] | None = None) -> Judgement:
        """Do the same as `judge`, without waiting, for a short answer without slow evaluators."""
        judgement, example, wiring = Judgement(), item.example, item.wiring or self.wire(item)
        if self.keep_reasoning:
            processed = self.show(processed)
        if "unscorable" in processed:
            return refuse_all(wiring.evaluators, processed)
        unread = "context" in processed and is_unread(processed, metadata)
        for evaluator, _, need in wiring.asks:
            if need is not None and (refusal := find_refusal(need, processed, unread=unread)):
                judgement.unscored[evaluator.name] = refusal
            else:
                ask_at_once(judgement, evaluator, example, processed)
        return self._set_primary(judgement, item, unread=unread)

    def _set_primary(self, judgement: Judgement, item: Item, *, unread: bool) -> Judgement:
        scores = judgement.scores
        if self.score_field == "score" and "score" in scores:  # the user's own score has priority
            primary: str | None = "score"
        else:
            primary = self._find_primary(scores, item, unread=unread)
        if primary is not None:
            scores["score"] = scores[primary]
            if (self.context_primaries if unread else self.primaries).get(item.tag) != primary:
                self._note_primary(item.tag, primary, unread=unread)
        return judgement

    def note_known(self, item: Item, row: EvalRow) -> bool:
        """Set the primary score of a row that an earlier run judged, if another score is primary now.

        Returns:
            Whether the row has changed.
        """
        unread, before = is_unread_row(row), row.scores.pop("score", None)
        primary = self._find_primary(row.scores, item, unread=unread)
        if before is not None and (primary is None or row.scores[primary] != before) and self._may_give_score(item):
            row.scores["score"], primary = before, "score"
        elif primary is not None:
            row.scores["score"] = row.scores[primary]
        if primary is not None:
            self._note_primary(item.tag, primary, unread=unread)
        return row.scores.get("score") != before

    def _may_give_score(self, item: Item) -> bool:
        """Whether one of the user's own evaluators may give a score named `score`."""
        return any("score" in (find_score_fields(each) or ("score",)) for each in self.wire(item).evaluators)

    def _note_primary(self, tag: str, primary: str, *, unread: bool) -> None:
        primaries = self.context_primaries if unread else self.primaries
        known = primaries.get(tag)
        if known is None:
            primaries[tag] = primary
        elif known != primary and primary not in known.split(" or "):
            primaries[tag] = f"{known} or {primary}"

    def _find_primary(self, scores: Mapping[str, float], item: Item, *, unread: bool) -> str | None:
        """Return the name of the primary score: the user's choice or the dataset's; None if it is missing."""
        if self.score_field != "score":
            return self.score_field if self.score_field in scores else None
        chosen = self._chosen.get((item.tag, unread)) or self._choose_score(item.tag, item.example, unread=unread)
        if chosen in scores:
            return chosen
        wiring = self.wire(item)
        if chosen is not None and (self._given is None or chosen in wiring.emits):
            return None
        # If the user's own evaluators do not give the usual score, use theirs if they give only one. If the
        # dataset has a primary score, do so only if the user chose the evaluators.
        theirs = self._given is not None or (wiring.card is None and not list_judging_fields(item.example))
        own = [key for key in scores if key not in STATE_SCORES]
        second = "contains" if unread else "f1"
        takes_second = second in scores and (unread or wiring.card is None)
        found = second if takes_second else own[0] if theirs and len(own) == 1 else None
        known = (self.context_primaries if unread else self.primaries).get(item.tag, found)
        return found if known == found else None
