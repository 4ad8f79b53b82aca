"""The difference between two systems: one estimate from which interval, p-value, verdict and plan all follow.

Since all of them use the same centre, variance and degrees of freedom, a p-value below 0.05 and a 95% interval without
0 are the same statement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from context_bench.stats.accumulator import Accumulator
from context_bench.stats.distributions import t_quantile, t_tail, welch_degrees
from context_bench.stats.interval import TOO_FEW, Interval
from context_bench.stats.means import Moments

__all__ = [
    "UNSEEN_PAIRS",
    "Difference",
    "PairedSums",
    "average_differences",
    "paired_difference",
    "unpaired_difference",
]

UNSEEN_PAIRS = 2
"""Pairs that are added to those seen: one that got better by a whole point, one that got worse (Bonett and Price,
2012). Without them a system that changed nothing, or only in one direction, gets an interval that is far too short."""


MEAN_OF_DATASETS = "mean of datasets"
"""The method of a difference over several datasets."""
SAME = 1e-12
"""A spread below this share of the squares is none: all changes are the same, but for rounding."""


@dataclass(frozen=True)
class Difference:
    """An estimated difference: as observed, and as the interval around `centre` sees it.

    `n` counts the pairs (unpaired: the smaller side), `groups` the clusters, if there are any. `seen` is the variance
    without the examples that were added, as is done to scores in [0, 1]; None where none were. `unseen` is what those
    weigh: on many pairs the variance is `spread² / n + unseen / n²`.
    """

    value: float
    centre: float
    variance: float
    degrees: float
    n: int
    method: str
    groups: int | None = None
    seen: float | None = None
    unseen: float = 0.0

    @property
    def known(self) -> bool:
        """Whether there is enough to judge by."""
        return self.degrees > 0 and math.isfinite(self.variance)

    @property
    def spread(self) -> float:
        """Standard deviation of one pair's difference as it was seen, with clusters as if the pairs were alone."""
        variance = self.variance if self.seen is None else self.seen
        return math.sqrt(variance * self.n) if self.known else math.nan

    @property
    def groups_per_pair(self) -> float:
        """Clusters that one pair brings, by the degrees of freedom; infinite where each pair counts by itself."""
        return (self.degrees + 1) / self.n if self.groups else math.inf

    def interval(self, level: float = 0.95) -> Interval:
        """Give the two-sided interval; it is not corrected for other comparisons."""
        if not self.known:
            nan = math.nan
            return Interval(self.value, nan, nan, level, self.n, self.method, TOO_FEW, groups=self.groups)
        half = t_quantile((1 + level) / 2, self.degrees) * math.sqrt(self.variance)
        exact = self.centre == self.value
        low, high = self.limit(half)
        return Interval(self.value, low, high, level, self.n, self.method, symmetric=exact, groups=self.groups)

    def limit(self, half: float) -> tuple[float, float]:
        """Give the two ends so far from the centre; scores in [0, 1] cannot differ by more than 1."""
        low, high = self.centre - half, self.centre + half
        return (low, high) if self.seen is None else (max(-1.0, low), min(1.0, high))

    def p_value(self, null: float = 0.0) -> float:
        """Give the two-sided p-value of `the true difference is null`; NaN where there is too little to judge by."""
        if not self.known:
            return math.nan
        if self.variance == 0:
            return float(self.centre == null)
        return 2 * t_tail(abs(self.centre - null) / math.sqrt(self.variance), self.degrees)

    def p_above(self, null: float) -> float:
        """Give the one-sided p-value of `the true difference is at most null`."""
        if not self.known:
            return math.nan
        if self.variance == 0:
            return 0.5 if self.centre == null else float(self.centre < null)
        return t_tail((self.centre - null) / math.sqrt(self.variance), self.degrees)


@dataclass
class PairedSums(Accumulator):
    """Sums of the differences between two systems on the same examples."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    up: int = 0
    """Examples on which the first system scored higher; of pass/fail, those that only it passed."""
    down: int = 0
    largest: float = field(default=0.0, metadata={"merge": max})
    """The largest change, in either direction: scores in [0, 1] do not change by more than 1."""

    def add(self, first: float, second: float) -> None:
        """Add one example: what the system scored, and what the baseline did."""
        change = first - second
        self.n += 1
        if change:
            self.total += change
            self.squares += change * change
            self.up += change > 0
            self.down += change < 0
            if abs(change) > self.largest:
                self.largest = abs(change)

    @property
    def changed(self) -> int:
        """Examples on which the two differ."""
        return self.up + self.down


def paired_difference(sums: PairedSums, *, scores: bool = True) -> Difference:
    """Give the mean difference over pairs, with one unseen change in each direction.

    Args:
        sums: Over the pairs.
        scores: Whether they are scores in [0, 1]; seconds or tokens get Student's plain form, and so do scores on
            another scale, unless all change by the same: then the unseen changes are as large as that.
    """
    if sums.n < 2:
        return Difference(sums.total / sums.n if sums.n else math.nan, math.nan, math.nan, 0, sums.n, "paired t")
    value = sums.total / sums.n
    deviations = max(0.0, sums.squares - sums.total * value)
    if not scores or (sums.largest > 1 and deviations > SAME * sums.squares):
        return Difference(value, value, deviations / (sums.n - 1) / sums.n, sums.n - 1, sums.n, "paired t")
    n, size = sums.n + UNSEEN_PAIRS, max(1.0, sums.largest)
    centre = sums.total / n
    variance = (sums.squares + UNSEEN_PAIRS * size * size) / n - centre * centre
    if size > 1:
        return Difference(value, centre, variance / n, sums.n - 1, sums.n, "paired t")
    seen = max(0.0, sums.squares / sums.n - value * value)
    unseen = max(0.0, UNSEEN_PAIRS * (1 + value * value - 2 * seen))
    return Difference(value, centre, variance / n, sums.n - 1, sums.n, "paired t", seen=seen / sums.n, unseen=unseen)


def unpaired_difference(first: Moments, second: Moments, *, scores: bool = True) -> Difference:
    """Give the difference of two means over different examples, by Welch.

    Scores get one 0 and one 1 added to each side (Agresti and Caffo), without which the interval fails near the
    ceiling.
    """
    value, n = first.mean - second.mean, min(first.n, second.n)
    if n < 2:
        return Difference(value, math.nan, math.nan, 0, n, "welch")
    of_quality = scores
    scores = scores and all(0 <= side.least <= side.most <= 1 for side in (first, second))
    sides, parts = [], []
    for side in (first, second):
        size = side.n + 2 if scores else side.n
        mean = (side.total + 1) / size if scores else side.mean
        spread = (side.squares + 1) / size - mean * mean if scores else side.variance
        sides.append(mean)
        parts.append((spread / size, side.n - 1.0))
    variance, degrees = parts[0][0] + parts[1][0], welch_degrees(parts)
    if of_quality and not scores and variance <= SAME * value * value:  # one value on each side tells no spread
        return Difference(value, math.nan, math.nan, 0, n, "welch")
    if not scores:
        return Difference(value, value, variance, degrees, n, "welch")
    seen = sum(side.deviations / side.n**2 for side in (first, second))
    unseen = sum(_weigh_ends(side) * (n / side.n) ** 2 for side in (first, second))
    return Difference(value, sides[0] - sides[1], variance, degrees, n, "welch", seen=seen, unseen=max(0.0, unseen))


def _weigh_ends(side: Moments) -> float:
    """Give what one 0 and one 1 beside many scores add to n² times the variance of their mean."""
    return side.mean**2 + (1 - side.mean) ** 2 - 4 * side.deviations / side.n


def average_differences(parts: Sequence[Difference]) -> Difference:
    """Give the mean of the differences of several datasets, each with the same weight."""
    known, count = all(part.known for part in parts) and bool(parts), max(1, len(parts))
    value = math.fsum(part.value for part in parts) / count if parts else math.nan
    n = sum(part.n for part in parts)
    if not known:
        return Difference(value, math.nan, math.nan, 0, n, MEAN_OF_DATASETS)
    centre = math.fsum(part.centre for part in parts) / count
    variance = math.fsum(part.variance for part in parts) / count**2
    degrees = welch_degrees([(part.variance, part.degrees) for part in parts])
    groups = sum(part.groups or part.n for part in parts) if any(part.groups for part in parts) else None
    seen = [part.seen for part in parts if part.seen is not None]
    without = sum(seen) / count**2 if len(seen) == len(parts) else None
    unseen = sum(part.unseen * (n / part.n) ** 2 for part in parts) / count**2
    return Difference(value, centre, variance, degrees, n, MEAN_OF_DATASETS, groups, without, unseen)
