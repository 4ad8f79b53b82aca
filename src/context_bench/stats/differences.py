"""The difference between two systems: one estimate from which interval, p-value, verdict and plan all follow.

p-value and 95% interval use the same centre, variance and degrees of freedom. "Equivalent" and "not worse" use the 90%
limits. Each is the wider of two limits: one with a term for skewness, one that bounds unseen losses. Without these, a
system whose true loss equals the margin would be called equivalent in 10% of runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from context_bench.stats.distributions import beta_quantile, t_quantile, t_tail, welch_degrees
from context_bench.stats.interval import TOO_FEW, Interval
from context_bench.stats.means import Accumulator, Moments

__all__ = [
    "UNSEEN_PAIRS",
    "Difference",
    "PairedSums",
    "average_differences",
    "bound_losses",
    "paired_difference",
    "unpaired_difference",
]

UNSEEN_PAIRS = 2
"""Pairs that are added to those seen: one that improved by a whole point, one that worsened by as much (Bonett and
Price, 2012). Without them a system that changed nothing, or only in one direction, gets an interval that is far too
short."""


MEAN_OF_DATASETS = "mean of datasets"  # the method of a difference over several datasets
NARROW_TAIL = 0.05  # chance that the true difference lies beyond one of the 90% limits
SAME = 1e-12  # below this share of the squares, spread is rounding error: all changes are equal


@lru_cache(maxsize=4096)
def bound_losses(losses: float, n: float, tail: float = NARROW_TAIL) -> float:
    """Return the upper Clopper-Pearson limit of the share of losses.

    Without any loss it is `1 - tail ** (1 / n)`: 149 examples exclude 0.02, ten exclude 0.26 at best.
    """
    return 1.0 if n - losses < SAME * n else beta_quantile(1 - tail, losses + 1, n - losses)


@dataclass(frozen=True)
class Difference:
    """An estimated difference: the observed value, and the interval around `centre`.

    `n` counts the pairs (unpaired: the smaller side), `groups` the clusters, if there are any. `seen` is the variance
    without the examples that are added for scores in [0, 1]; None if none are added. `third` is the third central
    moment of the estimate, which gives the skewness. `independent` is the number of examples for the bound on unseen
    losses, or with clusters their effective number; None if no bound is known. `rows` is the difference without
    clusters, valid only for these groups. `cubed` is the mean of the cubed changes: for pass/fail it equals the value;
    for other scores, many small gains cannot hide rare breaks in it.
    """

    value: float
    centre: float
    variance: float
    degrees: float
    n: int
    method: str
    groups: int | None = None
    seen: float | None = None
    third: float = 0.0
    independent: float | None = None
    rows: Difference | None = None
    cubed: float = 0.0

    @property
    def known(self) -> bool:
        """Whether there is enough data for a judgement."""
        return self.degrees > 0 and math.isfinite(self.variance)

    @property
    def spread(self) -> float:
        """Standard deviation of one pair's observed difference, ignoring clusters."""
        variance = self.variance if self.seen is None else self.seen
        return math.sqrt(variance * self.n) if self.known else math.nan

    def interval(self, level: float = 0.95) -> Interval:
        """Return the two-sided interval, not corrected for other comparisons. Up to 90%, its ends are the deciding
        limits. Above, it excludes 0 exactly if the p-value is significant at that level.
        """
        if not self.known:
            nan = math.nan
            return Interval(self.value, nan, nan, level, self.n, self.method, TOO_FEW, groups=self.groups)
        tail = (1 - level) / 2
        return self.enclose(*(self.limits(tail) if tail >= NARROW_TAIL else self.widen(tail, NARROW_TAIL)), level)

    def widen(self, tail: float, narrow: float) -> tuple[float, float]:
        """Return the limits that agree with a p-value of twice that tail, and that contain the deciding limits of the
        narrow tail. A limit that excludes 0 is not widened, since the p-value excludes 0 too.
        """
        half = t_quantile(1 - tail, self.degrees) * math.sqrt(self.variance)
        low, high = self.centre - half, self.centre + half
        least, most = self.limits(narrow)
        return low if low > 0 else min(low, least), high if high < 0 else max(high, most)

    def narrow(self, tail: float = NARROW_TAIL) -> Interval:
        """Return the interval between the limits that decide "equivalent" and "not worse"."""
        return self.enclose(*self.limits(tail), 1 - 2 * tail) if self.known else self.interval(1 - 2 * tail)

    def enclose(self, low: float, high: float, level: float, method: str = "") -> Interval:
        """Make an interval from two ends; scores in [0, 1] cannot differ by more than 1."""
        if self.seen is not None:
            low, high = max(-1.0, low), min(1.0, high)
        even = math.isclose(high - self.value, self.value - low, rel_tol=1e-9)
        named = method or self.method
        return Interval(self.value, low, high, level, self.n, named, symmetric=even, groups=self.groups)

    def limits(self, tail: float = NARROW_TAIL) -> tuple[float, float]:
        """Return two limits; the true difference lies beyond each of them with at most this probability. They decide
        "equivalent" and "not worse", and enclose the value.
        """
        t, error = t_quantile(1 - tail, self.degrees), math.sqrt(self.variance)
        lean = self.third / error**3 * (2 * t * t + 1) / 6 if error else 0.0
        low, high = self.centre - error * (t - min(0.0, lean)), self.centre + error * (t + max(0.0, lean))
        if self.independent:
            low = min(low, self.value - self._find_unseen(max(-self.value, -self.cubed), tail))
            high = max(high, self.value + self._find_unseen(max(self.value, self.cubed), tail))
        return min(low, self.value), max(high, self.value)

    def _find_unseen(self, net: float, tail: float) -> float:
        """Return the share of net losses (or gains) that may exist beyond those seen."""
        n = self.independent or 0.0
        losses = max(0.0, net) * n
        return bound_losses(losses, n, tail) - losses / n

    def p_value(self, null: float = 0.0) -> float:
        """Return the two-sided p-value of `the true difference is null`; NaN without enough data."""
        if not self.known:
            return math.nan
        if self.variance == 0:
            return float(self.centre == null)
        return 2 * t_tail(abs(self.centre - null) / math.sqrt(self.variance), self.degrees)


@dataclass
class PairedSums(Accumulator):
    """Sums of the differences between two systems on the same examples."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    up: int = 0  # examples on which the first system scored higher; of pass/fail, those that only it passed
    down: int = 0
    largest: float = field(default=0.0, metadata={"merge": max})
    """The largest change, in either direction: scores in [0, 1] do not change by more than 1."""
    cubes: float = 0.0

    def add(self, first: float, second: float) -> None:
        """Add one example: the scores of the system and of the baseline."""
        change = first - second
        self.n += 1
        if change:
            self.total += change
            self.squares += change * change
            self.cubes += change**3
            self.up += change > 0
            self.down += change < 0
            if abs(change) > self.largest:
                self.largest = abs(change)

    @property
    def changed(self) -> int:
        """Examples on which the two differ."""
        return self.up + self.down


def paired_difference(sums: PairedSums, *, scores: bool = True) -> Difference:
    """Return the mean difference over pairs, with one unseen change in each direction.

    Seconds, tokens and scores outside [0, 1] get Student's plain form. If all such scores change by the same amount,
    the unseen changes have that size.
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
    third = (sums.cubes / n - 3 * centre * variance - centre**3) / n**2
    return Difference(
        *(value, centre, variance / n, sums.n - 1, sums.n, "paired t"),
        seen=seen / sums.n,
        third=third,
        independent=sums.n,
        cubed=sums.cubes / sums.n,
    )


def unpaired_difference(first: Moments, second: Moments, *, scores: bool = True) -> Difference:
    """Return the difference of two means over different examples, by Welch.

    One 0 and one 1 are added to the scores of each side (Agresti and Caffo); without them the interval fails near the
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
    if of_quality and not scores and variance <= SAME * value * value:  # one value on each side has no spread
        return Difference(value, math.nan, math.nan, 0, n, "welch")
    if not scores:
        return Difference(value, value, variance, degrees, n, "welch")
    seen = sum(side.deviations / side.n**2 for side in (first, second))
    return Difference(value, sides[0] - sides[1], variance, degrees, n, "welch", seen=seen, independent=n)


def average_differences(parts: Sequence[Difference]) -> Difference:
    """Return the mean of the differences of several datasets, equally weighted."""
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
    sizes = [part.independent for part in parts if part.independent]
    clustered = any(part.rows for part in parts)
    return Difference(
        *(value, centre, variance, degrees, n, MEAN_OF_DATASETS, groups),
        seen=sum(seen) / count**2 if len(seen) == count else None,
        third=math.fsum(part.third for part in parts) / count**3,
        independent=count**2 / sum(1 / size for size in sizes) if len(sizes) == count else None,
        rows=average_differences([part.rows or part for part in parts]) if clustered else None,
        cubed=math.fsum(part.cubed for part in parts) / count,
    )
