"""The mean score of each type of question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from context_bench.metrics.quality import MeanTally
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats import Interval

__all__ = ["ByType"]


@dataclass(frozen=True)
class ByType(RunningMetric):
    """Mean of a score for each type of question, as `type:<name>`, with intervals by conversation."""

    score_field: str = "score"
    name = "by-type"
    columns: ClassVar[dict[str, str]] = {}
    """None: it has a table of its own."""

    def start(self) -> TypeTally:
        """Start a mean for each type."""
        return TypeTally(self.score_field)


class TypeTally:
    """Keeps one mean for each type."""

    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._means: dict[str, MeanTally] = {}

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        kind = str(row.metadata.get("question_type") or "")
        if kind:
            if kind not in self._means:
                self._means[kind] = MeanTally(self._field)
            self._means[kind].add(row)

    def result(self) -> dict[str, float]:
        """Return the means so far, sorted by type."""
        return {f"type:{kind}": self._means[kind].result()["mean_score"] for kind in sorted(self._means)}

    def intervals(self) -> dict[str, Interval]:
        """Give the interval of each mean."""
        return {f"type:{kind}": mean.spread.interval() for kind, mean in self._means.items() if mean.count}

    def unmeasured(self) -> dict[str, str]:
        """Name the types of which no row has the score."""
        return {f"type:{kind}": why for kind, mean in self._means.items() for why in mean.unmeasured().values()}
