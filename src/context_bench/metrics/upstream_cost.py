"""What a pass costs at the model: the tokens that it read and wrote."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.metrics.facts import read_fact
from context_bench.metrics.quality import ScoreCount
from context_bench.results import EvalRow
from context_bench.summary import fold

__all__ = ["UpstreamCost"]


@dataclass(frozen=True)
class UpstreamCost:
    """Tokens that the model behind a system read and wrote for each passing example; lower is better.

    What a proxy is there to lower. All calls count: those that the proxy makes on top, and those that the model
    answered and the proxy lost. Rows that failed or did not pass are on the bill too; those whose upstream
    tokens nobody knows are left out altogether.
    """

    threshold: float = 0.7
    score_field: str = "score"
    name = "upstream-cost"
    by_dataset = ("upstream_cost_of_pass",)

    def start(self) -> UpstreamCostTally:
        """A running count."""
        return UpstreamCostTally(self.threshold, self.score_field)

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Divide all tokens by the number of passes; infinite when nothing passes."""
        return fold(self.start(), rows)


class UpstreamCostTally:
    """Counts passes and tokens."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._passing = 0
        self._tokens = 0.0

    def add(self, row: EvalRow) -> None:
        """Take one row in. What was written is known where there is a tap, else it is the response."""
        if row.upstream_tokens is None:
            return
        written = read_fact(row, "written_tokens")
        if written is None:
            written = read_fact(row, "response_tokens") or 0.0
        self._tokens += row.upstream_tokens + written + (read_fact(row, "lost_upstream_tokens") or 0.0)
        value = self._rows.take(row)
        self._passing += row.error is None and value is not None and value >= self._threshold

    def result(self) -> dict[str, float]:
        """Tokens for each pass so far."""
        if not self._rows.count and not self._rows.unscored:
            return {}
        return {"upstream_cost_of_pass": self._tokens / self._passing if self._passing else math.inf}

    def unmeasured(self) -> dict[str, str]:
        """The cost, when no row has the score."""
        return self._rows.unmeasured("upstream_cost_of_pass")
