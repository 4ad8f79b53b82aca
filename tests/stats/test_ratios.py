"""Ratios of sums, from sums alone."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from context_bench.stats import ROUGH, TOO_FEW, ClusterSums, RatioSums, clustered_ratio, ratio_interval
from later import Later

scipy = Later("scipy.stats")


def _draw(n: int, tail: float, seed: int) -> list[tuple[int, int]]:
    source = random.Random(seed)
    lengths = [math.ceil(math.exp(source.gauss(7, tail))) for _ in range(n)]
    return [(round(length * source.betavariate(4, 4)), length) for length in lengths]


def _sums(pairs: list[tuple[float, float]]) -> RatioSums:
    made = RatioSums()
    made.extend(pairs)
    return made


def _jackknife(pairs: list[tuple[int, int]]) -> float:
    above, below, n = sum(a for a, _ in pairs), sum(b for _, b in pairs), len(pairs)
    left = [(above - a) / (below - b) for a, b in pairs]
    middle = sum(left) / n
    return (n - 1) / n * sum((each - middle) ** 2 for each in left)


def _count_alike(pairs: Sequence[tuple[float, float]]) -> float:
    """So many residuals of one size would have this kurtosis."""
    ratio = sum(above for above, _ in pairs) / sum(below for _, below in pairs)
    squares = [(above - ratio * below) ** 2 for above, below in pairs]
    return sum(squares) ** 2 / sum(square**2 for square in squares)


@pytest.mark.parametrize(
    ("n", "tail", "within"), [(30, 0.3, 1e-3), (30, 0.7, 0.01), (300, 0.7, 1e-3), (1000, 1.0, 1e-3)]
)
def test_the_variance_from_sums_is_the_jackknifes(n: int, tail: float, within: float) -> None:
    for seed in range(5):
        pairs = _draw(n, tail, seed)
        assert _sums(pairs).variance == pytest.approx(_jackknife(pairs), rel=within)


def test_the_interval() -> None:
    pairs = _draw(200, 0.5, 1)
    sums, lengths = _sums(pairs), [below for _, below in pairs]
    size = sum(lengths) ** 2 / sum(length**2 for length in lengths)
    half = scipy.t.ppf(0.975, min(size, _count_alike(pairs)) - 1) * math.sqrt(_jackknife(pairs))
    interval = ratio_interval(sums)
    assert interval.value == sum(above for above, _ in pairs) / sum(lengths)
    assert interval.high - interval.value == pytest.approx(half, rel=1e-3)
    assert interval.symmetric
    assert sums.effective_n == pytest.approx(size)


def test_a_mean_is_a_ratio_too() -> None:
    """With 1 below, everywhere, it is the t interval of a mean, but for terms in 1/n³."""
    source = random.Random(2)
    values = [source.gauss(50, 9) for _ in range(100)]
    made = RatioSums()
    for value in values:
        made.add(value, 1, length=1)
    degrees = _count_alike([(value, 1) for value in values]) - 1
    low, high = scipy.t.interval(0.95, degrees, scipy.tmean(values), scipy.sem(values))
    interval = ratio_interval(made)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-5)


def test_one_example_that_decides_the_ratio_leaves_few_degrees() -> None:
    """Nine of one ratio and a long one of another: the residuals of one example are nearly all of the variance."""
    pairs = [(100, 200)] * 9 + [(100, 1000)]
    half = scipy.t.ppf(0.975, 2) * math.sqrt(_sums(pairs).variance)
    assert _count_alike(pairs) < 2
    assert ratio_interval(_sums(pairs)).high == pytest.approx(1000 / 2800 + half)
    short = [(100, 200)] * 4 + [(100, 1000)]
    half = scipy.t.ppf(0.975, 1) * math.sqrt(_sums(short).variance)
    assert ratio_interval(_sums(short)).high == pytest.approx(500 / 1800 + half)


def test_rounding_does_not_pass_for_kurtosis() -> None:
    """Prices of next to the same: the fourth powers of what differs are lost among the digits of the prices."""
    pairs = [(0.1 + place % 2 * 1e-6, 1.0) for place in range(100)]
    interval = ratio_interval(_sums(pairs))
    half = scipy.t.ppf(0.975, 99) * 0.5e-6 / math.sqrt(99)
    assert interval.high - interval.value == pytest.approx(half, rel=0.02)


def test_nothing_saved_is_exactly_nothing() -> None:
    interval = ratio_interval(_sums([(each, each) for each in range(1000, 1100)])).subtract_from(1)
    assert (interval.value, interval.low, interval.high) == (0, 0, 0)


def test_no_more_than_all_is_saved() -> None:
    interval = ratio_interval(_sums([(0, 1000), (300, 1000), (10, 900)])).subtract_from(1)
    assert (interval.high, interval.symmetric) == (1, False)
    assert interval.low < interval.value < 1
    clusters = ClusterSums()
    for group, reached in (("a", 0), ("a", 300), ("b", 10), ("b", 0)):
        clusters.add(group, reached, 1000)
    by_group = clustered_ratio(clusters)
    assert (by_group.low, by_group.symmetric) == (0, False)
    assert ratio_interval(_sums([(500, 1000), (510, 1000), (490, 900)])).symmetric


def test_a_few_long_examples_make_it_rough() -> None:
    pairs = [(50, 100)] * 40 + [(5_000, 20_000)]
    assert ratio_interval(_sums(pairs)).mark == ROUGH
    assert ratio_interval(_sums([(50, 100), (30, 90)] * 20)).mark == ""


def test_a_cost_is_never_below_nothing() -> None:
    sums = RatioSums()
    for place in range(40):
        sums.add(1000 + place, int(place % 8 == 0))
    plain, cost = ratio_interval(sums), ratio_interval(sums, positive=True)
    assert cost.value == plain.value == pytest.approx(sum(range(1000, 1040)) / 5)
    error = (plain.high - plain.value) / plain.value
    assert cost.low == pytest.approx(cost.value * math.exp(-error))
    assert cost.high == pytest.approx(cost.value * math.exp(error))
    assert not cost.symmetric


@pytest.mark.parametrize("pairs", [[], [(1, 2)], [(5, 0)] * 9, [(100, 1), *[(100, 0)] * 5]])
def test_too_few(pairs: list[tuple[float, float]]) -> None:
    interval = ratio_interval(_sums(pairs), positive=True)
    assert interval.mark == TOO_FEW
    assert math.isnan(interval.high)


def test_no_pass_has_no_cost() -> None:
    assert math.isnan(ratio_interval(_sums([(5, 0)] * 9)).value)
