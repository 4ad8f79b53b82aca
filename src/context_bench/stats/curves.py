"""Quality against tokens: the settings of one knob as a curve, its area, and the largest saving that is not worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from context_bench.stats.accumulator import Accumulator
from context_bench.stats.differences import Difference, PairedSums, paired_difference
from context_bench.stats.interval import Interval
from context_bench.stats.means import END_WEIGHT, Mean, effective_size

__all__ = [
    "CurveSums",
    "Setting",
    "area_difference",
    "area_interval",
    "area_of_intervals",
    "area_weights",
    "find_common_range",
    "find_largest_saving",
]


def _add_vectors(one: list[float], other: list[float]) -> list[float]:
    return [a + b for a, b in zip(one, other)] if one and other else [*(one or other)]


def _add_matrices(one: list[list[float]], other: list[list[float]]) -> list[list[float]]:
    return [_add_vectors(a, b) for a, b in zip(one, other)] if one and other else [[*row] for row in one or other]


@dataclass
class CurveSums(Accumulator):
    """Sums over examples that were run with every setting: scores and their products, a column for each setting.

    For two curves that are compared, the columns of both stand side by side.
    """

    n: int = 0
    totals: list[float] = field(default_factory=list, metadata={"merge": _add_vectors})
    products: list[list[float]] = field(default_factory=list, metadata={"merge": _add_matrices})

    def add(self, scores: Sequence[float]) -> None:
        """Add one example's score with each setting."""
        if not self.totals:
            self.totals = [0.0] * len(scores)
            self.products = [[0.0] * len(scores) for _ in scores]
        self.n += 1
        for place, score in enumerate(scores):
            self.totals[place] += score
            if score:
                row = self.products[place]
                for other, more in enumerate(scores):
                    row[other] += score * more

    def combine(self, weights: Sequence[float]) -> tuple[float, float]:
        """Give the sum and the sum of squares of the examples' weighted scores."""
        total = sum(weight * each for weight, each in zip(weights, self.totals))
        squares = sum(
            weight * other * product
            for weight, row in zip(weights, self.products)
            for other, product in zip(weights, row)
        )
        return total, squares


def find_common_range(curves: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Give the range of tokens that every curve covers; None if there is none."""
    low, high = max(min(tokens) for tokens in curves), min(max(tokens) for tokens in curves)
    return (low, high) if low < high else None


def area_weights(tokens: Sequence[float], low: float, high: float) -> list[float]:
    """Give the weight of each setting in the mean height of the line through them between two numbers of tokens."""
    weights = [0.0] * len(tokens)
    order = sorted(range(len(tokens)), key=lambda place: tokens[place])
    for one, two in pairwise(order):
        left, right = max(low, tokens[one]), min(high, tokens[two])
        if left < right:
            middle = ((left + right) / 2 - tokens[one]) / (tokens[two] - tokens[one])
            weights[one] += (right - left) * (1 - middle)
            weights[two] += (right - left) * middle
    return [weight / (high - low) for weight in weights]


def area_interval(sums: CurveSums, weights: Sequence[float], level: float = 0.95) -> Interval:
    """Give the area under the curve divided by the length of its range: the mean quality there.

    The tokens of each setting are taken as known.
    """
    if sums.n < 2:
        return Mean(math.nan, math.nan, math.nan, 0, sums.n, "area").interval(level)
    total, squares = sums.combine(weights)
    mean = min(1.0, max(0.0, total / sums.n))
    deviations = max(0.0, squares - total * total / sums.n)
    size = effective_size(deviations, mean, sums.n, unseen=END_WEIGHT)
    return Mean(mean, size, math.nan, sums.n - 1, sums.n, "area").interval(level)


def area_of_intervals(intervals: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Give the area where only each setting's interval is known: as wide as if all settings erred together."""
    value, low, high = (
        sum(weight * getattr(each, name) for weight, each in zip(weights, intervals) if weight)
        for name in ("value", "low", "high")
    )
    n = min((each.n for weight, each in zip(weights, intervals) if weight), default=0)
    mark = next((each.mark for weight, each in zip(weights, intervals) if weight and each.mark), "")
    return Interval(value, low, high, intervals[0].level, n, "area, at most so wide", mark)


def area_difference(sums: CurveSums, first: Sequence[float], second: Sequence[float]) -> Difference:
    """Give the difference of two areas over the same examples and range; each side's weights cover all columns."""
    total, squares = sums.combine([one - two for one, two in zip(first, second)])
    return replace(paired_difference(PairedSums(sums.n, total, squares)), third=0.0)  # there are no sums of cubes


@dataclass(frozen=True)
class Setting:
    """One setting of a knob: its share of tokens saved, and its difference in quality from the baseline."""

    name: str
    saving: float
    difference: Difference


def find_largest_saving(settings: Sequence[Setting], margin: float, *, alpha: float = 0.05) -> Setting | None:
    """Find the setting that saves most and is not worse than the baseline by the margin; None if there is none.

    Settings are tried from the smallest saving on and the first that fails ends the search, so that the level holds
    for all of them together without a correction.
    """
    best = None
    for setting in sorted(settings, key=lambda each: each.saving):
        if not setting.difference.known or setting.difference.limits(alpha)[0] <= -margin:
            break
        best = setting
    return best
