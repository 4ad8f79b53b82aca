"""Repeats: pass@k, pass^k, the share of variance between them."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from context_bench.stats import (
    TOO_FEW,
    Moments,
    RepeatSums,
    chance_all_pass,
    chance_any_passes,
    flip_share,
    mean_interval,
    noise_of_repeats,
    pass_all_k,
    pass_at_k,
    repeat_share,
)
from later import Later

numpy = Later("numpy")
scipy = Later("scipy.stats")


def _sums(answers: list[list[float]]) -> RepeatSums:
    made = RepeatSums()
    for scores in answers:
        made.add(scores, sum(score >= 0.7 for score in scores))
    return made


@pytest.mark.parametrize(("passed", "n", "k"), [(0, 5, 2), (2, 5, 1), (2, 5, 3), (3, 5, 3), (5, 5, 5)])
def test_every_choice_of_k_answers(passed: int, n: int, k: int) -> None:
    choices = list(combinations([True] * passed + [False] * (n - passed), k))
    assert chance_any_passes(passed, n, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert chance_all_pass(passed, n, k) == pytest.approx(sum(map(all, choices)) / len(choices))


ANSWERS = [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0]]


def test_over_examples() -> None:
    sums = _sums(ANSWERS)
    moments = Moments()
    moments.extend([1.0, 1.0, 0.0, 2 / 3, 1.0])
    assert pass_at_k(sums, 2).value == pytest.approx(moments.mean)
    assert pass_at_k(sums, 2).low == pytest.approx(mean_interval(moments).low)
    assert pass_all_k(sums, 2).value == pytest.approx((1 / 3 + 1 + 0 + 0 + 1) / 5)
    assert pass_all_k(sums, 3).n == 4  # one example has two answers alone
    assert pass_at_k(sums, 1).value == pytest.approx((2 / 3 + 1 + 0 + 1 / 3 + 1) / 5)


def test_flips() -> None:
    # pairs that differ: 2 of 3, 0, 0, 2 of 3, 0 of 1
    assert flip_share(_sums(ANSWERS)).value == pytest.approx((2 / 3 + 2 / 3) / 5)


def test_the_share_of_variance_is_that_of_the_anova() -> None:
    source = random.Random(1)
    answers = [[centre + source.gauss(0, 0.2) for _ in range(4)] for centre in [source.random() for _ in range(30)]]
    table = numpy.array(answers)
    within = table.var(1, ddof=1).mean()
    between = 4 * table.mean(1).var(ddof=1)
    assert between / within == pytest.approx(scipy.f_oneway(*answers).statistic)
    example = (between - within) / 4
    found = repeat_share(_sums(answers))
    assert found.value == pytest.approx(within / (within + example))
    low = between / within / scipy.f.ppf(0.975, 29, 90)
    assert found.high == pytest.approx(1 - (low - 1) / (low + 3))
    assert found.low < found.value < found.high


def test_the_share_at_its_ends() -> None:
    assert repeat_share(_sums([[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])).value == 0
    assert repeat_share(_sums([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])).value == 1
    for few in ([], [[1.0, 0.0]], [[1.0], [0.0]], [[1.0, 1.0], [1.0, 1.0]]):
        assert repeat_share(_sums(few)).mark == TOO_FEW


def test_an_example_without_an_answer_is_left_out() -> None:
    assert _sums([[]]) == RepeatSums()
    assert math.isnan(pass_at_k(RepeatSums(), 1).value)
    assert math.isnan(noise_of_repeats(RepeatSums()).floor)
