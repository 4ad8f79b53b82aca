"""The cost of a correct answer, in tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.quality import ScoreCount
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.metrics.spread import RatioSpread
from context_bench.results import EvalRow
from context_bench.stats import Interval

__all__ = ["CostOfPass"]


@dataclass(frozen=True)
class CostOfPass(RunningMetric):
    """Output tokens spent for each passing example (after arXiv:2504.13359); lower is better.

    Tokens of examples that failed are spent too, so they count. The cost is infinite when nothing passes.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "cost-of-pass"
    keys = ("cost_of_pass", "num_passing")
    by_dataset = ("cost_of_pass",)

    def start(self) -> CostOfPassTally:
        """Start counting."""
        return CostOfPassTally(self.threshold, self.score_field)


class CostOfPassTally:
    """Counts passes and tokens."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._passing = self._tokens = 0
        self._spread = RatioSpread(positive=True)

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        self._tokens += row.output_tokens
        value = self._rows.take(row)
        passes = value is not None and row.error is None and value >= self._threshold
        self._passing += passes
        self._spread.add(row, row.output_tokens, passes)

    def result(self) -> dict[str, float]:
        """Return tokens for each pass so far."""
        cost = self._tokens / self._passing if self._passing else math.inf
        return {"cost_of_pass": cost, "num_passing": float(self._passing)}

    def unmeasured(self) -> dict[str, str]:
        """Name both numbers when no row has the score: whether anything passed is then not known."""
        return self._rows.unmeasured("cost_of_pass", "num_passing")

    def intervals(self) -> dict[str, Interval]:
        """Give the interval of the cost."""
        return {"cost_of_pass": self._spread.interval()} if self._passing else {}
