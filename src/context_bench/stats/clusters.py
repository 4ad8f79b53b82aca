"""Clusters: examples that share a document or a conversation tend to succeed and fail together, so they count for less.
All results come from one pair of sums for each cluster, by leaving out one cluster at a time. A test that treats the
questions of ten conversations as independent raises a false alarm in a third to a half of all A/A comparisons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from context_bench.stats.differences import (
    SAME,
    UNSEEN_PAIRS,
    Difference,
    PairedSums,
    paired_difference,
    unpaired_difference,
)
from context_bench.stats.distributions import welch_degrees
from context_bench.stats.interval import Interval
from context_bench.stats.means import (
    END_WEIGHT,
    Accumulator,
    Mean,
    Moments,
    effective_size,
    estimate_mean,
    keep_largest,
    keep_smallest,
)
from context_bench.stats.ratios import RatioSums, is_even, limit_ratio

__all__ = [
    "ClusterSums",
    "PairSums",
    "ScoreSums",
    "clustered_difference",
    "clustered_mean",
    "clustered_ratio",
    "compare_means",
]

Groups = dict[str, list[float]]

CLUSTER_WEIGHT = 0.02
"""Weight of an unseen cluster: among ten clusters, the one that fails may be missing. Without this weight, the 95%
interval of ten strongly correlated clusters covers only 57 to 85%."""


def _merge_groups(one: Groups, other: Groups) -> Groups:
    joined = {group: [*sums] for group, sums in one.items()}
    for group, (above, below) in other.items():
        sums = joined.setdefault(group, [0.0, 0.0])
        sums[0] += above
        sums[1] += below
    return joined


@dataclass
class ClusterSums(Accumulator):
    """Two sums for each cluster: of scores or differences, with their number, or of the parts of a ratio."""

    n: int = 0
    groups: Groups = field(default_factory=dict, metadata={"merge": _merge_groups})
    least: float = keep_smallest()
    most: float = keep_largest()

    @property
    def shared(self) -> bool:
        """Whether any cluster holds more than one example."""
        return len(self.groups) < self.n

    def add(self, group: str, value: float, weight: float = 1) -> None:
        """Add one example of a cluster: a score, a difference, or the parts of a ratio."""
        self.n += 1
        sums = self.groups.get(group)
        if sums is None:
            sums = self.groups[group] = [0.0, 0.0]
        sums[0] += value
        sums[1] += weight
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value


def _jackknife(sums: ClusterSums, n: int = 0, total: float = 0.0, squares: float = 0.0) -> tuple[float, float]:
    """Return the ratio of the sums and its delete-one-cluster variance; n examples have no cluster."""
    parts = list(sums.groups.values())
    above, below = sum(part[0] for part in parts) + total, sum(part[1] for part in parts) + n
    if not below:
        return math.nan, math.nan
    ratio, count = above / below, len(parts) + n
    if count < 2 or any(part[1] == below for part in parts):
        return ratio, math.nan
    moves = [(ratio * part[1] - part[0]) / (below - part[1]) for part in parts]
    alone, alone_squares = 0.0, 0.0
    if n:
        alone = (ratio * n - total) / (below - 1)
        alone_squares = (ratio * ratio * n - 2 * ratio * total + squares) / (below - 1) ** 2
    middle = (sum(moves) + alone) / count
    apart = max(0.0, alone_squares - 2 * middle * alone + middle * middle * n)
    return ratio, (count - 1) / count * (sum((move - middle) ** 2 for move in moves) + apart)


def clustered_mean(sums: ClusterSums, alone: Moments | None = None) -> Mean:
    """Estimate the mean score, with one degree of freedom fewer than clusters; each example in `alone` is a cluster."""
    rest = Moments() if alone is None else alone
    mean, variance = _jackknife(sums, rest.n, rest.total, rest.squares)
    count, n = len(sums.groups) + rest.n, sums.n + rest.n
    least, most = min(sums.least, rest.least), max(sums.most, rest.most)
    if math.isnan(variance):
        return Mean(mean, math.nan, math.nan, 0, n, "clusters", count)
    if not 0 <= least <= most <= 1:
        return Mean(mean, math.nan, math.sqrt(variance), count - 1, n, "clusters", count)
    unseen = max(END_WEIGHT, CLUSTER_WEIGHT * (n / count) ** 2)
    size = effective_size(variance * n * n, mean, n, unseen=unseen, size=n / count)
    return Mean(mean, size, math.nan, count - 1, n, "clusters", count)


def clustered_difference(sums: ClusterSums, alone: PairedSums | None = None, *, scores: bool = True) -> Difference:
    """Return the mean of clustered differences; t has one degree of freedom fewer than there are clusters.

    Each pair in `alone` is a cluster. With `scores` in [0, 1], some changes may not have been seen yet.
    """
    rest = PairedSums() if alone is None else alone
    value, variance = _jackknife(sums, rest.n, rest.total, rest.squares)
    count, n = len(sums.groups) + rest.n, sums.n + rest.n
    if math.isnan(variance):
        return Difference(value, math.nan, math.nan, 0, n, "clusters", count)
    largest = max(1.0, rest.largest, *((abs(sums.least), abs(sums.most)) if sums.n else ()))
    if not scores or (largest > 1 and variance > SAME * value * value):
        return Difference(value, value, variance, count - 1, n, "clusters", count)
    unseen = UNSEEN_PAIRS * count / n  # for the p-value, two unseen pairs weigh as the part of a cluster that they are
    shrunk = count / (count + unseen)
    whole = variance * shrunk * shrunk + unseen * largest * largest / (count + unseen) ** 2
    if largest > 1:
        return Difference(value, value * shrunk, whole, count - 1, n, "clusters", count)
    third = sum((part[0] - value * part[1]) ** 3 for part in sums.groups.values())
    third += rest.cubes - 3 * value * rest.squares + 3 * value * value * rest.total - rest.n * value**3
    return Difference(
        *(value, value * shrunk, whole, count - 1, n, "clusters", count),
        seen=variance,
        third=third / n**3 * shrunk**3,
        independent=_count_independent(sums, rest.n),
    )


def _count_independent(sums: ClusterSums, alone: int) -> float:
    """Return the effective number of clusters; an example without a cluster counts as one."""
    sizes = [part[1] for part in sums.groups.values()]
    return (sum(sizes) + alone) ** 2 / (sum(size * size for size in sizes) + alone)


@dataclass
class ScoreSums:
    """Sums of scores; scores that share a document or a conversation are summed by cluster."""

    alone: Moments = field(default_factory=Moments)  # scores of examples that have no cluster: each counts by itself
    grouped: Moments = field(default_factory=Moments)
    clusters: ClusterSums = field(default_factory=ClusterSums)

    def add(self, value: float, group: str | None) -> None:
        """Add one score, with the cluster of its example."""
        if group is None:
            self.alone.add(value)
        else:
            self.grouped.add(value)
            self.clusters.add(group, value)

    @property
    def n(self) -> int:
        """How many scores there are."""
        return self.alone.n + self.grouped.n

    def join(self) -> Moments:
        """Return the sums over all scores, ignoring clusters."""
        joined = Moments()
        joined.merge(self.alone)
        joined.merge(self.grouped)
        return joined

    def estimate(self) -> Mean:
        """Estimate the mean: by cluster if any has more than one example."""
        return clustered_mean(self.clusters, self.alone) if self.clusters.shared else estimate_mean(self.join())


@dataclass
class PairSums:
    """Sums over pairs; pairs that share a document or a conversation are summed by cluster."""

    alone: PairedSums = field(default_factory=PairedSums)  # pairs that have no cluster: each counts by itself
    grouped: PairedSums = field(default_factory=PairedSums)
    clusters: ClusterSums = field(default_factory=ClusterSums)

    def add(self, first: float, second: float, group: str | None) -> None:
        """Add one pair, with the cluster of its example."""
        if group is None:
            self.alone.add(first, second)
        else:
            self.grouped.add(first, second)
            self.clusters.add(group, first - second)

    def merge(self, other: PairSums) -> None:
        """Add the pairs of another `PairSums`."""
        self.alone.merge(other.alone)
        self.grouped.merge(other.grouped)
        self.clusters.merge(other.clusters)

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return self.alone.n + self.grouped.n

    def join(self) -> PairedSums:
        """Return the sums over all pairs, ignoring clusters."""
        sums = PairedSums()
        sums.merge(self.alone)
        sums.merge(self.grouped)
        return sums

    def difference(self, *, scores: bool = True) -> Difference:
        """Compute the difference: by cluster if any has more than one pair, and then by row too."""
        rows = paired_difference(self.join(), scores=scores)
        if self.clusters.shared:
            return replace(clustered_difference(self.clusters, self.alone, scores=scores), rows=rows)
        return rows


def compare_means(first: ScoreSums, second: ScoreSums) -> Difference:
    """Return the difference of two means over different examples, by cluster if examples share any.

    As in `unpaired_difference`, one 0 and one 1 are added to each side; with clusters, each of these weighs as much as
    one example's share of a cluster.
    """
    sides = [each.join() for each in (first, second)]
    plain = unpaired_difference(*sides)
    clustered = first.clusters.shared or second.clusters.shared
    if not clustered or plain.seen is None:
        return plain
    n, parts = min(first.n, second.n), [_estimate_side(each) for each in (first, second)]
    groups = sum(part[-1] for part in parts)
    if any(math.isnan(part[1]) for part in parts):
        return Difference(plain.value, math.nan, math.nan, 0, n, "welch", groups)
    variance, seen = parts[0][1] + parts[1][1], parts[0][2] + parts[1][2]
    degrees = welch_degrees([(part[1], part[-1] - 1) for part in parts])
    independent = min(_count_independent(each.clusters, each.alone.n) for each in (first, second))
    centre = parts[0][0] - parts[1][0]
    return Difference(
        *(plain.value, centre, variance, degrees, n, "welch", groups), seen=seen, independent=independent, rows=plain
    )


def _estimate_side(sums: ScoreSums) -> tuple[float, float, float, int]:
    """Return one side's mean with a 0 and a 1 added, its variance, the observed variance, and the cluster count."""
    rest, n, count = sums.alone, sums.n, len(sums.clusters.groups) + sums.alone.n
    mean, seen = _jackknife(sums.clusters, rest.n, rest.total, rest.squares)
    unseen = UNSEEN_PAIRS * count / n
    shrunk = count / (count + unseen)
    ends = (mean * mean + (1 - mean) ** 2) / 2
    variance = seen * shrunk * shrunk + unseen * ends / (count + unseen) ** 2
    return mean * shrunk + (1 - shrunk) / 2, variance, seen, count


def clustered_ratio(
    sums: ClusterSums, alone: RatioSums | None = None, level: float = 0.95, *, positive: bool = False
) -> Interval:
    """Return a ratio of sums over clusters, such as tokens saved; `positive` as in `limit_ratio`."""
    rest = RatioSums() if alone is None else alone
    groups = list(sums.groups.values())
    above, below = sum(part[0] for part in groups) + rest.above, sum(part[1] for part in groups) + rest.below
    count, n = len(groups) + rest.n, sums.n + rest.n
    value, variance = above / below if below else math.nan, math.nan
    if below and count > 1 and all(part[1] != below for part in groups):
        moves = [(value * part[1] - part[0]) / (below - part[1]) for part in groups]
        # of the examples that are alone, the first two terms in their share of the whole
        shift = (value * rest.below - rest.above + (value * rest.below_squares - rest.products) / below) / below
        middle = (sum(moves) + shift) / count
        apart = max(0.0, rest.sum_moves(above, below) - 2 * middle * shift + rest.n * middle * middle)
        variance = (count - 1) / count * (sum((move - middle) ** 2 for move in moves) + apart)
    weights = [abs(part[1]) for part in groups]
    squares = sum(weight * weight for weight in weights) + rest.below_squares
    size = (sum(weights) + rest.below) ** 2 / squares if squares else 0.0
    residuals = [(below * part[0] - above * part[1]) ** 2 for part in groups]
    second, fourth = rest.sum_residuals(above, below)
    second, fourth = second + sum(residuals), fourth + sum(each * each for each in residuals)
    alike = second * second / fourth if fourth else math.inf
    low, high, mark = limit_ratio(value, variance, size, alike, count, level=level, positive=positive)
    even = is_even(value, low, positive)
    return Interval(value, low, high, level, n, "clusters", mark, symmetric=even, groups=count)
