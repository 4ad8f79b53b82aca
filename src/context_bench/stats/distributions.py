"""Normal, t, F and binomial distributions: cumulative shares and quantiles, with the standard library alone.

All agree with scipy to 1e-9. Quantiles of t are remembered, since a report asks for the same few again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from context_bench.stats.beta import beta_cdf, beta_quantile, binomial_density, invert

__all__ = [
    "binomial_cdf",
    "binomial_pmf",
    "binomial_quantile",
    "f_cdf",
    "f_quantile",
    "normal_cdf",
    "normal_quantile",
    "t_cdf",
    "t_quantile",
    "t_tail",
    "welch_degrees",
]

_ROOT_TAU = math.sqrt(2 * math.pi)


def normal_cdf(z: float) -> float:
    """Share of the standard normal distribution below z."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


@lru_cache(maxsize=1024)
def normal_quantile(p: float) -> float:
    """Give the z below which a share p of the standard normal distribution lies."""
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


def t_cdf(t: float, degrees: float) -> float:
    """Share of Student's distribution below t."""
    return t_tail(-t, degrees)


def _t_density(t: float, degrees: float) -> float:
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    return math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))


@lru_cache(maxsize=4096)
def t_quantile(p: float, degrees: float) -> float:
    """Give the t below which a share p of Student's distribution lies."""
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


def f_cdf(x: float, above: float, below: float) -> float:
    """Share of the F distribution with these degrees of numerator and denominator that lies below x."""
    if x <= 0:
        return 0.0
    whole = above * x + below
    return beta_cdf(above * x / whole, above / 2, below / 2, below / whole)


def f_quantile(p: float, above: float, below: float) -> float:
    """Give the x below which a share p of the F distribution lies."""
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
    """Give the least count that is reached or undercut with a chance of at least `share`."""
    low, high, share = 0, n, share * (1 - 1e-13)  # a share that is met exactly must not fail by rounding
    while low < high:
        middle = (low + high) // 2
        if binomial_cdf(middle, n, p) >= share:
            high = middle
        else:
            low = middle + 1
    return low


def welch_degrees(parts: Sequence[tuple[float, float]]) -> float:
    """Give Welch and Satterthwaite's degrees of freedom for a sum of independent (variance, degrees)."""
    below = sum(variance * variance / degrees for variance, degrees in parts if degrees > 0)
    whole = sum(variance for variance, _ in parts)
    return whole * whole / below if below > 0 else min((degrees for _, degrees in parts), default=0.0)
