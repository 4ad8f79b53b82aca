"""Quality over all rows: the mean of a score, and the share that passes a threshold.

An errored row counts as 0, since a system that fails did not pass; a row without the score (nothing to
judge) is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from context_bench.results import EvalRow

__all__ = ["MeanScore", "PassRate", "scored"]


def scored(rows: list[EvalRow], score_field: str) -> list[float]:
    """The values that count towards a mean of `score_field`."""
    values = []
    for row in rows:
        if row.error is not None:
            values.append(0.0)
        elif score_field in row.scores:
            values.append(row.scores[score_field])
    return values


@dataclass(frozen=True)
class MeanScore:
    """The mean of one score."""

    score_field: str = "score"
    name = "mean-score"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Average the scored rows; 0.0 when there are none."""
        values = scored(rows, self.score_field)
        return {"mean_score": sum(values) / len(values) if values else 0.0}


@dataclass(frozen=True)
class PassRate:
    """The share of rows whose score reaches the threshold; a score equal to it passes."""

    threshold: float = 0.7
    score_field: str = "score"
    name = "pass-rate"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Count the passes among the scored rows; 0.0 when there are none."""
        values = scored(rows, self.score_field)
        passing = sum(value >= self.threshold for value in values)
        return {"pass_rate": passing / len(values) if values else 0.0}
