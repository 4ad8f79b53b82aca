"""Ratios of sums: savings, compression and cost of pass are each one sum divided by another.

Long examples weigh more than short ones, so this differs from the mean of the ratios. The standard error is the
jackknife's, computed from sums: the effect of leaving out one example, expanded to three terms in its share of the
total.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import mul

from context_bench.stats.distributions import t_quantile
from context_bench.stats.interval import ROUGH, TOO_FEW, Interval
from context_bench.stats.means import Accumulator

__all__ = ["RatioSums", "limit_ratio", "ratio_interval"]

ROUGH_BELOW = 0.4
"""Smallest effective share of the examples; below it a few long examples dominate the ratio."""

LEAST_DEGREES = 2.0
"""Least degrees of freedom from ten examples on, however unequal they are. With one, intervals would be twice as wide
and cover hardly more: 94.4 against 93.2% at worst."""

LEAST_RESIDUAL = 1e-13  # below this share of the fourth powers, the residual is rounding error

MAX_LOG_HALF = 3.0  # limits further away than a factor of 20 are not worth printing


_WHOLE = frozenset({int, bool})


@dataclass
class RatioSums(Accumulator):
    """Sums of pairs (above, below) for the ratio of their totals. Whole numbers stay exact."""

    n: int = 0
    above: float = 0
    below: float = 0
    above_squares: float = 0
    products: float = 0
    below_squares: float = 0
    cubes_2_1: float = 0
    cubes_1_2: float = 0
    cubes_0_3: float = 0
    fourths_4_0: float = 0
    fourths_3_1: float = 0
    fourths_2_2: float = 0
    fourths_1_3: float = 0
    fourths_0_4: float = 0
    lengths: float = 0
    length_squares: float = 0

    def add(self, above: float, below: float, length: float | None = None) -> None:
        """Add one example, weighted by its length: by default, the larger of its numerator and denominator."""
        square, product, under = above * above, above * below, below * below
        self.n += 1
        self.above += above
        self.below += below
        self.above_squares += square
        self.products += product
        self.below_squares += under
        self.cubes_2_1 += square * below
        self.cubes_1_2 += product * below
        self.cubes_0_3 += under * below
        self.fourths_4_0 += square * square
        self.fourths_3_1 += square * product
        self.fourths_2_2 += square * under
        self.fourths_1_3 += product * under
        self.fourths_0_4 += under * under
        weight = max(above, below) if length is None else length
        self.lengths += weight
        self.length_squares += weight * weight

    def extend(self, pairs: Iterable[tuple[float, float]]) -> None:
        """Add many examples; whole numbers, whose sums are exact in any order, are added all at once."""
        kept = list(pairs)
        if not all(type(above) in _WHOLE and type(below) in _WHOLE for above, below in kept):
            for above, below in kept:
                self.add(above, below)
            return
        aboves, belows = [above for above, _ in kept], [below for _, below in kept]
        square, product = list(map(mul, aboves, aboves)), list(map(mul, aboves, belows))
        under, weights = list(map(mul, belows, belows)), list(map(max, aboves, belows))
        self.n += len(kept)
        self.above += sum(aboves)
        self.below += sum(belows)
        self.above_squares += sum(square)
        self.products += sum(product)
        self.below_squares += sum(under)
        self.cubes_2_1 += sum(map(mul, square, belows))
        self.cubes_1_2 += sum(map(mul, product, belows))
        self.cubes_0_3 += sum(map(mul, under, belows))
        self.fourths_4_0 += sum(map(mul, square, square))
        self.fourths_3_1 += sum(map(mul, square, product))
        self.fourths_2_2 += sum(map(mul, square, under))
        self.fourths_1_3 += sum(map(mul, product, under))
        self.fourths_0_4 += sum(map(mul, under, under))
        self.lengths += sum(weights)
        self.length_squares += sum(map(mul, weights, weights))

    @property
    def ratio(self) -> float:
        """The ratio of the totals; NaN if the denominator is 0."""
        return self.above / self.below if self.below else math.nan

    @property
    def effective_n(self) -> float:
        """Effective sample size (Kish)."""
        return self.lengths * self.lengths / self.length_squares if self.length_squares else 0.0

    @property
    def alike(self) -> float:
        """Number of equal residuals with the same kurtosis; small if a few examples dominate the variance."""
        second, fourth = self.sum_residuals(self.above, self.below)
        return second * second / fourth if fourth else math.inf

    @property
    def variance(self) -> float:
        """The jackknife's variance of the ratio."""
        if self.n < 2 or not self.below:
            return math.nan
        return (self.n - 1) / self.n * self.sum_moves(self.above, self.below)

    def sum_residuals(self, above: float, below: float) -> tuple[float, float]:
        """Sum the squares and the fourth powers of each example's deviation from the ratio of two totals, times
        `below`. Equal residuals have the smallest possible sum of fourth powers; rounding must not push it below that.
        """
        a, b = above, below
        second = max(0.0, b * b * self.above_squares - 2 * a * b * self.products + a * a * self.below_squares)
        even = b**4 * self.fourths_4_0 + 6 * a**2 * b**2 * self.fourths_2_2 + a**4 * self.fourths_0_4
        fourth = even - 4 * a * b**3 * self.fourths_3_1 - 4 * a**3 * b * self.fourths_1_3
        least = second * second / self.n if self.n else 0.0
        return second, max(least, fourth if fourth > LEAST_RESIDUAL * even else 0.0)

    def sum_moves(self, above: float, below: float) -> float:
        """Sum the squared changes of the ratio of two totals when one of these examples is left out."""
        a, b = above, below
        # a and b multiplied in, not the ratio: whole numbers then cancel exactly where nothing was saved
        first = (b * b * self.above_squares - 2 * a * b * self.products + a * a * self.below_squares) / b**2
        second = (b * b * self.cubes_2_1 - 2 * a * b * self.cubes_1_2 + a * a * self.cubes_0_3) / b**3
        third = (b * b * self.fourths_2_2 - 2 * a * b * self.fourths_1_3 + a * a * self.fourths_0_4) / b**4
        return (max(0.0, first) + 2 * max(0.0, second) + 3 * max(0.0, third)) / b**2


def limit_ratio(
    value: float, variance: float, effective_n: float, alike: float, n: int, *, level: float, positive: bool = False
) -> tuple[float, float, str]:
    """Return the limits of a ratio and their mark.

    A share of tokens is at least 0, so a saving is at most 1. `effective_n` is the effective number of examples (or
    clusters), `alike` the number of equal residuals with the same kurtosis. With `positive` the limits are computed for
    the logarithm, as for a cost, which may be very large but never below 0.
    """
    if math.isnan(variance) or effective_n <= 1 or (positive and value <= 0):
        return math.nan, math.nan, TOO_FEW
    degrees = max(1.0, min(LEAST_DEGREES, n / 5), min(effective_n, alike) - 1)
    half = t_quantile((1 + level) / 2, degrees) * math.sqrt(variance)
    mark = ROUGH if effective_n / n < ROUGH_BELOW else ""
    if not positive:
        return (max(0.0, value - half) if value >= 0 else value - half), value + half, mark
    if half / value > MAX_LOG_HALF:
        return math.nan, math.nan, TOO_FEW
    return value * math.exp(-half / value), value * math.exp(half / value), mark


def ratio_interval(sums: RatioSums, level: float = 0.95, *, positive: bool = False) -> Interval:
    """Return the ratio with its interval, by the jackknife's error and t.

    t has one degree of freedom fewer than the effective number of examples. This number is computed by length, and by
    the deviation of each example from the ratio; the smaller one counts. A saving that grows with length depends on a
    few long examples even more than their length suggests. `positive` is for costs, as in `limit_ratio`.
    """
    value = sums.ratio
    known = sums.variance, sums.effective_n, sums.alike, sums.n
    low, high, mark = limit_ratio(value, *known, level=level, positive=positive)
    method = "jackknife of the logarithm" if positive else "jackknife"
    return Interval(value, low, high, level, sums.n, method, mark, symmetric=is_even(value, low, positive))


def is_even(value: float, low: float, positive: bool) -> bool:
    """Whether the limits are symmetric: not on a log scale, and not if they end at 0."""
    return not positive and (low != 0 or value == 0)
