"""Medians and percentiles, with intervals from order statistics: exact for any distribution.

The values themselves are kept (eight bytes each) up to a limit; beyond it they are counted in buckets whose width is
one percent of their value, so that memory stays bounded, and the method says so. A bootstrap interval of the 95th
percentile of 30 values covers 78% instead of 95%; here the result is "too few".
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence

from context_bench.stats.distributions import binomial_quantile
from context_bench.stats.interval import TOO_FEW, Interval

__all__ = ["Values", "find_ranks", "percentile", "quantile_interval"]

LIMIT = 200_000  # values that are kept exactly: 1.6 MB

GROWTH = math.log(1.01)


def _bucket(value: float) -> int:
    if value == 0:
        return 0
    place = math.floor(math.log(abs(value)) / GROWTH) + 200_000  # well above 0 for every float
    return place if value > 0 else -place


def _middle(bucket: int) -> float:
    if bucket == 0:
        return 0.0
    return math.copysign(math.exp((abs(bucket) - 200_000 + 0.5) * GROWTH), bucket)


def percentile(ordered: Sequence[float], share: float) -> float:
    """Find the value below which `share` of the sorted values lie, by linear interpolation."""
    position = share * (len(ordered) - 1)
    below, above = math.floor(position), math.ceil(position)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


class Values:
    """Keeps numbers for quantiles: all of them up to a limit, beyond it the count in each bucket."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self.kept = array("d")
        self.buckets: dict[int, int] = {}
        self.n = 0

    @property
    def exact(self) -> bool:
        """Whether all values are still kept."""
        return not self.buckets

    def add(self, value: float) -> None:
        """Add one number."""
        self.n += 1
        if self.buckets:
            self._count(value)
            return
        self.kept.append(value)
        if self.n > self.limit:
            self._fold()

    def extend(self, values: Iterable[float]) -> None:
        """Add several numbers."""
        new = array("d", values)
        if not self.buckets and self.n + len(new) <= self.limit:
            self.kept += new
            self.n += len(new)
            return
        for value in new:
            self.add(value)

    def _count(self, value: float) -> None:
        bucket = _bucket(value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def _fold(self) -> None:
        kept, self.kept = self.kept, array("d")
        for value in kept:
            self._count(value)

    def pick(self, ranks: Sequence[int]) -> list[float]:
        """Return the values at these ranks; ranks count from 1 in ascending order."""
        if self.exact:
            ordered = sorted(self.kept)
            return [ordered[rank - 1] for rank in ranks]
        found, below = {}, 0
        waiting = sorted(set(ranks))
        for bucket in sorted(self.buckets):
            below += self.buckets[bucket]
            while waiting and waiting[0] <= below:
                found[waiting.pop(0)] = _middle(bucket)
        return [found[rank] for rank in ranks]


def find_ranks(n: int, share: float, level: float = 0.95) -> tuple[int, int] | None:
    """Return the ranks whose values enclose the quantile with at least this confidence; None with too few values."""
    tail = (1 - level) / 2
    low = binomial_quantile(tail, n, share)
    high = binomial_quantile(1 - tail, n, share) + 1
    return (low, high) if low >= 1 and high <= n else None


def quantile_interval(values: Values, share: float, level: float = 0.95) -> Interval:
    """Return a quantile (0.5 is the median) with its interval; the value is interpolated as in numpy."""
    n = values.n
    method = "order statistics" if values.exact else "order statistics of 1% buckets"
    if not n:
        return Interval(math.nan, math.nan, math.nan, level, 0, method, TOO_FEW)
    position = share * (n - 1)
    below, above = math.floor(position) + 1, math.ceil(position) + 1
    ranks = find_ranks(n, share, level)
    picked = values.pick([below, above, *(ranks or ())])
    value = picked[0] + (picked[1] - picked[0]) * (position - math.floor(position))
    if ranks is None:
        return Interval(value, math.nan, math.nan, level, n, method, TOO_FEW)
    return Interval(value, picked[2], picked[3], level, n, method)
