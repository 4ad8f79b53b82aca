"""Running sums from which a number gets its interval, so that no row has to be kept.

Rows that share a document or a conversation (`cluster` in their metadata) are not independent: where any do, the
interval goes by clusters, and a row that shares nothing is one by itself.
"""

from __future__ import annotations

from context_bench.results import EvalRow
from context_bench.stats import (
    ClusterSums,
    Interval,
    Mean,
    RatioSums,
    ScoreSums,
    clustered_ratio,
    ratio_interval,
)

__all__ = ["MeanSpread", "RatioSpread", "find_cluster"]


def find_cluster(row: EvalRow) -> str | None:
    """Find what rows share: a document, a conversation, or the repeated example; datasets may have the same names."""
    cluster = row.metadata.get("cluster")
    if cluster is None:
        return None
    kind, name = ("group", cluster) if isinstance(cluster, str | int) else cluster
    return f"{row.dataset} {kind} {name}"


MAX_PENDING = 1024
"""Values that wait to be added together, which costs a fraction of adding them one by one."""


class MeanSpread:
    """The spread of a mean, or of the share that passes."""

    def __init__(self) -> None:
        self._sums = ScoreSums()
        self._pending: list[float] = []

    def add(self, row: EvalRow, value: float) -> None:
        """Add the value of one row."""
        if "cluster" in row.metadata:
            self._sums.add(value, find_cluster(row))
            return
        self._pending.append(value)
        if len(self._pending) == MAX_PENDING:
            self._add_pending()

    def _add_pending(self) -> None:
        self._sums.alone.extend(self._pending)
        self._pending.clear()

    def estimate(self) -> Mean:
        """Estimate the mean."""
        self._add_pending()
        return self._sums.estimate()

    def interval(self) -> Interval:
        """Give the mean with its interval."""
        return self.estimate().interval()


class RatioSpread:
    """The spread of a ratio of sums.

    Args:
        positive: Whether it is a cost, which may be far above and never below 0.
    """

    def __init__(self, *, positive: bool = False) -> None:
        self._alone, self._grouped, self._clusters = RatioSums(), RatioSums(), ClusterSums()
        self._positive = positive
        self._pending: list[tuple[float, float]] = []

    def add(self, row: EvalRow, above: float, below: float) -> None:
        """Add the two parts of one row."""
        if "cluster" not in row.metadata or (cluster := find_cluster(row)) is None:
            self._pending.append((above, below))
            if len(self._pending) == MAX_PENDING:
                self._add_pending()
        else:
            self._grouped.add(above, below)
            self._clusters.add(cluster, above, below)

    def _add_pending(self) -> None:
        self._alone.extend(self._pending)
        self._pending.clear()

    def interval(self) -> Interval:
        """Give the ratio with its interval."""
        self._add_pending()
        if self._clusters.shared:
            return clustered_ratio(self._clusters, self._alone, positive=self._positive)
        joined = RatioSums()
        joined.merge(self._alone)
        joined.merge(self._grouped)
        return ratio_interval(joined, positive=self._positive)
