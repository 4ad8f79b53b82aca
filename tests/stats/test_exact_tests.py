"""Exact paired tests."""

from __future__ import annotations

import random

import pytest

from context_bench.stats import PairedSums, mcnemar_p, paired_difference, sign_flip_p

numpy = pytest.importorskip("numpy")
scipy = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize(("up", "down"), [(0, 0), (1, 0), (3, 9), (10, 10), (40, 12), (300, 350)])
def test_mcnemar_is_the_binomial_test(up: int, down: int) -> None:
    expected = scipy.binomtest(up, up + down).pvalue if up + down else 1.0
    assert mcnemar_p(up, down) == pytest.approx(expected)


def test_flipped_signs_of_pass_and_fail_are_mcnemars() -> None:
    assert sign_flip_p([1.0] * 9 + [-1.0] * 3 + [0.0] * 50) == pytest.approx(mcnemar_p(9, 3))


def test_few_changes_are_enumerated() -> None:
    changes = numpy.array([0.3, -0.1, 0.25, 0.8, -0.05, 0.4])
    expected = scipy.permutation_test((changes,), numpy.sum, permutation_type="samples", vectorized=False)
    assert sign_flip_p(changes.tolist()) == pytest.approx(expected.pvalue)
    assert sign_flip_p([0.0, 0.0]) == 1


def test_many_changes_are_drawn() -> None:
    changes = [1.0] * 40 + [-1.0] * 22
    assert sign_flip_p(changes, draws=4000) == pytest.approx(mcnemar_p(40, 22), abs=0.01)
    assert sign_flip_p(changes, draws=50, seed=1) == sign_flip_p(changes, draws=50, seed=1)
    assert sign_flip_p([1.0] * 60, draws=99) == pytest.approx(0.01)


def test_the_t_form_agrees_with_the_exact_ones() -> None:
    source = random.Random(6)
    for up, down in ((30, 18), (60, 35), (25, 25), (12, 40)):
        p = paired_difference(PairedSums(500, up - down, up + down, up, down)).p_value()
        assert p == pytest.approx(mcnemar_p(up, down), abs=0.03)
    changes = [source.gauss(0.03, 0.2) for _ in range(200)]
    sums = PairedSums()
    for change in changes:
        sums.add(change, 0.0)
    assert paired_difference(sums).p_value() == pytest.approx(sign_flip_p(changes, draws=3000), abs=0.03)
