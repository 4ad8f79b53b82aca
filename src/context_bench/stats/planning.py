"""How many examples a question needs, and what so many examples can tell.

The normal approximation, with the spread of one pair's difference (`Difference.spread` of a pilot, or
`pass_fail_spread`).
"""

from __future__ import annotations

import math

from context_bench.stats.distributions import normal_cdf, normal_quantile

__all__ = [
    "find_detectable",
    "n_for_difference",
    "n_for_equivalence",
    "n_for_non_inferiority",
    "pass_fail_spread",
    "power_of_difference",
    "power_of_equivalence",
    "power_of_non_inferiority",
]


def pass_fail_spread(discordant: float, difference: float = 0.0) -> float:
    """Give the spread of pass/fail differences from the share of examples that only one of the two passes."""
    return math.sqrt(max(0.0, discordant - difference * difference))


def _round_up(n: float) -> int | None:
    return max(2, math.ceil(n - 1e-9)) if math.isfinite(n) else None


def n_for_difference(spread: float, difference: float, *, alpha: float = 0.05, power: float = 0.8) -> int | None:
    """Count the pairs that find a true difference in a share `power` of all runs; None if it is 0."""
    needed = (normal_quantile(1 - alpha / 2) + normal_quantile(power)) * spread
    return _round_up((needed / difference) ** 2) if difference else None


def n_for_equivalence(
    spread: float, margin: float, *, difference: float = 0.0, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Count the pairs that show two systems equivalent within the margin; None if they truly are not."""
    if abs(difference) >= margin or spread == 0:
        return None if abs(difference) >= margin else 2
    low, high = 1.0, 4.0
    while power_of_equivalence(high, spread, margin, difference=difference, alpha=alpha) < power:
        high *= 4
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        enough = power_of_equivalence(middle, spread, margin, difference=difference, alpha=alpha) >= power
        low, high = (low, middle) if enough else (middle, high)
    return _round_up(high)


def n_for_non_inferiority(
    spread: float, margin: float, *, difference: float = 0.0, alpha: float = 0.05, power: float = 0.8
) -> int | None:
    """Count the pairs that show a system not worse than the baseline by the margin; None if it truly is worse."""
    if difference <= -margin:
        return None
    needed = (normal_quantile(1 - alpha) + normal_quantile(power)) * spread
    return _round_up((needed / (margin + difference)) ** 2)


def find_detectable(spread: float, n: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Give the smallest true difference that n pairs find in a share `power` of all runs."""
    return (normal_quantile(1 - alpha / 2) + normal_quantile(power)) * spread / math.sqrt(n)


def power_of_difference(n: float, spread: float, difference: float, *, alpha: float = 0.05) -> float:
    """Give the chance that n pairs find a true difference."""
    if spread == 0:
        return float(difference != 0)
    shift, critical = abs(difference) * math.sqrt(n) / spread, normal_quantile(1 - alpha / 2)
    return normal_cdf(shift - critical) + normal_cdf(-shift - critical)


def power_of_equivalence(
    n: float, spread: float, margin: float, *, difference: float = 0.0, alpha: float = 0.05
) -> float:
    """Give the chance that n pairs show two systems equivalent within the margin."""
    if spread == 0:
        return float(abs(difference) < margin)
    scale, critical = math.sqrt(n) / spread, normal_quantile(1 - alpha)
    above, below = (margin - difference) * scale - critical, (-margin - difference) * scale + critical
    return max(0.0, normal_cdf(above) - normal_cdf(below))


def power_of_non_inferiority(
    n: float, spread: float, margin: float, *, difference: float = 0.0, alpha: float = 0.05
) -> float:
    """Give the chance that n pairs show a system not worse than the baseline by the margin."""
    if spread == 0:
        return float(difference > -margin)
    return normal_cdf((margin + difference) * math.sqrt(n) / spread - normal_quantile(1 - alpha))
