"""Which evaluators fit an example: by its dataset's card, or without one by the fields that it has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from context_bench.datasets.catalog import Card, card_for
from context_bench.errors import ScoreClash, UsageError
from context_bench.evaluators.adapt import FunctionEvaluator, adapt_evaluator, build_evaluators
from context_bench.registry import registry
from context_bench.store.fingerprints import fingerprint_of
from context_bench.traits import find_score_fields, is_slow, needs_answer
from context_bench.types import Evaluator, Example

COMMON_EVALUATOR = "answer-quality"  # the evaluator that every dataset has; without a gold answer it gives no score

DEFAULT_EVALUATORS = ("context-recall",)  # also applied to datasets that have no catalog card

BY_FIELD = {
    "correct_letter": ("multiple-choice-accuracy", "mc_accuracy"),
    "test": ("code-execution", "pass_at_1"),
    "test_list": ("code-execution", "pass_at_1"),
    "instruction_id_list": ("ifeval-checker", "ifeval_strict"),
    "ground_truth": ("tool-call-match", "tool_call_match"),
}
"""For such data: a field that an example has, the evaluator that reads it, and the score that is then primary."""


class Wiring:
    """The evaluators of one kind of example, and what is known of them beforehand.

    Attributes:
        evaluators: All that judge it.
        slow: Whether one of them takes so long that an endpoint should not wait for it.
        card: The dataset's, if it has one.
        needs_answer: For each evaluator, whether it judges answers only.
        emits: The scores that the evaluators say they give.
    """

    __slots__ = ("card", "emits", "evaluators", "needs_answer", "slow")

    def __init__(self, evaluators: list[Evaluator], card: Card | None) -> None:
        self.evaluators, self.card = evaluators, card
        self.slow = any(map(is_slow, evaluators))
        self.needs_answer = [needs_answer(each) for each in evaluators]
        self.emits = {key for each in evaluators for key in find_score_fields(each) or ()}


class Judged(Protocol):
    """An example to be judged: with its dataset tag, and its evaluators once they are looked up."""

    example: Example
    tag: str
    wiring: Wiring | None


def list_judging_fields(example: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of an example that say how it is judged; most have none."""
    if BY_FIELD.keys().isdisjoint(example):
        return ()
    return tuple(field for field in BY_FIELD if example.get(field))


def choose_score(fields: Sequence[str], *, unread: bool) -> str | None:
    """Choose the score that fits an example with these fields; None where nothing can be scored.

    Args:
        fields: Those of `list_scoring_fields`.
        unread: The system returned a context that no model has read: asked is what is left in it.
    """
    has_answer = "answer" in fields or "answers" in fields
    if unread:
        return "evidence_recall" if "evidence" in fields else "answer_in_context" if has_answer else None
    judged = (key for field, (_, key) in BY_FIELD.items() if field in fields)
    return next(judged, "f1" if has_answer else None)


def build_all_evaluators(evaluators: Any) -> list[Evaluator]:
    """Make evaluators of what the user gave: one or several, as objects, functions or references."""
    if not isinstance(evaluators, list | tuple):
        evaluators = [evaluators]
    built: list[Evaluator] = []
    for each in evaluators:
        built += build_evaluators(each) if isinstance(each, str) else [adapt_evaluator(each)]
    return built


def refuse_repeats(evaluators: Sequence[Evaluator]) -> None:
    """Check that no two evaluators say that they emit the same score.

    Raises:
        ScoreClash: Two do.
    """
    owners: dict[str, str] = {}
    for evaluator in evaluators:
        for key in find_score_fields(evaluator) or ():
            if key in owners:
                raise ScoreClash(f"{owners[key]!r} and {evaluator.name!r} both emit the score {key!r}")
            owners[key] = evaluator.name


class Evaluators:
    """The evaluators of a run: the given ones for all examples, or else those that the catalog wires.

    Args:
        evaluators: What the user chose; None wires them by the dataset of each example.
        extra: Applied beside those, whatever they are.
        settings: Parameters for evaluators that are wired, by name.
        score_field: The score that counts; "score" leaves the choice to the dataset, or to the fields of its examples.
        keep_reasoning: Show the reasoning in replies to the evaluators.
    """

    def __init__(
        self,
        evaluators: Sequence[Evaluator] | None = None,
        extra: Sequence[Evaluator] = (),
        settings: Mapping[str, Mapping[str, Any]] | None = None,
        score_field: str = "score",
        keep_reasoning: bool = False,
    ) -> None:
        self.score_field, self.keep_reasoning = score_field, keep_reasoning
        self._settings = settings or {}
        self._given = None if evaluators is None else build_all_evaluators(evaluators)
        self._extra = build_all_evaluators(extra)
        refuse_repeats([*(self._given or ()), *self._extra])
        self._wirings: dict[tuple[str, tuple[str, ...]], Wiring] = {}
        self._cards: dict[str, Card | None] = {}
        self._made: dict[str, Evaluator] = {}

    def wiring(self, tag: str, example: Mapping[str, Any]) -> Wiring:
        """Choose the evaluators of an example: by its dataset, or without a card also by its fields."""
        if tag not in self._cards:
            self._cards[tag] = card_for(tag)
        card = self._cards[tag]
        fields = list_judging_fields(example) if self._given is None and card is None else ()
        known = self._wirings.get((tag, fields))
        if known is None:
            evaluators = [*self._wire(tag, fields), *self._extra]
            refuse_repeats(evaluators)
            known = self._wirings[tag, fields] = Wiring(evaluators, card)
        return known

    def evaluators_for(self, tag: str, example: Mapping[str, Any] | None = None) -> list[Evaluator]:
        """The evaluators for a dataset tag, or for one example of it."""
        return self.wiring(tag, example or {}).evaluators

    def _wire(self, tag: str, fields: Sequence[str]) -> list[Evaluator]:
        if self._given is not None:
            return self._given
        card = card_for(tag)
        names = card.evaluators if card else (*DEFAULT_EVALUATORS, *(BY_FIELD[field][0] for field in fields))
        return [self._evaluator(name) for name in dict.fromkeys((COMMON_EVALUATOR, *names))]

    @property
    def chosen(self) -> list[Evaluator]:
        """The evaluators that the user chose, which may want to prepare themselves."""
        return [*(self._given or ()), *self._extra]

    @property
    def has_judge(self) -> bool:
        """Whether a model judges the answers beside the other evaluators."""
        return any("judge_score" in (find_score_fields(each) or ()) for each in self.chosen)

    @property
    def names(self) -> list[str]:
        """The evaluators that have judged something."""
        return sorted({each.name for wiring in self._wirings.values() for each in wiring.evaluators})

    @property
    def versions(self) -> dict[str, str | None]:
        """The fingerprint of each evaluator that has judged something: runs whose evaluators differ do not compare."""
        judged = {each.name: each for wiring in self._wirings.values() for each in wiring.evaluators}
        return {name: self.fingerprint(judged[name]) for name in sorted(judged)}

    def fingerprint(self, evaluator: Evaluator) -> str | None:
        """Return everything that the scores of an evaluator depend on; None where that cannot be known."""
        known = fingerprint_of(evaluator)
        return f"{known} keeps reasoning" if known and self.keep_reasoning else known

    def _evaluator(self, name: str) -> Evaluator:
        if name not in self._made:
            self._made[name] = registry.get("evaluator", name)(**self._settings.get(name, {}))
        return self._made[name]

    def find_cluster_field(self, tag: str) -> str | None:
        """Find the field of `meta` that names the document or conversation which examples of a dataset share."""
        card = card_for(tag)
        return "group" if card is None else card.cluster or None

    def find_threshold(self, tag: str) -> float | None:
        """The threshold that the card of a dataset recommends for the score that counts."""
        card = card_for(tag)
        return card.threshold if card and self.score_field in ("score", card.primary) else None

    def fields_for(self, tags: Iterable[str]) -> set[str] | None:
        """All score keys that can come up for these datasets; None when an evaluator does not say."""
        fields = {"score"}
        for tag in tags:
            # One's own data may turn out to have any of these fields.
            for evaluator in (*self._wire(tag, list(BY_FIELD)), *self._extra):
                emitted = find_score_fields(evaluator)
                if emitted is None:
                    return None
                fields.update(emitted)
        return fields

    def wire(self, item: Judged) -> Wiring:
        """Return what judges an example, which is looked up once for all systems."""
        if item.wiring is None:
            item.wiring = self.wiring(item.tag, item.example)
        return item.wiring


def is_own_score(scorer: Evaluators, score_field: str) -> bool:
    """Whether an evaluator of the user's own may give a score: all others lie between 0 and 1."""
    own = {
        key
        for evaluator in scorer.chosen
        if isinstance(evaluator, FunctionEvaluator) or not type(evaluator).__module__.startswith("context_bench.")
        for key in find_score_fields(evaluator) or (score_field,)
    }
    return score_field in own


def check_threshold(threshold: float, scorer: Evaluators, score_field: str) -> None:
    """A threshold outside of 0 to 1 must be for a score of the user's own.

    Raises:
        UsageError: Nothing, or everything, would pass.
    """
    if not 0 <= threshold <= 1 and not is_own_score(scorer, score_field):
        hint = f"; {threshold:g}% is {threshold / 100:g}" if 1 < threshold <= 100 else ""
        raise UsageError(f"threshold must be from 0 to 1, as the score {score_field!r} is (got {threshold:g}){hint}")
