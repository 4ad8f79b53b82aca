"""Examples that share a document or a conversation: they are right or wrong together, and count for fewer.

Everything is computed by leaving out one cluster at a time, from one pair of sums for each cluster. A test that takes
the questions of ten conversations for independent alarms in a third to a half of all comparisons of a system with
itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from context_bench.stats.accumulator import Accumulator, keep_largest, keep_smallest
from context_bench.stats.differences import UNSEEN_PAIRS, Difference
from context_bench.stats.interval import Interval
from context_bench.stats.means import END_WEIGHT, Mean, effective_size
from context_bench.stats.ratios import limit_ratio

__all__ = ["ClusterSums", "clustered_difference", "clustered_mean", "clustered_ratio"]

Groups = dict[str, list[float]]

CLUSTER_WEIGHT = 0.02
"""Weight of a whole cluster that was not seen yet: with ten of them, the one that fails may be missing. Without it, ten
clusters whose examples go together cover 57 to 85% where they say 95."""


def _merge_groups(one: Groups, other: Groups) -> Groups:
    joined = {group: [*sums] for group, sums in one.items()}
    for group, (above, below) in other.items():
        sums = joined.setdefault(group, [0.0, 0.0])
        sums[0] += above
        sums[1] += below
    return joined


@dataclass
class ClusterSums(Accumulator):
    """Two sums for each cluster: scores and their number, differences and their number, or the parts of a ratio."""

    n: int = 0
    groups: Groups = field(default_factory=dict, metadata={"merge": _merge_groups})
    ends: int = 0
    least: float = keep_smallest()
    most: float = keep_largest()

    def add(self, group: str, value: float, weight: float = 1) -> None:
        """Add one example of a cluster: a score, a difference, or the parts of a ratio."""
        self.n += 1
        sums = self.groups.get(group)
        if sums is None:
            sums = self.groups[group] = [0.0, 0.0]
        sums[0] += value
        sums[1] += weight
        self.ends += value in (0, 1)
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    def state(self) -> dict[str, Any]:
        """Give the fields as JSON can hold them, apart from this accumulator."""
        return {**super().state(), "groups": {group: [*sums] for group, sums in self.groups.items()}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ClusterSums:
        """Make it again from its state."""
        kept = {name: value for name, value in state.items() if value is not None}
        return cls(**{**kept, "groups": {group: [*sums] for group, sums in state["groups"].items()}})


def _jackknife(sums: ClusterSums) -> tuple[float, float]:
    """Give the ratio of the sums and its variance, by leaving out one cluster at a time."""
    parts = list(sums.groups.values())
    above, below = sum(part[0] for part in parts), sum(part[1] for part in parts)
    if not below:
        return math.nan, math.nan
    ratio, count = above / below, len(parts)
    if count < 2 or any(part[1] == below for part in parts):
        return ratio, math.nan
    moves = [(ratio * part[1] - part[0]) / (below - part[1]) for part in parts]
    middle = sum(moves) / count
    return ratio, (count - 1) / count * sum((move - middle) ** 2 for move in moves)


def clustered_mean(sums: ClusterSums) -> Mean:
    """Estimate the mean score, with one degree of freedom fewer than there are clusters."""
    mean, variance = _jackknife(sums)
    count, n = len(sums.groups), sums.n
    if math.isnan(variance):
        return Mean(mean, math.nan, math.nan, 0, n, "clusters")
    if not 0 <= sums.least <= sums.most <= 1:
        return Mean(mean, math.nan, math.sqrt(variance), count - 1, n, "clusters")
    unseen = max(END_WEIGHT, CLUSTER_WEIGHT * (n / count) ** 2) if sums.ends or sums.least == sums.most else 0.0
    size = effective_size(variance * n * n, mean, n, unseen=unseen, size=n / count)
    return Mean(mean, size, math.nan, count - 1, n, "clusters")


def clustered_difference(sums: ClusterSums, *, scores: bool = True, repeated: bool = False) -> Difference:
    """Give the mean of differences that come in clusters, t with one degree fewer than clusters.

    Args:
        sums: Over the clusters.
        scores: Whether they are differences of scores in [0, 1], of which some may not have been seen yet.
        repeated: Whether a cluster holds answers to one example. What was not seen is then two whole examples, as in
            `paired_difference`: asking again tells nothing of other examples.
    """
    value, variance = _jackknife(sums)
    count, n = len(sums.groups), sums.n
    if math.isnan(variance):
        return Difference(value, math.nan, math.nan, 0, n, "clusters", count)
    if not scores or not -1 <= sums.least <= sums.most <= 1:
        return Difference(value, value, variance, count - 1, n, "clusters", count)
    # Two unseen pairs weigh as the part of a cluster that they are; with answers to one example they are whole ones.
    unseen = UNSEEN_PAIRS if repeated else UNSEEN_PAIRS * count / n
    shrunk = count / (count + unseen)
    whole = variance * shrunk * shrunk + unseen / (count + unseen) ** 2
    size = n / count
    weight = max(0.0, unseen * size * (size - 2 * variance * n))
    return Difference(value, value * shrunk, whole, count - 1, n, "clusters", count, variance, weight)


def clustered_ratio(sums: ClusterSums, level: float = 0.95, *, positive: bool = False) -> Interval:
    """Give a ratio of sums over clusters, such as the tokens saved over conversations."""
    value, variance = _jackknife(sums)
    count = len(sums.groups)
    weights = [abs(part[1]) for part in sums.groups.values()]
    size = sum(weights) ** 2 / sum(weight * weight for weight in weights) if any(weights) else 0.0
    low, high, mark = limit_ratio(value, variance, size, count, level=level, positive=positive)
    return Interval(value, low, high, level, sums.n, "clusters", mark, symmetric=not positive)
