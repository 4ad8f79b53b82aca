"""The noise floor."""

from __future__ import annotations

import math

import pytest

from context_bench.stats import PairedSums, RepeatSums, noise_of_repeats, noise_of_twins, share_interval
from later import Later

scipy = Later("scipy.stats")


def _twins() -> list[tuple[float, float]]:
    return [(1.0, 0.0)] * 6 + [(0.0, 1.0)] * 4 + [(1.0, 1.0)] * 90


def test_a_system_run_twice() -> None:
    sums = PairedSums()
    for first, second in _twins():
        sums.add(first, second)
    noise = noise_of_twins(sums)
    assert (noise.n, noise.flips, noise.share) == (100, 10, share_interval(10, 100))
    variance = (12 / 102 - (2 / 102) ** 2) / 102
    assert noise.floor == pytest.approx(scipy.t.ppf(0.975, 99) * math.sqrt(variance))


def test_repeats_feed_the_same_number() -> None:
    sums = RepeatSums()
    for pair in _twins():
        sums.add(pair, sum(score >= 0.7 for score in pair))
    noise = noise_of_repeats(sums)
    assert noise.flips == pytest.approx(10)
    assert noise.share.value == pytest.approx(0.1)
    assert noise.floor == pytest.approx(scipy.t.ppf(0.975, 99) * math.sqrt(12 / 102 / 102))


def test_without_any_disagreement_there_is_no_floor() -> None:
    same, again = noise_of_twins(PairedSums(50)), RepeatSums()
    for _ in range(50):
        again.add((1.0, 1.0), 2)
    for noise in (same, noise_of_repeats(again)):
        assert noise.nothing_seen
        assert math.isnan(noise.floor)
        assert (noise.flips, noise.share.value) == (0, 0)
        assert noise.to_dict()["floor"] is None
    graded = PairedSums()
    for _ in range(50):
        graded.add(0.9, 0.8)
    assert not noise_of_twins(graded, flips=0).nothing_seen  # the scores differ, though no pass does
