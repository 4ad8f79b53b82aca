"""The boundaries of O'Brien and Fleming."""

from __future__ import annotations

import math

import pytest

from context_bench.stats import crossing_chance, find_critical, look_boundary
from later import Later

scipy = Later("scipy.stats")


@pytest.mark.parametrize(
    ("looks", "alpha", "constant"),
    [(1, 0.05, 1.960), (2, 0.05, 1.977), (3, 0.05, 2.004), (5, 0.05, 2.040), (5, 0.1, 1.751), (5, 0.01, 2.621)],
)
def test_the_constants_of_jennison_and_turnbull(looks: int, alpha: float, constant: float) -> None:
    """Table 2.3 of Group Sequential Methods (2000), within its last digit."""
    assert find_critical(alpha, looks) == pytest.approx(constant, abs=0.0011)


def test_the_five_boundaries() -> None:
    assert [look_boundary(look, 5) for look in range(1, 6)] == pytest.approx([4.56, 3.23, 2.63, 2.28, 2.04], abs=0.005)


def test_two_looks_are_a_bivariate_normal() -> None:
    critical, edge = 1.9, 1.9 * math.sqrt(2)
    sums = scipy.multivariate_normal(cov=[[1, 1], [1, 2]])
    inside = sum(
        sign * sums.cdf([one, two])
        for one, two, sign in ((edge, edge, 1), (-edge, edge, -1), (edge, -edge, -1), (-edge, -edge, 1))
    )
    assert crossing_chance(critical, 2) == pytest.approx(1 - inside, abs=1e-6)


@pytest.mark.parametrize("critical", [0.0, 0.5, 2.0, 6.0])
def test_one_look_is_the_normal_distribution(critical: float) -> None:
    assert crossing_chance(critical, 1) == pytest.approx(2 * scipy.norm.sf(critical), abs=1e-7)
