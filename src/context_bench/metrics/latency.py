"""How long a system takes for one example."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats import Interval, Values, quantile_interval
from context_bench.stats.quantiles import percentile

__all__ = ["Latency"]


@dataclass(frozen=True)
class Latency(RunningMetric):
    """Mean, median, 95th and 99th percentile of the seconds that `process` took; errored rows are left out.

    All are 0.0 when there are no rows.
    """

    name = "latency"
    keys = ("latency_mean", "latency_median", "latency_p95", "latency_p99")

    def start(self) -> LatencyTally:
        """Start collecting."""
        return LatencyTally()


class LatencyTally:
    """Keeps eight bytes for each row: percentiles need them all."""

    def __init__(self) -> None:
        self._seconds = array("d")

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        if row.error is None:
            self._seconds.append(row.latency)

    def result(self) -> dict[str, float]:
        """Return the percentiles so far."""
        seconds = sorted(self._seconds) or [0.0]
        return {
            "latency_mean": math.fsum(seconds) / len(seconds),
            "latency_median": percentile(seconds, 0.5),
            "latency_p95": percentile(seconds, 0.95),
            "latency_p99": percentile(seconds, 0.99),
        }

    def unmeasured(self) -> dict[str, str]:
        """Name all four when no row succeeded."""
        return {} if self._seconds else dict.fromkeys(self.result(), "no row succeeded")

    def intervals(self) -> dict[str, Interval]:
        """Give the intervals of the quantiles."""
        if not self._seconds:
            return {}
        values = Values(limit=len(self._seconds))
        values.extend(sorted(self._seconds))
        shares = {"latency_median": 0.5, "latency_p95": 0.95, "latency_p99": 0.99}
        return {key: quantile_interval(values, share) for key, share in shares.items()}
