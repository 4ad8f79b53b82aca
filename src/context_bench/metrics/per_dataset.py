"""The mean score of each dataset on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.metrics.quality import MeanTally
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats import Interval, average_means

__all__ = ["PerDatasetBreakdown"]


@dataclass(frozen=True)
class PerDatasetBreakdown(RunningMetric):
    """Mean of a score for each dataset tag, as `dataset:<tag>`; rows without a tag are `unknown`.

    `macro_score` is the mean of those means, over the datasets that have a scored row: each dataset counts the same,
    however many examples it has.
    """

    score_field: str = "f1"
    name = "per-dataset-breakdown"
    keys = ("macro_score", "dataset:{tag}")

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
        means = {f"dataset:{tag}": self._means[tag].result()["mean_score"] for tag in sorted(self._means)}
        scored = self._list_scored()
        if len(scored) > 1:
            means["macro_score"] = math.fsum(mean.result()["mean_score"] for mean in scored) / len(scored)
        return means

    def _list_scored(self) -> list[MeanTally]:
        return [self._means[tag] for tag in sorted(self._means) if not self._means[tag].unmeasured()]

    def intervals(self) -> dict[str, Interval]:
        """Give the interval of each mean, and of their mean."""
        known = {f"dataset:{tag}": mean.spread.interval() for tag, mean in self._means.items() if mean.count}
        scored = self._list_scored()
        if len(scored) > 1:
            known["macro_score"] = average_means([mean.spread.estimate() for mean in scored])
        return known

    def notes(self) -> dict[str, str]:
        """Say over which datasets the mean of the means is, where that is not all."""
        left_out = [tag for tag in sorted(self._means) if self._means[tag].unmeasured()]
        rest = [tag for tag in sorted(self._means) if tag not in left_out]
        if not left_out or not rest:
            return {}
        return {"macro_score": f"over {', '.join(rest)} alone: nothing of {', '.join(left_out)} was scored"}

    def unmeasured(self) -> dict[str, str]:
        """Name the datasets of which no row has the score."""
        return {f"dataset:{tag}": why for tag, mean in self._means.items() for why in mean.unmeasured().values()}
