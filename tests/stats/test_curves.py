"""Curves of quality against tokens."""

from __future__ import annotations

import pytest

from context_bench.stats import Difference, Setting, area_weights, find_common_range, find_largest_saving
from later import Later

numpy = Later("numpy")


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
