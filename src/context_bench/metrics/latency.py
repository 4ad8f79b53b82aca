"""How long a system takes for one example."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from context_bench.results import EvalRow
from context_bench.summary import fold

__all__ = ["Latency", "percentile"]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, by linear interpolation."""
    position = share * (len(ordered) - 1)
    below, above = math.floor(position), math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


@dataclass(frozen=True)
class Latency:
    """Mean, median, 95th and 99th percentile of the seconds that `process` took; errored rows are left out."""

    name = "latency"

    def start(self) -> LatencyTally:
        """A running collection."""
        return LatencyTally()

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Summarise the latencies; all 0.0 when there are none."""
        return fold(self.start(), rows)


class LatencyTally:
    """Keeps eight bytes for each row: percentiles need them all."""

    def __init__(self) -> None:
        self._seconds = array("d")

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        if row.error is None:
            self._seconds.append(row.latency)

    def result(self) -> dict[str, float]:
        """The percentiles so far."""
        seconds = sorted(self._seconds) or [0.0]
        return {
            "latency_mean": math.fsum(seconds) / len(seconds),
            "latency_median": percentile(seconds, 0.5),
            "latency_p95": percentile(seconds, 0.95),
            "latency_p99": percentile(seconds, 0.99),
        }

    def unmeasured(self) -> dict[str, str]:
        """All four, when no row succeeded."""
        return {} if self._seconds else dict.fromkeys(self.result(), "no row succeeded")
