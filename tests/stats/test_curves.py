"""Curves of quality against tokens."""

from __future__ import annotations

import random

import pytest

from context_bench.stats import (
    TOO_FEW,
    CurveSums,
    Difference,
    Moments,
    PairedSums,
    Setting,
    area_difference,
    area_interval,
    area_of_intervals,
    area_weights,
    find_common_range,
    find_largest_saving,
    mean_interval,
    paired_difference,
)

numpy = pytest.importorskip("numpy")
SOURCE = random.Random(9)


@pytest.mark.parametrize(("low", "high"), [(100, 900), (150, 820), (350, 380), (200, 500)])
def test_the_weights_integrate_the_line(low: float, high: float) -> None:
    tokens, quality = [500.0, 100.0, 900.0, 200.0], [0.7, 0.2, 0.8, 0.5]
    order = numpy.argsort(tokens)
    grid = numpy.linspace(low, high, 40_001)
    heights = numpy.interp(grid, numpy.array(tokens)[order], numpy.array(quality)[order])
    weights = area_weights(tokens, low, high)
    assert sum(weights) == pytest.approx(1)
    assert sum(w * q for w, q in zip(weights, quality)) == pytest.approx(numpy.trapezoid(heights, grid) / (high - low))


def test_the_common_range() -> None:
    assert find_common_range([[100, 500], [900, 200], [150, 800]]) == (200, 500)
    assert find_common_range([[100, 200], [300, 400]]) is None


SCORES = [[SOURCE.choice([0, 0.5, 1]) for _ in range(4)] for _ in range(80)]


def _sums() -> CurveSums:
    made = CurveSums()
    for scores in SCORES:
        made.add(scores)
    return made


def test_the_area_is_the_mean_of_each_examples_area() -> None:
    weights = [0.1, 0.5, 0.25, 0.15]
    areas = [sum(w * score for w, score in zip(weights, scores)) for scores in SCORES]
    moments = Moments()
    moments.extend([*areas])
    expected, found = mean_interval(moments), area_interval(_sums(), weights)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_two_areas_are_compared_example_by_example() -> None:
    first, second = [0.5, 0.5, 0, 0], [0, 0, 0.3, 0.7]
    pairs = PairedSums()
    for a, b, c, d in SCORES:
        pairs.add(0.5 * a + 0.5 * b, 0.3 * c + 0.7 * d)
    expected, found = paired_difference(pairs), area_difference(_sums(), first, second)
    assert (found.value, found.variance, found.n) == pytest.approx((expected.value, expected.variance, 80))


def test_without_the_rows_of_both_settings_the_area_is_at_most_so_sure() -> None:
    sums = _sums()
    columns = [Moments() for _ in range(4)]
    for scores in SCORES:
        for moments, score in zip(columns, scores):
            moments.add(score)
    weights = [0.1, 0.5, 0.25, 0.15]
    wide, narrow = area_of_intervals([mean_interval(each) for each in columns], weights), area_interval(sums, weights)
    assert wide.value == pytest.approx(narrow.value)
    assert wide.low < narrow.low < narrow.high < wide.high
    assert wide.high == pytest.approx(sum(w * mean_interval(each).high for w, each in zip(weights, columns)))
    assert wide.n == 80


def test_no_example_has_no_area() -> None:
    assert area_interval(CurveSums(), []).mark == TOO_FEW


def _setting(name: str, saving: float, difference: float, n: int = 400) -> Setting:
    return Setting(name, saving, Difference(difference, difference, 0.005**2, n - 1, n, "paired t"))


def test_the_largest_saving_that_is_not_worse() -> None:
    settings = [_setting("0.3", 0.7, -0.06), _setting("0.7", 0.3, 0.0), _setting("0.5", 0.5, -0.005)]
    best = find_largest_saving(settings, 0.02)
    assert best is not None
    assert best.name == "0.5"
    assert find_largest_saving(settings, 0.001) is None
    assert find_largest_saving([], 0.02) is None


def test_the_first_that_fails_ends_the_search() -> None:
    settings = [_setting("mild", 0.1, 0.0), _setting("odd", 0.5, -0.03), _setting("strong", 0.9, 0.0)]
    best = find_largest_saving(settings, 0.02)
    assert best is not None
    assert best.name == "mild"
