"""The incomplete beta function, from which the t, F and binomial distributions follow.

The factor in front is computed by Loader's saddle-point form, so that it keeps its digits for a million examples,
where a difference of log-gammas does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["beta_cdf", "beta_quantile", "binomial_density", "invert"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_TINY = 1e-300


def _stirling_error(n: float) -> float:
    """The error of Stirling's formula for log(n!)."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - _HALF_LOG_TAU
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / n


def _deviance(x: float, mean: float) -> float:
    """`x log(x / mean) + mean - x`, without cancellation where x is near the mean."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return x * math.log(x / mean) + mean - x
    ratio = (x - mean) / (x + mean)
    total, term, square, odd = (x - mean) * ratio, 2 * x * ratio, ratio * ratio, 1
    while True:
        term, odd = term * square, odd + 2
        more = total + term / odd
        if more == total:
            return total
        total = more


def binomial_density(x: float, n: float, p: float, q: float) -> float:
    """Give `C(n, x) p^x q^(n-x)` with q = 1 - p, also where x and n are not whole."""
    if p == 0 or q == 0:
        return float(x == (0 if p == 0 else n))
    if x == 0 or x == n:
        return math.exp(n * math.log1p(-p if x == 0 else -q))
    exponent = _stirling_error(n) - _stirling_error(x) - _stirling_error(n - x)
    exponent -= _deviance(x, n * p) + _deviance(n - x, n * q)
    return math.exp(exponent) * math.sqrt(n / (2 * math.pi * x * (n - x)))


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    total = d
    for step in range(1, 200_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d, c = 1 + term * d, 1 + term / c
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = c if abs(c) > _TINY else _TINY
            total *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return total


def beta_cdf(x: float, a: float, b: float, rest: float | None = None) -> float:
    """Give the regularised incomplete beta function; `rest` is 1 - x where the caller knows it more exactly."""
    y = 1 - x if rest is None else rest
    if x <= 0:
        return 0.0
    if y <= 0:
        return 1.0
    factor = a * b / (a + b) * binomial_density(a, a + b, x, y)
    if x * (a + b + 2) < a + 1:
        return factor * _fraction(a, b, x) / a
    return 1 - factor * _fraction(b, a, y) / b


def beta_quantile(p: float, a: float, b: float) -> float:
    """Give the x at which `beta_cdf` is p."""
    if p <= 0 or p >= 1:
        return 0.0 if p <= 0 else 1.0

    def density(x: float) -> float:
        return a * b / (a + b) * binomial_density(a, a + b, x, 1 - x) / (x * (1 - x))

    return invert(lambda x: beta_cdf(x, a, b) - p, density, a / (a + b), 0.0, 1.0)


def invert(
    rise: Callable[[float], float], slope: Callable[[float], float], start: float, low: float, high: float
) -> float:
    """Find where a rising function is 0, by Newton's steps, halving the bracket wherever a step leaves it."""
    x = start
    for _ in range(200):
        value = rise(x)
        if value == 0:
            return x
        low, high = (low, x) if value > 0 else (x, high)
        steep = slope(x)
        new = x - value / steep if steep > 0 else low
        if not low < new < high:
            new = (low + high) / 2
        if abs(new - x) <= 1e-13 * abs(new):
            return new
        x = new
    return x
