"""Which evaluators judge an example, what they said of it, and which score is the primary one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.datasets.catalog import card_for
from context_bench.errors import ScoreClash, UsageError, describe
from context_bench.registry import registry
from context_bench.types import Evaluator, Example

__all__ = ["Judgement", "Scorer"]

PRIMARY_BY_FIELD = (
    ("correct_letter", "mc_accuracy"),
    ("test", "pass_at_1"),
    ("test_list", "pass_at_1"),
    ("instruction_id_list", "ifeval_strict"),
)
"""For one's own data: the field that an example has, and the score that is then the primary one."""

EVERYWHERE = ("answer-quality", "context-recall")
"""The evaluators of data that no card describes."""


class Judgement:
    """All scores of one row, with the reasons for those that are missing and the details to keep."""

    __slots__ = ("details", "scores", "unscored")

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}
        self.unscored: dict[str, str] = {}
        self.details: dict[str, Any] = {}


class Scorer:
    """Applies evaluators to examples: the given ones to all, or else those that the catalog wires.

    Args:
        evaluators: What the user chose; None wires them by the dataset of each example.
        extra: Applied beside those, whatever they are.
    """

    def __init__(self, evaluators: Sequence[Evaluator] | None = None, extra: Sequence[Evaluator] = ()) -> None:
        self._given = None if evaluators is None else [_checked(each) for each in evaluators]
        self._extra = [_checked(each) for each in extra]
        self._wired: dict[str, list[Evaluator]] = {}
        self._made: dict[str, Evaluator] = {}

    def evaluators_for(self, tag: str) -> list[Evaluator]:
        """The evaluators for a dataset tag."""
        if tag not in self._wired:
            wired = self._given
            if wired is None:
                card = card_for(tag)
                wired = [self._evaluator(name) for name in (card.evaluators if card else EVERYWHERE)]
            self._wired[tag] = [*wired, *self._extra]
            _no_repeats(self._wired[tag])
        return self._wired[tag]

    def _evaluator(self, name: str) -> Evaluator:
        if name not in self._made:
            self._made[name] = registry.get("evaluator", name)()
        return self._made[name]

    def fields_for(self, tags: Iterable[str]) -> set[str] | None:
        """All score keys that can come up for these datasets; None when an evaluator does not say."""
        fields = {"score"}
        for tag in tags:
            for evaluator in self.evaluators_for(tag):
                emitted = getattr(evaluator, "score_fields", None)
                if emitted is None:
                    return None
                fields.update(emitted)
        return fields

    async def judge(self, example: Example, processed: Example, tag: str) -> Judgement:
        """Ask every evaluator that applies; one that fails gives a reason and no score."""
        judgement = Judgement()
        for evaluator in self.evaluators_for(tag):
            try:
                if hasattr(evaluator, "ascore"):
                    scores = await evaluator.ascore(example, processed)
                else:
                    scores = evaluator.score(example, processed)
            except Exception as error:  # noqa: BLE001 - a scorer that fails is a missing score, not a lost run
                judgement.unscored[evaluator.name] = describe(error)
                continue
            _add(judgement, evaluator, scores)
        _put_primary(judgement, example, tag)
        return judgement


def _checked(evaluator: Any) -> Evaluator:
    if isinstance(evaluator, type) or not isinstance(evaluator, Evaluator):
        kind = evaluator.__name__ if isinstance(evaluator, type) else type(evaluator).__name__
        raise UsageError(f"{kind} is no evaluator: pass an object with .name and .score(original, processed)")
    return evaluator


def _no_repeats(evaluators: Sequence[Evaluator]) -> None:
    owners: dict[str, str] = {}
    for evaluator in evaluators:
        for key in getattr(evaluator, "score_fields", ()):
            if key in owners:
                raise ScoreClash(f"{owners[key]!r} and {evaluator.name!r} both emit the score {key!r}")
            owners[key] = evaluator.name


def _add(judgement: Judgement, evaluator: Evaluator, scores: Mapping[str, float]) -> None:
    if not isinstance(scores, Mapping):
        raise UsageError(f"evaluator {evaluator.name!r} returned {type(scores).__name__}; it returns a dict")
    for key, value in scores.items():
        if key in judgement.scores:
            raise ScoreClash(f"the score {key!r} comes from two evaluators, one of them {evaluator.name!r}")
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if number != number:
            judgement.unscored[evaluator.name] = f"{key} is no number: {value!r}"
        else:
            judgement.scores[key] = number
    if not scores:
        reason = getattr(scores, "reason", None) or "returned no score"
        judgement.unscored.setdefault(evaluator.name, reason)
    details = getattr(scores, "details", None)
    if details:
        judgement.details[evaluator.name] = details


def _put_primary(judgement: Judgement, example: Example, tag: str) -> None:
    """Put `score` in: what the dataset reports, or what fits the fields; a user's own `score` wins."""
    scores = judgement.scores
    if "score" in scores or not scores:
        return
    card = card_for(tag)
    candidates = [card.primary] if card else [key for field, key in PRIMARY_BY_FIELD if example.get(field)]
    for key in (*candidates, *(() if card else ("f1",))):
        if key in scores:
            scores["score"] = scores[key]
            return
    if len(scores) == 1 and not candidates:
        scores["score"] = next(iter(scores.values()))
