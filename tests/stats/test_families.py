"""Holm's correction."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from context_bench.stats import holm


def test_by_hand() -> None:
    # in order 0.01·4, 0.013·3 raised to 0.04, 0.04·2, 0.9·1
    assert holm([0.04, 0.01, 0.9, 0.013]) == pytest.approx([0.08, 0.04, 0.9, 0.04])


def test_it_is_the_closed_test_of_bonferroni() -> None:
    """A hypothesis is rejected if every set of hypotheses that holds it is, each by Bonferroni."""
    values = [0.003, 0.02, 0.011, 0.4, 0.06]
    for place, corrected in enumerate(holm(values)):
        sets = [each for size in range(1, 6) for each in combinations(range(5), size) if place in each]
        worst = max(min(1.0, min(values[member] for member in each) * len(each)) for each in sets)
        assert corrected == pytest.approx(worst)


def test_what_was_not_tested_is_not_counted() -> None:
    corrected = holm([0.02, math.nan, 0.03])
    assert corrected[0] == corrected[2] == pytest.approx(0.04)
    assert math.isnan(corrected[1])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]
