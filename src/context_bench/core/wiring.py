"""Which evaluators fit an example: by its dataset's card, or without one by the fields that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from context_bench.datasets.catalog import Card
from context_bench.errors import ScoreClash
from context_bench.evaluators.adapt import adapt_evaluator, build_evaluators
from context_bench.traits import find_score_fields, is_slow, needs_answer
from context_bench.types import Evaluator, Example

__all__ = [
    "BY_FIELD",
    "COMMON_EVALUATOR",
    "DEFAULT_EVALUATORS",
    "Judged",
    "Wiring",
    "build_all_evaluators",
    "choose_score",
    "list_judging_fields",
    "refuse_repeats",
]

COMMON_EVALUATOR = "answer-quality"
"""The evaluator that every dataset has; without a gold answer it gives no score."""

DEFAULT_EVALUATORS = ("context-recall",)
"""Also applied to datasets that have no catalog card."""

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
