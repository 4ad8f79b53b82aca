"""How long a system takes for one example."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.results import EvalRow

__all__ = ["Latency", "percentile"]


def percentile(ordered: list[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, by linear interpolation."""
    position = share * (len(ordered) - 1)
    below, above = math.floor(position), math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@dataclass(frozen=True)
class Latency:
    """Mean, median, 95th and 99th percentile of the seconds that `process` took; errored rows are left out."""

    name = "latency"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Summarise the latencies; all 0.0 when there are none."""
        seconds = sorted(row.latency for row in rows if row.error is None) or [0.0]
        return {
            "latency_mean": math.fsum(seconds) / len(seconds),
            "latency_median": percentile(seconds, 0.5),
            "latency_p95": percentile(seconds, 0.95),
            "latency_p99": percentile(seconds, 0.99),
        }
