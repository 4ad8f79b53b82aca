"""The cost of a pass at the model: the tokens that it read and wrote."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.facts import read_fact, was_repeated
from context_bench.metrics.quality import ScoreCount
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.metrics.spread import RatioSpread
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.traits import MetricTraits

__all__ = ["UpstreamCost"]


@dataclass(frozen=True)
class UpstreamCost(RunningMetric):
    """Tokens that the model behind a system read and wrote for each passing example; lower is better.

    What a proxy is there to lower. All calls count: those that the proxy makes on top, and those that the model
    answered and the proxy lost. Rows that failed or did not pass are on the bill too; those whose upstream
    tokens are not known are left out altogether, which a note says. The cost is infinite when nothing passes.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "upstream-cost"
    by_dataset = ("upstream_cost_of_pass",)

    def __context_bench_traits__(self) -> MetricTraits:
        return MetricTraits(bound=UpstreamCostTally.bound)

    def start(self) -> UpstreamCostTally:
        """Start counting."""
        return UpstreamCostTally(self.threshold, self.score_field)


class UpstreamCostTally:
    """Counts passes and tokens."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._passing = self._unknown = self._late = 0
        self._tokens = 0.0
        self._spread = RatioSpread(positive=True)

    def add(self, row: EvalRow) -> None:
        """Add one row. What was written is known where there is a tap, else it is the response."""
        if was_repeated(row):
            return
        if row.upstream_tokens is None:
            self._unknown += read_fact(row, "least_upstream_tokens") is not None
            return
        written = read_fact(row, "written_tokens")
        if written is None:
            written = read_fact(row, "response_tokens") or 0.0
        tokens = row.upstream_tokens + written + (read_fact(row, "lost_upstream_tokens") or 0.0)
        self._tokens += tokens
        value = self._rows.take(row)
        passes = row.error is None and value is not None and value >= self._threshold
        self._passing += passes
        self._spread.add(row, tokens, passes)

    def result(self) -> dict[str, float]:
        """Return tokens for each pass so far."""
        if not self._known and not self._unknown:
            return {}
        return {"upstream_cost_of_pass": self._tokens / self._passing if self._passing else math.inf}

    def intervals(self) -> dict[str, Interval]:
        """Give the interval of the cost."""
        return {"upstream_cost_of_pass": self._spread.interval()} if self._passing else {}

    @property
    def _known(self) -> int:
        return self._rows.count + self._rows.unscored

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Note the calls that came late: they are on no row."""
        late = report.get("late_calls", 0)
        self._late = late if isinstance(late, int) else 0
        return {}

    def unmeasured(self) -> dict[str, str]:
        """Name the cost when no row has the score, or none has all its calls known."""
        if not self._known and self._unknown:
            return {"upstream_cost_of_pass": "every row has calls that could not be matched to it for certain"}
        return self._rows.unmeasured("upstream_cost_of_pass") if self._known else {}

    def notes(self) -> dict[str, str]:
        """Say what the cost leaves out."""
        missing = []
        if self._known and self._unknown:
            missing.append(f"{self._unknown:,} rows whose calls could not be matched to them for certain are left out")
        if self._late:
            missing.append(f"{self._late:,} calls that came late are not in it")
        return {"upstream_cost_of_pass": f"not sure: {'; '.join(missing)}"} if missing else {}
