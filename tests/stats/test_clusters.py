"""Clusters: leaving one out at a time."""

from __future__ import annotations

import math
import random

import pytest

from context_bench.stats import (
    TOO_FEW,
    ClusterSums,
    Moments,
    PairedSums,
    RatioSums,
    clustered_difference,
    clustered_mean,
    clustered_ratio,
    paired_difference,
    wilson_limits,
)
from later import Later

scipy = Later("scipy.stats")
SOURCE = random.Random(5)


def _sums(groups: list[list[float]]) -> ClusterSums:
    made = ClusterSums()
    for name, values in enumerate(groups):
        for value in values:
            made.add(str(name), value)
    return made


def _jackknife(parts: list[tuple[float, float]]) -> float:
    """The textbook's: the ratio again without each part in turn."""
    count = len(parts)
    left = [
        sum(a for place, (a, _) in enumerate(parts) if place != out)
        / sum(b for place, (_, b) in enumerate(parts) if place != out)
        for out in range(count)
    ]
    middle = sum(left) / count
    return (count - 1) / count * sum((each - middle) ** 2 for each in left)


GROUPS = [
    [float(SOURCE.random() < rate) for _ in range(size)] for rate, size in ((0.9, 5), (0.4, 9), (0.7, 3), (0.2, 8))
]


def test_the_variance_is_the_jackknifes() -> None:
    found = clustered_difference(_sums(GROUPS), scores=False)
    assert found.variance == pytest.approx(_jackknife([(sum(group), len(group)) for group in GROUPS]))
    assert (found.degrees, found.groups, found.n) == (3, 4, 25)
    assert found.value == pytest.approx(sum(map(sum, GROUPS)) / 25)


def test_clusters_of_one_are_the_plain_t_test() -> None:
    changes = [SOURCE.gauss(0.1, 0.5) for _ in range(20)]
    found = clustered_difference(_sums([[change] for change in changes]), scores=False)
    assert found.p_value() == pytest.approx(scipy.ttest_1samp(changes, 0).pvalue)


def test_differences_of_scores_get_one_change_in_each_direction() -> None:
    plain, found = clustered_difference(_sums(GROUPS), scores=False), clustered_difference(_sums(GROUPS))
    unseen = 2 * 4 / 25  # of four clusters with 25 differences, two more are so much of one
    assert found.centre == pytest.approx(plain.value * 4 / (4 + unseen))
    assert found.variance == pytest.approx(plain.variance * (4 / (4 + unseen)) ** 2 + unseen / (4 + unseen) ** 2)


def test_an_example_without_a_cluster_is_one_by_itself() -> None:
    alone = [0.0, 1.0, 0.0, -1.0, 0.5]
    groups = [*GROUPS, *([value] for value in alone)]
    pairs, moments = PairedSums(), Moments()
    for value in alone:
        pairs.add(value, 0.0)
    moments.extend([abs(value) for value in alone])
    for scores in (True, False):
        found, expected = (
            clustered_difference(_sums(GROUPS), pairs, scores=scores),
            clustered_difference(_sums(groups), scores=scores),
        )
        assert (found.n, found.groups, found.degrees) == (expected.n, expected.groups, expected.degrees)
        assert (found.centre, found.variance) == pytest.approx((expected.centre, expected.variance))
    positive = [[abs(value) for value in group] for group in groups]
    mean, whole = clustered_mean(_sums(positive[:4]), moments), clustered_mean(_sums(positive))
    assert (mean.value, mean.size, mean.groups) == (pytest.approx(whole.value), pytest.approx(whole.size), 9)


def test_a_ratio_with_examples_that_have_no_cluster() -> None:
    sums, rest, every = ClusterSums(), RatioSums(), ClusterSums()
    for place in range(400):
        sent = SOURCE.randrange(500, 1500)
        left = SOURCE.randrange(100, sent)
        if place < 200:
            sums.add(f"c{place // 10}", left, sent)
            every.add(f"c{place // 10}", left, sent)
        else:
            rest.add(left, sent)
            every.add(f"alone {place}", left, sent)
    found, expected = clustered_ratio(sums, rest), clustered_ratio(every)
    assert (found.n, found.groups) == (expected.n, expected.groups) == (400, 220)
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), rel=1e-4
    )


def test_the_mean_is_wilsons_on_the_effective_size() -> None:
    sums = _sums(GROUPS)
    m, variance = sum(map(sum, GROUPS)) / 25, clustered_difference(sums, scores=False).variance
    e, unseen = m * m + (1 - m) ** 2, max(1.5, 0.02 * (25 / 4) ** 2)
    size = 25 * (25 * m * (1 - m) + unseen * e / (25 / 4)) / (variance * 625 + unseen * e)
    interval = clustered_mean(sums).interval()
    assert (interval.low, interval.high) == pytest.approx(wilson_limits(m, size, scipy.t.ppf(0.975, 3)))


def test_clusters_that_all_pass_count_as_one_example_each() -> None:
    assert clustered_mean(_sums([[1.0] * 20] * 10)).size == pytest.approx(10)


def test_an_empty_row_is_possible_in_clusters_without_one() -> None:
    groups = [[0.85, 0.95, 0.9], [0.88, 0.92], [0.9, 0.9, 0.9], [0.87, 0.93]]
    size = 10 * (10 * 0.09 + 1.5 * 0.82 / 2.5) / (1.5 * 0.82)  # every cluster has the same mean: only what is unseen
    assert clustered_mean(_sums(groups)).size == pytest.approx(size)


def test_examples_that_go_together_count_for_fewer() -> None:
    together = [[value] * 10 for value in [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]]
    mixed = [[1.0] * 7 + [0.0] * 3 for _ in range(10)]
    wide, narrow = (clustered_mean(_sums(groups)).interval() for groups in (together, mixed))
    assert wide.value == narrow.value == pytest.approx(0.7)
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_seconds_get_students_interval() -> None:
    interval = clustered_mean(_sums([[2.0], [5.0], [3.5]])).interval()
    low, high = scipy.t.interval(0.95, 2, 3.5, scipy.sem([2.0, 5.0, 3.5]))
    assert (interval.low, interval.high) == pytest.approx((low, high))


@pytest.mark.parametrize("groups", [[], [[1.0, 0.0]]])
def test_fewer_than_two_clusters_are_too_few(groups: list[list[float]]) -> None:
    assert clustered_mean(_sums(groups)).interval().mark == TOO_FEW
    assert not clustered_difference(_sums(groups)).known
    assert clustered_ratio(_sums(groups)).mark == TOO_FEW


def test_a_ratio_over_clusters() -> None:
    sums, parts = ClusterSums(), []
    for group in range(12):
        sent = [SOURCE.randrange(100, 1000) for _ in range(5)]
        kept = [round(each * SOURCE.random()) for each in sent]
        parts.append((sum(kept), sum(sent)))
        for above, below in zip(kept, sent):
            sums.add(str(group), above, below)
    lengths = [below for _, below in parts]
    size = sum(lengths) ** 2 / sum(length**2 for length in lengths)
    interval = clustered_ratio(sums)
    ratio = sum(above for above, _ in parts) / sum(lengths)
    squares = [(above - ratio * below) ** 2 for above, below in parts]
    alike = sum(squares) ** 2 / sum(square**2 for square in squares)
    half = scipy.t.ppf(0.975, max(2, min(size, alike) - 1)) * math.sqrt(_jackknife(parts))
    assert alike < size
    assert interval.value == pytest.approx(sum(above for above, _ in parts) / sum(lengths))
    assert (interval.low, interval.high) == pytest.approx((interval.value - half, interval.value + half))


def test_pairs_and_clusters_of_one_agree_when_there_are_many() -> None:
    changes = random.Random(1).choices([-1, 0, 0, 0, 1, 1], k=500)
    pairs = PairedSums(500, sum(changes), sum(map(abs, changes)), cubes=sum(changes))
    one, other = paired_difference(pairs), clustered_difference(_sums([[change] for change in changes]))
    assert other.centre == pytest.approx(one.centre)
    assert other.variance == pytest.approx(one.variance, rel=0.01)
    assert other.third == pytest.approx(one.third, rel=0.02)
    assert other.independent == one.independent == 500


def test_the_bound_on_unseen_losses_counts_clusters() -> None:
    ten = clustered_difference(_sums([[0.0] * 198] * 10))
    assert ten.interval(0.9).low == pytest.approx(-(1 - 0.05**0.1))  # a loss of 0.26 at best
    unlike = clustered_difference(_sums([[0.0] * size for size in (10, 20, 30)]))
    assert unlike.independent == pytest.approx(60**2 / (100 + 400 + 900))
    beside = clustered_difference(_sums([[0.0] * 4] * 5), PairedSums(30))
    assert beside.independent == pytest.approx(50**2 / (5 * 16 + 30))


def test_what_clusters_were_not_seen_weighs_less_the_more_there_are() -> None:
    groups = [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]
    few, many = clustered_difference(_sums(groups)), clustered_difference(_sums(groups * 500))
    # the same clusters over and over: one degree more or less apart, a variance of spread²/n, and the rest is unseen
    spread = few.spread**2 * (3 / 4) * (2000 / 1999)
    expected = 2 * 3 - 4 * many.spread**2
    assert many.spread**2 == pytest.approx(spread, rel=1e-9)
    assert (many.variance - many.spread**2 / many.n) * many.n**2 == pytest.approx(expected, rel=0.01)


def test_the_same_change_on_another_scale_is_not_certainty() -> None:
    sums = ClusterSums()
    for group in "AABB":
        sums.add(group, 5.0)
    found = clustered_difference(sums)
    # two clusters of two; two unseen pairs of 5 weigh as one more cluster: 5 · 2/3, and 1 · 25 / 3²
    assert (found.value, found.centre, found.variance) == pytest.approx((5.0, 10 / 3, 25 / 9))
    assert found.p_value() > 0.05
    assert clustered_difference(sums, scores=False).variance == 0
