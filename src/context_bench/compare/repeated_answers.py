"""The answers to one example, gathered until all of them are there; after that only sums are kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from context_bench.stats import RepeatSums

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["RepeatedAnswers"]


class RepeatedAnswers:
    """Adds up examples that are answered several times.

    Args:
        repeats: How many answers each example gets.
        threshold: A score from here on passes.
    """

    def __init__(self, repeats: int, threshold: float) -> None:
        self._repeats, self._threshold = repeats, threshold
        self._sums = RepeatSums()
        self._open: dict[tuple[str, Any], list[float | None]] = {}

    def add(self, row: EvalRow, value: float | None) -> None:
        """Add one answer: its row, and what it counts; None where it has no score."""
        key = (row.dataset, row.example_id)
        answers = self._open.setdefault(key, [])
        answers.append(value)
        if len(answers) >= self._repeats:
            self._count(self._sums, self._open.pop(key))

    def _count(self, sums: RepeatSums, answers: Sequence[float | None]) -> None:
        scores = [score for score in answers if score is not None]
        sums.add(scores, sum(score >= self._threshold for score in scores))

    def total(self) -> RepeatSums:
        """Sum up all examples, also those of which some answers have not come."""
        if not self._open:
            return self._sums
        sums = copy.deepcopy(self._sums)
        for answers in self._open.values():
            self._count(sums, answers)
        return sums
