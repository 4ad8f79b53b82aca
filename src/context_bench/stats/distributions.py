"""Normal, t, F, binomial and beta distributions: cumulative shares and quantiles, with the standard library alone.

All agree with scipy to 1e-9. Quantiles of t are cached, because a report needs the same few repeatedly. t, F and
binomial follow from the incomplete beta function. Its leading factor is computed by Loader's saddle-point form, which
stays exact for a million examples, unlike a difference of log-gammas.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

__all__ = [
    "beta_cdf",
    "beta_quantile",
    "binomial_cdf",
    "binomial_pmf",
    "binomial_quantile",
    "f_quantile",
    "normal_cdf",
    "normal_quantile",
    "t_quantile",
    "t_tail",
    "welch_degrees",
]

_ROOT_TAU = math.sqrt(2 * math.pi)
_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_TINY = 1e-300


def normal_cdf(z: float) -> float:
    """Share of the standard normal distribution below z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


@lru_cache(maxsize=1024)
def normal_quantile(p: float) -> float:
    """Return the z below which a share p of the standard normal distribution lies."""
    if not 0 < p < 1:
        return -math.inf if p <= 0 else math.inf
    tail = min(p, 1 - p)
    root = math.sqrt(-2 * math.log(tail))
    # Abramowitz and Stegun 26.2.23, good to 4.5e-4; the steps below do the rest.
    up = 2.515517 + root * (0.802853 + root * 0.010328)
    down = 1 + root * (1.432788 + root * (0.189269 + root * 0.001308))
    z = root - up / down
    for _ in range(4):
        gap = (0.5 * math.erfc(z / math.sqrt(2)) - tail) * _ROOT_TAU * math.exp(z * z / 2)
        z += gap / (1 - z * gap / 2)  # Halley's step
    return z if p > 0.5 else -z


def t_tail(t: float, degrees: float) -> float:
    """Share of Student's distribution above t; with infinite degrees, of the normal one."""
    if math.isinf(degrees):
        return normal_cdf(-t)
    if t < 0:
        return 1 - t_tail(-t, degrees)
    if math.isinf(t):
        return 0.0
    square = t * t
    return 0.5 * beta_cdf(degrees / (degrees + square), degrees / 2, 0.5, square / (degrees + square))


def _t_density(t: float, degrees: float) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))


@lru_cache(maxsize=4096)
def t_quantile(p: float, degrees: float) -> float:
    """Return the t below which a share p of Student's distribution lies."""
    if not 0 < p < 1:
        return -math.inf if p <= 0 else math.inf
    if math.isinf(degrees):
        return normal_quantile(p)
    tail = min(p, 1 - p)
    if tail == 0.5:
        return 0.0
    z = abs(normal_quantile(tail))
    start, high = z + (z**3 + z) / (4 * degrees), 2 * z + 1
    while t_tail(high, degrees) > tail:
        high *= 4
    found = invert(
        lambda t: tail - t_tail(t, degrees), lambda t: _t_density(t, degrees), min(start, high * 0.9), 0.0, high
    )
    return found if p > 0.5 else -found


def f_quantile(p: float, above: float, below: float) -> float:
    """Return the x below which a share p of the F distribution lies."""
    if not 0 < p < 1:
        return 0.0 if p <= 0 else math.inf
    if p > 0.5:  # where 1 - x would lose its digits, the other tail keeps them
        y = beta_quantile(1 - p, below / 2, above / 2)
        return below * (1 - y) / (above * y)
    x = beta_quantile(p, above / 2, below / 2)
    return below * x / (above * (1 - x))


def binomial_pmf(count: int, n: int, p: float) -> float:
    """Chance of exactly `count` successes in n trials."""
    return binomial_density(count, n, p, 1 - p) if 0 <= count <= n else 0.0


def binomial_cdf(count: int, n: int, p: float) -> float:
    """Chance of at most `count` successes in n trials."""
    if count < 0:
        return 0.0
    return 1.0 if count >= n else beta_cdf(1 - p, n - count, count + 1, p)


def binomial_quantile(share: float, n: int, p: float) -> int:
    """Return the smallest count whose cumulative probability is at least `share`."""
    low, high, share = 0, n, share * (1 - 1e-13)  # a share that is met exactly must not fail by rounding
    while low < high:
        middle = (low + high) // 2
        if binomial_cdf(middle, n, p) >= share:
            high = middle
        else:
            low = middle + 1
    return low


def welch_degrees(parts: Sequence[tuple[float, float]]) -> float:
    """Return Welch and Satterthwaite's degrees of freedom for a sum of independent (variance, degrees)."""
    below = sum(variance * variance / degrees for variance, degrees in parts if degrees > 0)
    whole = sum(variance for variance, _ in parts)
    return whole * whole / below if below > 0 else min((degrees for _, degrees in parts), default=0.0)


def _stirling_error(n: float) -> float:
    """The error of Stirling's formula for log(n!)."""
    if n < 16:
        return math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - _HALF_LOG_TAU
    square = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * square)) / square) / square) / n


def _deviance(x: float, mean: float) -> float:
    """Return `x log(x / mean) + mean - x`, without cancellation if x is near the mean."""
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
    """Return `C(n, x) p^x q^(n-x)` with q = 1 - p; x and n need not be whole."""
    if p == 0 or q == 0:
        return float(x == (0 if p == 0 else n))
    if x == 0 or x == n:
        return math.exp(n * math.log1p(-p if x == 0 else -q))
    exponent = _stirling_error(n) - _stirling_error(x) - _stirling_error(n - x)
    exponent -= _deviance(x, n * p) + _deviance(n - x, n * q)
    return math.exp(exponent) * math.sqrt(n / (2 * math.pi * x * (n - x)))


def _fraction(a: float, b: float, x: float) -> float:
    """Compute the continued fraction of the incomplete beta function, by Lentz's method."""
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
    """Return the regularised incomplete beta function; `rest` is 1 - x if the caller knows it more exactly."""
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
    """Return the x at which `beta_cdf` is p."""
    if p <= 0 or p >= 1:
        return 0.0 if p <= 0 else 1.0

    def density(x: float) -> float:
        return a * b / (a + b) * binomial_density(a, a + b, x, 1 - x) / (x * (1 - x))

    return invert(lambda x: beta_cdf(x, a, b) - p, density, a / (a + b), 0.0, 1.0)


def invert(
    rise: Callable[[float], float], slope: Callable[[float], float], start: float, low: float, high: float
) -> float:
    """Find the zero of a rising function by Newton's steps; halve the bracket if a step leaves it."""
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
