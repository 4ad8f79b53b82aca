"""Means of scores and pass rates."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from context_bench.stats import (
    TOO_FEW,
    Moments,
    average_means,
    effective_size,
    estimate_mean,
    mean_interval,
    share_interval,
    wilson_limits,
)
from later import Later

scipy = Later("scipy.stats")


def _moments(*values: float) -> Moments:
    made = Moments()
    made.extend(values)
    return made


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (10, 10), (97, 100), (499, 1000)])
def test_the_limits_are_wilsons(count: int, n: int) -> None:
    expected = scipy.binomtest(count, n).proportion_ci(method="wilson")
    assert wilson_limits(count / n, n, scipy.norm.ppf(0.975)) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("count", "n"), [(0, 10), (3, 10), (10, 10), (97, 100)])
def test_pass_rates_have_t_for_z(count: int, n: int) -> None:
    t = scipy.t.ppf(0.975, n - 1)
    p, share = count / n, t * t / n  # the roots of (p - x)² = share·x(1 - x)
    a, b, c = 1 + share, 2 * p + share, p * p
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    interval = share_interval(count, n)
    assert (interval.low, interval.high) == pytest.approx(((b - root) / (2 * a), (b + root) / (2 * a)), abs=1e-12)
    assert interval.value == p
    assert not interval.symmetric


def test_scores_that_are_pass_or_fail_give_the_pass_rate() -> None:
    assert mean_interval(_moments(*[1] * 7, *[0] * 3)) == share_interval(7, 10)
    assert mean_interval(_moments(*[1] * 7)) == share_interval(7, 7)
    assert mean_interval(_moments(*[0] * 7)) == share_interval(0, 7)


def test_the_effective_size() -> None:
    # 0, 0.5, 1, 0.5: mean 0.5, squared deviations 0.5, e = 0.5; phi = (0.5 + 0.75) / (1 + 0.75), N = 4 / phi = 5.6
    assert estimate_mean(_moments(0, 0.5, 1, 0.5)).size == pytest.approx(5.6)
    # an empty row is possible where no 0 was seen: phi = (0.02 + 0.75) / (1 + 0.75)
    assert estimate_mean(_moments(0.4, 0.6, 0.5, 0.5)).size == pytest.approx(4 * 1.75 / 0.77)
    assert effective_size(0.0, 0.5, 10, unseen=0.0) == math.inf


def test_scores_that_are_all_alike_do_not_make_it_certain() -> None:
    interval = mean_interval(_moments(*[0.75] * 20))
    assert interval.low < 0.72 < 0.77 < interval.high


def test_numbers_beyond_one_get_students_interval() -> None:
    values = [3.0, 5.5, 2.0, 9.0]
    low, high = scipy.t.interval(0.95, 3, scipy.tmean(values), scipy.sem(values))
    interval = mean_interval(_moments(*values))
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.symmetric
    assert interval.method == "t"


def test_seconds_between_0_and_1_can_get_it_too() -> None:
    values = [0.2, 0.5, 0.9, 0.4]
    low, high = scipy.t.interval(0.95, 3, scipy.tmean(values), scipy.sem(values))
    interval = mean_interval(_moments(*values), scores=False)
    assert (interval.low, interval.high) == pytest.approx((low, high))


def test_one_score_or_none_is_too_few() -> None:
    assert mean_interval(Moments()).mark == TOO_FEW
    assert math.isnan(mean_interval(Moments()).value)
    one = mean_interval(_moments(0.5))
    assert (one.value, one.mark, one.known) == (0.5, TOO_FEW, False)
    assert mean_interval(_moments(5.0)).mark == TOO_FEW
    assert math.isnan(_moments(1.0).variance)


def test_a_higher_level_is_wider() -> None:
    widths = [share_interval(7, 10, level) for level in (0.8, 0.9, 0.95, 0.99)]
    assert all(one.low > two.low and one.high < two.high for one, two in pairwise(widths))


def test_the_mean_of_one_dataset_is_its_own() -> None:
    sums = _moments(0, 1, 1, 0.5)
    assert average_means([estimate_mean(sums)]) == mean_interval(sums)


def test_the_mean_of_two_datasets() -> None:
    """Two alike, with t = normal, are one of twice the size."""
    sums = Moments(100_000, 70_000, 70_000, 0.0, 1.0)
    both = average_means([estimate_mean(sums)] * 2)
    assert (both.value, both.n) == (0.7, 200_000)
    assert (both.low, both.high) == pytest.approx(wilson_limits(0.7, 200_000, scipy.norm.ppf(0.975)), abs=1e-6)


def test_a_dataset_at_the_ceiling_adds_to_the_lower_side() -> None:
    other = estimate_mean(_moments(*[0, 1] * 50))
    ceiling = estimate_mean(_moments(*[1] * 50))
    both = average_means([other, ceiling])
    assert both.value == 0.75
    assert both.value - both.low > both.high - both.value > 0


def test_the_mean_of_datasets_has_the_effective_size_of_their_variances() -> None:
    """10 of 10, and 15 of 30: pulled towards one half they are 21/22 and 1/2."""
    parts = [estimate_mean(_moments(*[1] * 10)), estimate_mean(_moments(*[0, 1] * 15))]
    first, second = (21 / 22) * (1 / 22) / 10, 0.25 / 30
    variance, middle = (first + second) / 4, (21 / 22 + 1 / 2) / 2
    degrees = (first + second) ** 2 / (first**2 / 9 + second**2 / 29)
    low, high = wilson_limits(0.75, middle * (1 - middle) / variance, scipy.t.ppf(0.975, degrees))
    found = average_means(parts)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, low, high))
    assert not found.symmetric


def test_the_mean_of_datasets_on_unlike_scales_is_students() -> None:
    scores, ratings = estimate_mean(_moments(*[0, 1] * 15)), estimate_mean(_moments(3.0, 5.5, 2.0, 9.0))
    first, second = 0.25 / 30, scipy.sem([3.0, 5.5, 2.0, 9.0]) ** 2
    degrees = (first + second) ** 2 / (first**2 / 29 + second**2 / 3)
    half = scipy.t.ppf(0.975, degrees) * math.sqrt(first + second) / 2
    found = average_means([scores, ratings])
    assert (found.value, found.high - found.value) == pytest.approx(((0.5 + 4.875) / 2, half))
    assert found.symmetric


def test_no_dataset_or_a_tiny_one_is_too_few() -> None:
    assert average_means([]).mark == TOO_FEW
    assert average_means([estimate_mean(_moments(1.0)), estimate_mean(_moments(0, 1, 1))]).mark == TOO_FEW
