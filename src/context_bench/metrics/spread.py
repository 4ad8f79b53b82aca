"""Running sums from which a number gets its interval, so that no row has to be kept.

Rows that share a document or a conversation (`cluster` in their metadata) are not independent: where every row has
one, the interval is that of the clusters.
"""

from __future__ import annotations

from context_bench.results import EvalRow
from context_bench.stats import (
    ClusterSums,
    Interval,
    Mean,
    Moments,
    RatioSums,
    clustered_mean,
    clustered_ratio,
    estimate_mean,
    ratio_interval,
)

__all__ = ["MeanSpread", "RatioSpread", "find_cluster"]


def find_cluster(row: EvalRow) -> str | None:
    """Find the document or conversation that an example shares with others."""
    cluster = row.metadata.get("cluster")
    return None if cluster is None else str(cluster)


class _Spread:
    """Sums by cluster, as long as every row has one."""

    def __init__(self) -> None:
        self._clusters: ClusterSums | None = ClusterSums()

    def _add_to_cluster(self, row: EvalRow, value: float, weight: float = 1) -> None:
        clusters = self._clusters
        if clusters is not None:
            cluster = find_cluster(row)
            if cluster is None:
                self._clusters = None
            else:
                clusters.add(f"{row.dataset} {cluster}", value, weight)  # two datasets may have the same names

    def _find_clusters(self) -> ClusterSums | None:
        """Return the sums by cluster where examples share clusters; else None."""
        clusters = self._clusters
        return clusters if clusters is not None and len(clusters.groups) < clusters.n else None


class MeanSpread(_Spread):
    """The spread of a mean, or of the share that passes."""

    def __init__(self) -> None:
        super().__init__()
        self._moments = Moments()

    def add(self, row: EvalRow, value: float) -> None:
        """Add the value of one row."""
        self._moments.add(value)
        self._add_to_cluster(row, value)

    def estimate(self) -> Mean:
        """Estimate the mean."""
        clusters = self._find_clusters()
        return estimate_mean(self._moments) if clusters is None else clustered_mean(clusters)

    def interval(self) -> Interval:
        """Give the mean with its interval."""
        return self.estimate().interval()


class RatioSpread(_Spread):
    """The spread of a ratio of sums.

    Args:
        positive: Whether it is a cost, which may be far above and never below 0.
    """

    def __init__(self, *, positive: bool = False) -> None:
        super().__init__()
        self._sums, self._positive = RatioSums(), positive

    def add(self, row: EvalRow, above: float, below: float) -> None:
        """Add the two parts of one row."""
        self._sums.add(above, below)
        self._add_to_cluster(row, above, below)

    def interval(self) -> Interval:
        """Give the ratio with its interval."""
        clusters = self._find_clusters()
        if clusters is None:
            return ratio_interval(self._sums, positive=self._positive)
        return clustered_ratio(clusters, positive=self._positive)
