"""O'Brien-Fleming boundaries: the size of a difference that decides at each planned interim look.

At look k of K it must exceed `c·sqrt(K/k)` standard errors: almost impossible to exceed at first, nearly the usual 1.96
at the end. Five looks at the usual 1.96 raise a false alarm in 14% of runs, a look after every example in 39%.
"""

from __future__ import annotations

import math
from functools import lru_cache

from context_bench.stats.distributions import normal_quantile

__all__ = ["crossing_chance", "find_critical", "look_boundary"]


@lru_cache(maxsize=4096)
def crossing_chance(critical: float, looks: int) -> float:
    """Return the chance of crossing the boundary at any look when there is no difference.

    The sum of k standard normal steps must leave ±critical·sqrt(looks); its density is carried from look to look on a
    grid, by Simpson's rule, on the positive half alone.
    """
    edge = critical * math.sqrt(looks)
    count = 2 * max(40, math.ceil(8 * edge))
    step = edge / count
    scale = 1 / math.sqrt(2 * math.pi)
    kernel = [scale * math.exp(-0.5 * (place * step) ** 2) for place in range(2 * count + 1)]
    simpson = [step / 3 * (1 if place in (0, count) else 4 if place % 2 else 2) for place in range(count + 1)]
    density = kernel[: count + 1]
    for _ in range(looks - 1):
        weighted = [weight * value for weight, value in zip(simpson, density)]
        density = [
            sum([value * (kernel[abs(place - other)] + kernel[place + other]) for other, value in enumerate(weighted)])
            for place in range(count + 1)
        ]
    return max(0.0, 1 - 2 * sum(weight * value for weight, value in zip(simpson, density)))


@lru_cache(maxsize=256)
def find_critical(alpha: float, looks: int) -> float:
    """Find the constant for which the total chance of a false alarm, over all looks, is alpha."""
    low, high = normal_quantile(1 - alpha / 2), normal_quantile(1 - alpha / 2 / looks) + 0.1
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if crossing_chance(middle, looks) > alpha else (low, middle)
    return (low + high) / 2


def look_boundary(look: int, looks: int, alpha: float = 0.05) -> float:
    """Return the number of standard errors that decides at a look; looks count from 1."""
    return find_critical(alpha, looks) * math.sqrt(looks / look)
