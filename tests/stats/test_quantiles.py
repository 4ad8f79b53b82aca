"""Quantiles by order statistics."""

from __future__ import annotations

import math
import random

import pytest

from banks import each_case
from context_bench.stats import TOO_FEW, Values, find_ranks, quantile_interval
from later import Later

numpy = Later("numpy")
scipy = Later("scipy.stats")


def _values(numbers: list[float], limit: int = 1000) -> Values:
    made = Values(limit)
    made.extend(numbers)
    return made


@pytest.mark.parametrize(("share", "least"), [(0.5, 6), (0.95, 72), (0.99, 368)])
def test_the_fewest_that_will_do(share: float, least: int) -> None:
    assert find_ranks(least - 1, share) is None
    assert find_ranks(least, share) is not None


@each_case("n", [6, 30, 101, 400])
@each_case("share", [0.25, 0.5, 0.95])
def test_the_ranks_cover_and_narrower_ones_do_not(n: int, share: float) -> None:
    ranks = find_ranks(n, share)
    if ranks is None:
        return
    low, high = ranks
    below, above = scipy.binom.cdf(low - 1, n, share), scipy.binom.sf(high - 1, n, share)
    assert max(below, above) <= 0.025
    assert scipy.binom.cdf(low, n, share) > 0.025
    assert scipy.binom.sf(high - 2, n, share) > 0.025


def test_the_value_is_numpys_and_the_limits_are_values() -> None:
    source = random.Random(4)
    numbers = [source.expovariate(1) for _ in range(97)]
    ordered = sorted(numbers)
    interval = quantile_interval(_values(numbers), 0.5)
    assert interval.value == pytest.approx(numpy.percentile(numbers, 50))
    low, high = find_ranks(97, 0.5) or (0, 0)
    assert (interval.low, interval.high) == (ordered[low - 1], ordered[high - 1])
    assert interval.method == "order statistics"


def test_too_few_values_have_a_value_and_no_limits() -> None:
    interval = quantile_interval(_values([1.0, 2.0, 3.0]), 0.95)
    assert interval.value == pytest.approx(2.9)
    assert interval.mark == TOO_FEW
    assert math.isnan(interval.low)
    assert math.isnan(quantile_interval(Values(), 0.5).value)


def test_beyond_the_limit_memory_is_bounded_and_values_are_within_a_percent() -> None:
    source = random.Random(8)
    numbers = [source.lognormvariate(0, 1.5) for _ in range(20_000)] + [0.0, -3.0]
    sketch, whole = _values(numbers, 100), _values(numbers, 10**6)
    assert not sketch.exact
    assert len(sketch.buckets) < 1500
    assert len(sketch.kept) == 0
    for share in (0.05, 0.5, 0.95, 0.99):
        one, other = quantile_interval(sketch, share), quantile_interval(whole, share)
        for name in ("value", "low", "high"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=0.0101)
    assert "1%" in quantile_interval(sketch, 0.5).method
    assert sketch.pick([1, 20_002]) == pytest.approx([-3.0, max(numbers)], rel=0.01)
