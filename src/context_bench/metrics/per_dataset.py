"""The mean score of each dataset on its own."""

from __future__ import annotations

from dataclasses import dataclass

from context_bench.metrics.quality import MeanTally
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow

__all__ = ["PerDatasetBreakdown"]


@dataclass(frozen=True)
class PerDatasetBreakdown(RunningMetric):
    """Mean of a score for each dataset tag, as `dataset:<tag>`; rows without a tag are `unknown`."""

    score_field: str = "f1"
    name = "per-dataset-breakdown"

    def start(self) -> BreakdownTally:
        """Start a mean for each tag."""
        return BreakdownTally(self.score_field)


class BreakdownTally:
    """Keeps one mean for each tag."""

    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._means: dict[str, MeanTally] = {}

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        tag = row.dataset or "unknown"
        if tag not in self._means:
            self._means[tag] = MeanTally(self._field)
        self._means[tag].add(row)

    def result(self) -> dict[str, float]:
        """Return the means so far, sorted by tag."""
        return {f"dataset:{tag}": self._means[tag].result()["mean_score"] for tag in sorted(self._means)}

    def unmeasured(self) -> dict[str, str]:
        """Name the datasets of which no row has the score."""
        return {f"dataset:{tag}": why for tag, mean in self._means.items() for why in mean.unmeasured().values()}
