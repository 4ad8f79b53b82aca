"""The difference between two systems, paired and not."""

from __future__ import annotations

import math
import random

import pytest

from context_bench.stats import (
    TOO_FEW,
    Difference,
    Moments,
    PairedSums,
    average_differences,
    decide_verdict,
    paired_difference,
    unpaired_difference,
)

scipy = pytest.importorskip("scipy.stats")
SOURCE = random.Random(11)


def _pairs(pairs: list[tuple[float, float]]) -> PairedSums:
    sums = PairedSums()
    for first, second in pairs:
        sums.add(first, second)
    return sums


def _moments(values: list[float]) -> Moments:
    made = Moments()
    made.extend(values)
    return made


def test_the_sums() -> None:
    sums = _pairs([(1, 0), (0, 0), (0.25, 0.75), (1, 1)])
    assert sums == PairedSums(4, 0.5, 1.25, 1, 1, 1.0)
    assert sums.changed == 2


def test_scores_get_one_change_in_each_direction() -> None:
    pairs = [(SOURCE.random(), SOURCE.random()) for _ in range(40)]
    changes = [first - second for first, second in pairs] + [1.0, -1.0]
    found = paired_difference(_pairs(pairs))
    mean = sum(changes) / 42
    spread = sum((change - mean) ** 2 for change in changes) / 42 / 42
    assert (found.centre, found.variance, found.degrees) == pytest.approx((mean, spread, 39))
    assert found.value == pytest.approx(sum(changes) / 40)
    interval = found.interval()
    half = scipy.t.ppf(0.975, 39) * math.sqrt(spread)
    assert (interval.low, interval.high) == pytest.approx((mean - half, mean + half))


def test_seconds_get_the_plain_t_test() -> None:
    first, second = ([SOURCE.expovariate(1) for _ in range(25)] for _ in range(2))
    found = paired_difference(_pairs(list(zip(first, second))), scores=False)
    expected = scipy.ttest_rel(first, second)
    assert found.p_value() == pytest.approx(expected.pvalue)
    limits = expected.confidence_interval(0.9)
    assert (found.interval(0.9).low, found.interval(0.9).high) == pytest.approx((limits.low, limits.high))
    assert found.interval().symmetric


@pytest.mark.parametrize("shift", [0.0, 0.05, -0.1, 0.3])
def test_p_and_interval_agree(shift: float) -> None:
    """An interval of level 1 - p has 0 exactly on its edge."""
    found = paired_difference(_pairs([(SOURCE.random() + shift, SOURCE.random()) for _ in range(50)]))
    interval = found.interval(1 - found.p_value())
    assert min(abs(interval.low), abs(interval.high)) == pytest.approx(0, abs=1e-9)


def test_one_sided_p_values() -> None:
    found = Difference(0.03, 0.03, 0.0004, 50, 51, "paired t")
    assert found.p_above(-0.02) == pytest.approx(scipy.t.sf(2.5, 50))
    assert found.p_above(0.03) == pytest.approx(0.5)
    assert found.p_value() == pytest.approx(2 * scipy.t.sf(1.5, 50))
    assert found.spread == pytest.approx(math.sqrt(0.0004 * 51))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_tiny_p_value_is_as_exact_on_either_side(sign: int) -> None:
    found = Difference(sign * 0.5, sign * 0.5, 0.0025, 400, 401, "paired t")
    assert found.p_value() == pytest.approx(2 * scipy.t.sf(10, 400), rel=1e-8)
    assert found.p_value() < 1e-19


def test_no_change_at_all_is_not_certainty() -> None:
    found = paired_difference(PairedSums(100))
    assert found.p_value() == 1
    assert found.interval().high == pytest.approx(scipy.t.ppf(0.975, 99) * math.sqrt(2) / 102)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_pairs_are_too_few(n: int) -> None:
    found = paired_difference(PairedSums(n, 0.5 * n, 0.25 * n))
    assert found.interval().mark == TOO_FEW
    assert math.isnan(found.p_value())
    assert math.isnan(found.p_above(0))
    assert math.isnan(found.spread)


def test_equal_numbers_without_any_spread() -> None:
    found = paired_difference(PairedSums(10, 0, 0), scores=False)
    assert (found.p_value(), found.p_above(-1), found.p_above(1)) == (1, 0, 1)


def test_unpaired_numbers_are_welchs() -> None:
    first, second = [SOURCE.gauss(5, 1) for _ in range(20)], [SOURCE.gauss(4.5, 3) for _ in range(33)]
    found = unpaired_difference(_moments(first), _moments(second), scores=False)
    expected = scipy.ttest_ind(first, second, equal_var=False)
    assert (found.p_value(), found.degrees) == pytest.approx((expected.pvalue, expected.df))


def test_unpaired_pass_rates_are_agresti_and_caffos() -> None:
    found = unpaired_difference(_moments([1] * 9 + [0]), _moments([1] * 3 + [0] * 9))
    p, q = 10 / 12, 4 / 14
    assert found.value == pytest.approx(0.9 - 0.25)
    assert found.centre == pytest.approx(p - q)
    assert found.variance == pytest.approx(p * (1 - p) / 12 + q * (1 - q) / 14)
    assert unpaired_difference(_moments([1]), _moments([1, 0])).interval().mark == TOO_FEW


def test_the_mean_of_datasets() -> None:
    one, two = Difference(0.1, 0.09, 0.0001, 30, 31, "paired t"), Difference(0.0, 0.0, 0.0003, 10, 11, "clusters", 5)
    both = average_differences([one, two])
    assert (both.value, both.centre, both.variance) == pytest.approx((0.05, 0.045, 0.0001))
    assert both.degrees == pytest.approx(0.0004**2 / (0.0001**2 / 30 + 0.0003**2 / 10))
    assert (both.n, both.groups) == (42, 36)
    assert average_differences([one, one]).groups is None


def test_the_mean_of_datasets_of_which_one_is_too_small_is_not_known() -> None:
    small = paired_difference(PairedSums(1))
    assert not average_differences([small, paired_difference(PairedSums(50))]).known
    assert not average_differences([]).known


def test_limits_of_scores_are_differences_that_can_be() -> None:
    lost = paired_difference(_pairs([(0.0, 1.0)] * 6))
    # centre -6/8, variance (8/8 - 0.75²)/8, t with 5 degrees 2.571: -1.35 would be the lower limit
    assert (lost.interval().low, lost.interval().high) == (-1.0, pytest.approx(-0.75 + 2.5706 * 0.2338536, abs=1e-4))
    apart = unpaired_difference(_moments([1.0, 1.0, 1.0]), _moments([0.0, 0.0, 0.0]))
    assert apart.interval().high == 1.0
    assert average_differences([lost, lost]).interval(0.999).low == -1.0


def test_scores_on_another_scale_have_no_such_limits_and_no_pairs_added() -> None:
    pairs = [(70.0, 40.0), (80.0, 60.0), (65.0, 55.0)]
    found = paired_difference(_pairs(pairs))
    # 20 ± 4.3027 · 10/√3
    assert (found.interval().low, found.interval().high) == pytest.approx((20 - 24.8414, 20 + 24.8414), abs=1e-3)
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    welch = unpaired_difference(_moments(one), _moments(other))
    assert welch.variance == pytest.approx((58.3333 + 108.3333) / 3, abs=1e-3)


def test_the_same_change_on_another_scale_is_not_certainty() -> None:
    two = paired_difference(_pairs([(65.0, 60.0)] * 2))
    # 5, 5, and unseen 5 and -5: centre 2.5, variance (100/4 - 2.5²)/4; t with 1 degree
    assert (two.centre, two.variance, two.degrees) == (2.5, 4.6875, 1)
    assert two.p_value() == pytest.approx(2 * scipy.t.sf(2.5 / math.sqrt(4.6875), 1))
    assert decide_verdict(two).word == "undecided"
    many = paired_difference(_pairs([(7.1, 2.0)] * 50))
    assert decide_verdict(many).word == "better"
    assert many.interval().low < many.value < many.interval().high
    apart = unpaired_difference(_moments([65.0, 65.0]), _moments([60.0, 60.0]))
    assert decide_verdict(apart).word == "undecided"
    costs = paired_difference(_pairs([(65.0, 60.0)] * 2), scores=False)  # a bill may be the same for all
    assert (costs.interval().low, costs.interval().high) == (5.0, 5.0)


def test_the_pairs_that_were_added_are_told_from_those_seen() -> None:
    assert (paired_difference(PairedSums(98)).spread, paired_difference(PairedSums(98)).unseen) == (0.0, 2.0)
    few = paired_difference(_pairs([(1, 0)] * 10 + [(0, 1)] * 5 + [(1, 1)] * 85))
    assert few.spread**2 == pytest.approx(0.15 - 0.05**2)
    apart = unpaired_difference(_moments([1.0] * 9 + [0.0]), _moments([1.0] * 32 + [0.0] * 8))
    sides = 1000
    for small, large in (
        (few, paired_difference(PairedSums(100 * sides, 5 * sides, 15 * sides, 10 * sides, 5 * sides, 1.0))),
        (apart, unpaired_difference(_moments([1.0] * 9000 + [0.0] * 1000), _moments([1.0] * 32000 + [0.0] * 8000))),
    ):
        n = large.n  # with as many pairs as that, what was added is told exactly from what was seen
        assert (large.variance - small.spread**2 / n) * n**2 == pytest.approx(small.unseen, rel=0.01)
    both = average_differences([few, few])
    assert (both.spread**2, both.unseen) == pytest.approx((few.spread**2, 2 * few.unseen))
    seconds = paired_difference(PairedSums(10, 5.0, 30.0), scores=False)
    assert (seconds.unseen, seconds.spread**2) == (0.0, pytest.approx((30 - 2.5) / 9))
