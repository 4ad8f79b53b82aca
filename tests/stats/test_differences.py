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
    bound_losses,
    decide_verdict,
    paired_difference,
    unpaired_difference,
)
from later import Later

scipy = Later("scipy.stats")
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
    assert sums == PairedSums(4, 0.5, 1.25, 1, 1, 1.0, 0.875)  # cubes: 1 - 0.5³
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
    """The 95% interval leaves out 0 where p is at most 0.05, and nowhere else; it holds the 90% one but for that."""
    for n in (5, 20, 50, 50):
        found = paired_difference(_pairs([(SOURCE.random() * (1 - shift) + shift, SOURCE.random()) for _ in range(n)]))
        wide, narrow = found.interval(), found.interval(0.9)
        assert (found.p_value() <= 0.05) == (not wide.low <= 0 <= wide.high)
        assert wide.low <= narrow.low or wide.low > 0
        assert wide.high >= narrow.high or wide.high < 0


def _find_limits(changes: list[float], tail: float) -> tuple[float, float]:
    """The two limits as the formulas say, over the changes themselves."""
    n, size = len(changes), len(changes) + 2
    mean = sum(changes) / size
    spread = (sum(each**2 for each in changes) + 2) / size - mean**2
    skew = (sum(each**3 for each in changes) / size - 3 * mean * spread - mean**3) / spread**1.5
    t = scipy.t.isf(tail, n - 1)
    term = (2 * t * t + 1) / (6 * math.sqrt(size))
    value, ends = sum(changes) / n, []
    for sign in (-1, 1):
        with_skew = sign * mean + math.sqrt(spread / size) * (t + max(0.0, sign * skew) * term)
        net = max(0.0, sign * sum(changes), sign * sum(change**3 for change in changes))
        unseen = scipy.beta.isf(tail, net + 1, n - net) - net / n
        ends.append(max(with_skew, sign * value + unseen, sign * value))
    return -ends[0], ends[1]


@pytest.mark.parametrize("tail", [0.05, 0.025, 1e-4])
def test_limits_have_a_term_for_skewness_and_a_bound_on_losses_not_seen(tail: float) -> None:
    for changes in (
        [0.0] * 40,
        [-1.0] * 3 + [0.0] * 97,
        [1.0] * 9 + [-1.0] * 4 + [0.0] * 40,
        [SOURCE.gauss(0, 0.2) for _ in range(60)],
        [0.02] * 90 + [-1.0] * 4,
    ):
        found = paired_difference(_pairs([(change, 0.0) for change in changes]))
        assert found.limits(tail) == pytest.approx(_find_limits(changes, tail))
        assert found.limits(tail)[0] <= found.value <= found.limits(tail)[1]


def test_the_90_percent_interval_is_the_one_that_decides() -> None:
    found = paired_difference(_pairs([(0.0, 1.0)] * 3 + [(1.0, 1.0)] * 297))
    verdict = decide_verdict(found)
    assert verdict.narrow == found.interval(0.9) == found.narrow()
    # three losses of 300 leave 2.56% possible: the exact bound of Clopper and Pearson, beyond the margin
    assert verdict.narrow.low == pytest.approx(-scipy.beta.ppf(0.95, 4, 297))
    assert verdict.word == "undecided"


def test_the_mean_of_datasets_counts_as_many_losses_as_its_smallest_allow() -> None:
    parts = [paired_difference(PairedSums(n)) for n in (100, 400)]
    both = average_differences(parts)
    assert both.independent == pytest.approx(4 / (1 / 100 + 1 / 400))
    assert bound_losses(0, 1600) == pytest.approx(1 - 0.05 ** (1 / 1600))
    # variances of 2/102² and 2/402², with degrees by Welch: wider than the bound, 1 - 0.05^(1/320) = 0.0093
    error, degrees = math.sqrt(2 / 102**2 + 2 / 402**2) / 2, (1 / 102**2 + 1 / 402**2) ** 2
    degrees /= 1 / 102**4 / 99 + 1 / 402**4 / 399
    assert both.interval(0.9).low == pytest.approx(-scipy.t.isf(0.05, degrees) * error)
    lost = average_differences([paired_difference(_pairs([(0.0, 1.0)] * 2 + [(1.0, 1.0)] * 98))] * 4)
    assert lost.interval(0.9).low <= -scipy.beta.ppf(0.95, 9, 392)  # 8 losses of 400
    skewed = [paired_difference(_pairs([(0.0, 1.0)] * lost + [(1.0, 1.0)] * 50)) for lost in (10, 20)]
    assert average_differences(skewed).third == pytest.approx(sum(each.third for each in skewed) / 8)


def test_one_sided_p_values() -> None:
    found = Difference(0.03, 0.03, 0.0004, 50, 51, "paired t")
    assert found.limits(0.05) == pytest.approx(
        (0.03 - scipy.t.isf(0.05, 50) * 0.02, 0.03 + scipy.t.isf(0.05, 50) * 0.02)
    )
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
    # the 90% limit, 1 - 0.05^(1/100), is wider than t with 99 degrees on the two pairs that are added, and is held
    assert scipy.t.ppf(0.975, 99) * math.sqrt(2) / 102 < found.interval().high
    assert found.interval().high == found.interval(0.9).high == pytest.approx(1 - 0.05**0.01)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_pairs_are_too_few(n: int) -> None:
    found = paired_difference(PairedSums(n, 0.5 * n, 0.25 * n))
    assert found.interval().mark == TOO_FEW
    assert math.isnan(found.p_value())
    assert math.isnan(found.spread)


def test_equal_numbers_without_any_spread() -> None:
    found = paired_difference(PairedSums(10, 0, 0), scores=False)
    assert (found.p_value(), found.limits()) == (1, (0, 0))


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


def test_the_spread_is_that_of_the_pairs_seen() -> None:
    few = paired_difference(_pairs([(1, 0)] * 10 + [(0, 1)] * 5 + [(1, 1)] * 85))
    assert few.spread**2 == pytest.approx(0.15 - 0.05**2)
    assert paired_difference(PairedSums(98)).spread == 0.0
    assert average_differences([few, few]).spread ** 2 == pytest.approx(few.spread**2)
    seconds = paired_difference(PairedSums(10, 5.0, 30.0), scores=False)
    assert (seconds.independent, seconds.spread**2) == (None, pytest.approx((30 - 2.5) / 9))
