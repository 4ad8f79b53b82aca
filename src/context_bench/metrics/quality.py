"""Quality over all rows: the mean of a score, and the share that passes a threshold.

An errored row counts as 0, since a system that fails did not pass; a row without the score (nothing to
judge) is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.results import EvalRow
from context_bench.summary import fold

__all__ = ["MeanScore", "PassRate", "score_of"]


def score_of(row: EvalRow, score_field: str) -> float | None:
    """What a row counts in a mean of `score_field`; None when it does not count."""
    return 0.0 if row.error is not None else row.scores.get(score_field)


@dataclass(frozen=True)
class MeanScore:
    """The mean of one score."""

    score_field: str = "score"
    name = "mean-score"

    def start(self) -> MeanTally:
        """A running mean."""
        return MeanTally(self.score_field)

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Average the scored rows; 0.0 when there are none."""
        return fold(self.start(), rows)


class MeanTally:
    """Adds up scores; the sum is exact, so the order of rows does not matter."""

    def __init__(self, score_field: str) -> None:
        self._field, self._count = score_field, 0
        self._partials: list[float] = []

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        value = score_of(row, self._field)
        if value is not None:
            self._count += 1
            self._partials.append(value)
            if len(self._partials) == 1024:
                self._partials = _exact_parts(self._partials)

    @property
    def count(self) -> int:
        """How many rows the mean stands on."""
        return self._count

    def result(self) -> dict[str, float]:
        """The mean so far."""
        return {"mean_score": math.fsum(self._partials) / self._count if self._count else 0.0}


def _exact_parts(values: list[float]) -> list[float]:
    """A few numbers with exactly the same sum (each is what the ones before it could not hold)."""
    parts: list[float] = []
    while (rest := math.fsum([*values, *(-part for part in parts)])) and math.isfinite(rest):
        parts.append(rest)
    return parts or [math.fsum(values)]


@dataclass(frozen=True)
class PassRate:
    """The share of rows whose score reaches the threshold; a score equal to it passes."""

    threshold: float = 0.7
    score_field: str = "score"
    name = "pass-rate"

    def start(self) -> PassTally:
        """A running count."""
        return PassTally(self.threshold, self.score_field)

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Count the passes among the scored rows; 0.0 when there are none."""
        return fold(self.start(), rows)


class PassTally:
    """Counts passes."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._field = threshold, score_field
        self._passing = self._count = 0

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        value = score_of(row, self._field)
        if value is not None:
            self._count += 1
            self._passing += value >= self._threshold

    def result(self) -> dict[str, float]:
        """The share so far."""
        return {"pass_rate": self._passing / self._count if self._count else 0.0}
