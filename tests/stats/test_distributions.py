"""Against scipy, to 1e-9."""

from __future__ import annotations

import math
from itertools import product

import pytest

from banks import each_case
from context_bench.stats.distributions import (
    beta_cdf,
    beta_quantile,
    binomial_cdf,
    binomial_pmf,
    binomial_quantile,
    f_quantile,
    normal_cdf,
    normal_quantile,
    t_quantile,
    t_tail,
    welch_degrees,
)
from later import Later

scipy = Later("scipy.stats")

SHARES = (1e-9, 1e-6, 0.0009, 0.025, 0.05, 0.3, 0.5, 0.77, 0.975, 0.9999, 1 - 1e-9)
DEGREES = (0.3, 1, 2, 3.7, 9, 29, 99, 999, 1e5, 1e7)


@each_case("share", [1e-300, 1e-12, *SHARES])
def test_normal(share: float) -> None:
    assert normal_quantile(share) == pytest.approx(scipy.norm.ppf(share), abs=1e-9)
    assert normal_cdf(normal_quantile(share)) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("degrees", DEGREES)
def test_t(degrees: float) -> None:
    for share in SHARES:
        assert t_quantile(share, degrees) == pytest.approx(scipy.t.ppf(share, degrees), rel=1e-9, abs=1e-9)
    for t in (-30, -4, -1, 0, 0.01, 2, 5, 40):
        assert t_tail(t, degrees) == pytest.approx(scipy.t.sf(t, degrees), rel=1e-8, abs=1e-300)


def test_t_with_infinite_degrees_is_normal() -> None:
    assert t_quantile(0.975, math.inf) == normal_quantile(0.975)
    assert t_tail(1.5, math.inf) == normal_cdf(-1.5)
    assert t_tail(math.inf, 5) == 0


@each_case(("above", "below"), list(product((1, 2, 9.5, 100, 1e4), (1, 3, 20, 1e4))))
def test_f(above: float, below: float) -> None:
    for share in (0.001, 0.025, 0.5, 0.975, 0.9999):
        expected = scipy.f.ppf(share, above, below)
        assert f_quantile(share, above, below) == pytest.approx(expected, rel=1e-9)


@each_case(("a", "b"), list(product((0.5, 1, 7.3, 4000), (0.5, 2, 900))))
def test_beta(a: float, b: float) -> None:
    for share in (0.0001, 0.025, 0.5, 0.975):
        x = scipy.beta.ppf(share, a, b)
        assert beta_cdf(x, a, b) == pytest.approx(share, abs=1e-9)
        assert beta_quantile(share, a, b) == pytest.approx(x, rel=1e-9)


@each_case(("n", "p"), list(product((1, 5, 100, 3000, 10**6), (0.001, 0.05, 0.5, 0.95, 0.99))))
def test_binomial(n: int, p: float) -> None:
    for share in (0.001, 0.025, 0.5, 0.975, 0.999):
        count = binomial_quantile(share, n, p)
        assert count == scipy.binom.ppf(share, n, p)
        assert binomial_cdf(count, n, p) == pytest.approx(scipy.binom.cdf(count, n, p), abs=1e-9)
        assert binomial_pmf(count, n, p) == pytest.approx(scipy.binom.pmf(count, n, p), abs=1e-9)


def test_ends() -> None:
    assert binomial_cdf(-1, 5, 0.3) == 0
    assert binomial_cdf(5, 5, 0.3) == 1
    assert binomial_pmf(6, 5, 0.3) == 0
    assert [binomial_pmf(count, 3, 1.0) for count in range(4)] == [0, 0, 0, 1]
    assert [binomial_pmf(count, 3, 0.0) for count in range(4)] == [1, 0, 0, 0]
    assert (normal_quantile(0), normal_quantile(1)) == (-math.inf, math.inf)
    assert (t_quantile(0, 3), t_quantile(1, 3)) == (-math.inf, math.inf)
    assert (f_quantile(0, 2, 2), f_quantile(1, 2, 2)) == (0, math.inf)
    assert (beta_quantile(0, 2, 2), beta_quantile(1, 2, 2)) == (0, 1)


def test_welch_degrees_are_those_of_scipy() -> None:
    first, second = [0.2, 0.5, 0.9, 0.4], [0.1, 0.8, 0.8, 0.3, 0.2, 0.9]
    variances = [scipy.tvar(side) / len(side) for side in (first, second)]
    expected = scipy.ttest_ind(first, second, equal_var=False).df
    assert welch_degrees([(variances[0], 3), (variances[1], 5)]) == pytest.approx(expected)
    assert welch_degrees([(0.0, 3), (0.0, 5)]) == 3
