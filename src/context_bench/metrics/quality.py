"""Quality over all rows: the mean of a score, and the share that passes a threshold.

An errored row counts as 0, since a system that fails did not pass; a row without the score (nothing to
judge) is left out. The comparisons of two texts that quality rests on can be imported from here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.metrics.spread import MeanSpread
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.text.golds import exact_match, f1_score, normalize_answer, recall_score

__all__ = [
    "MeanScore",
    "MeanTally",
    "PassRate",
    "ScoreCount",
    "exact_match",
    "f1_score",
    "normalize_answer",
    "recall_score",
]


class ScoreCount:
    """Counts the rows behind a number that is made of scores."""

    __slots__ = ("failed", "field", "scored", "unscored")

    def __init__(self, score_field: str) -> None:
        self.field = score_field
        self.scored = self.failed = self.unscored = 0

    def take(self, row: EvalRow) -> float | None:
        """Count a row and return what it counts in a mean; None when it does not count."""
        if row.error is not None:
            self.failed += 1
            return 0.0
        value = row.scores.get(self.field)
        if value is None:
            self.unscored += 1
        else:
            self.scored += 1
        return value

    @property
    def count(self) -> int:
        """How many rows a mean is over: errors count as 0."""
        return self.scored + self.failed

    def unmeasured(self, *keys: str) -> dict[str, str]:
        """Give the keys a reason when no row has the score; a system that failed on every row keeps its 0."""
        if self.scored or (self.failed and not self.unscored):
            return {}
        reason = f"no row has the score {self.field!r}" if self.count or self.unscored else "there are no rows to score"
        return dict.fromkeys(keys, reason)


@dataclass(frozen=True)
class MeanScore(RunningMetric):
    """The mean of one score over the rows that have it; 0.0 when none has."""

    score_field: str = "score"
    name = "mean-score"
    keys = ("mean_score",)

    def start(self) -> MeanTally:
        """Start a mean."""
        return MeanTally(self.score_field)


class MeanTally:
    """Adds up scores; the sum is exact, so the order of rows does not matter."""

    def __init__(self, score_field: str) -> None:
        self._rows = ScoreCount(score_field)
        self._partials: list[float] = []
        self.spread = MeanSpread()

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        value = self._rows.take(row)
        if value is not None:
            self.spread.add(row, value)
            self._partials.append(value)
            if len(self._partials) == 1024:
                self._partials = _exact_parts(self._partials)

    @property
    def count(self) -> int:
        """How many rows the mean is over."""
        return self._rows.count

    def result(self) -> dict[str, float]:
        """Return the mean so far."""
        return {"mean_score": math.fsum(self._partials) / self.count if self.count else 0.0}

    def unmeasured(self) -> dict[str, str]:
        """Name the mean when no row has the score."""
        return self._rows.unmeasured("mean_score")

    def intervals(self) -> dict[str, Interval]:
        """Give the interval of the mean."""
        return {"mean_score": self.spread.interval()}


def _exact_parts(values: list[float]) -> list[float]:
    """Reduce numbers to a few with exactly the same sum: each is what the ones before it could not hold."""
    parts: list[float] = []
    while (rest := math.fsum([*values, *(-part for part in parts)])) and math.isfinite(rest):
        parts.append(rest)
    return parts or [math.fsum(values)]


@dataclass(frozen=True)
class PassRate(RunningMetric):
    """The share of rows whose score reaches the threshold; a score equal to it passes.

    0.0 when no row has the score.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "pass-rate"
    by_dataset = ("pass_rate",)

    def start(self) -> PassTally:
        """Start counting."""
        return PassTally(self.threshold, self.score_field)


class PassTally:
    """Counts passes."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._passing = 0
        self._spread = MeanSpread()

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        value = self._rows.take(row)
        if value is not None:
            passes = value >= self._threshold
            self._passing += passes
            self._spread.add(row, passes)

    def result(self) -> dict[str, float]:
        """Return the share so far."""
        return {"pass_rate": self._passing / self._rows.count if self._rows.count else 0.0}

    def unmeasured(self) -> dict[str, str]:
        """Name the share when no row has the score."""
        return self._rows.unmeasured("pass_rate")

    def intervals(self) -> dict[str, Interval]:
        """Give the interval of the share."""
        return {"pass_rate": self._spread.interval()}
