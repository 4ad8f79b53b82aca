"""How many examples a question needs, and what so many examples can tell.

The normal approximation, with the spread of one pair's difference (`Difference.spread` of a pilot, or
`pass_fail_spread`). A verdict counts pairs that were not seen (`Difference.unseen`): with few changes it is they that
decide how many examples are needed. With few clusters it is their number: `groups` says how many one pair brings, and
t has one degree of freedom fewer than there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from context_bench.stats.distributions import normal_cdf, normal_quantile, t_quantile

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


def _find_least(enough: Callable[[float], bool]) -> int | None:
    """Find the least number of pairs that are enough; None if a billion are not."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > 10**9:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _find_error(n: float, spread: float, unseen: float) -> float:
    """Give the standard error that a verdict on n pairs goes by."""
    return math.sqrt(spread * spread / n + unseen / (n * n))


def _find_critical(share: float, n: float, groups: float) -> float:
    """Give the quantile that a verdict on n pairs goes by; infinite where they make fewer than two clusters."""
    if math.isinf(groups):
        return normal_quantile(share)
    return t_quantile(share, n * groups - 1) if n * groups >= 2 else math.inf


def _chance(room: float, n: float, spread: float) -> float:
    """Give the chance that the mean of n differences is not further from the true one than that, to one side."""
    return float(room > 0) if spread == 0 else normal_cdf(room * math.sqrt(n) / spread)


def n_for_difference(
    spread: float,
    difference: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> int | None:
    """Count the pairs that find a true difference in a share `power` of all runs; None if it is 0."""
    if not difference:
        return None
    return _find_least(
        lambda n: abs(difference) >= find_detectable(spread, n, alpha=alpha, power=power, unseen=unseen, groups=groups)
    )


def n_for_equivalence(
    spread: float,
    margin: float,
    *,
    difference: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> int | None:
    """Count the pairs that show two systems equivalent within the margin; None if they truly are not."""
    if abs(difference) >= margin:
        return None
    return _find_least(
        lambda n: (
            power_of_equivalence(n, spread, margin, difference=difference, alpha=alpha, unseen=unseen, groups=groups)
            >= power
        )
    )


def n_for_non_inferiority(
    spread: float,
    margin: float,
    *,
    difference: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> int | None:
    """Count the pairs that show a system not worse than the baseline by the margin; None if it truly is worse."""
    if difference <= -margin:
        return None
    return _find_least(
        lambda n: (
            power_of_non_inferiority(
                n, spread, margin, difference=difference, alpha=alpha, unseen=unseen, groups=groups
            )
            >= power
        )
    )


def find_detectable(
    spread: float,
    n: float,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> float:
    """Give the smallest true difference that n pairs find in a share `power` of all runs."""
    judged = _find_critical(1 - alpha / 2, n, groups) * _find_error(n, spread, unseen)
    return judged + normal_quantile(power) * spread / math.sqrt(n)


def power_of_difference(
    n: float,
    spread: float,
    difference: float,
    *,
    alpha: float = 0.05,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> float:
    """Give the chance that n pairs find a true difference."""
    limit = _find_critical(1 - alpha / 2, n, groups) * _find_error(n, spread, unseen)
    if spread == 0:
        return float(abs(difference) > limit)
    return _chance(abs(difference) - limit, n, spread) + _chance(-abs(difference) - limit, n, spread)


def power_of_equivalence(
    n: float,
    spread: float,
    margin: float,
    *,
    difference: float = 0.0,
    alpha: float = 0.05,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> float:
    """Give the chance that n pairs show two systems equivalent within the margin."""
    limit = _find_critical(1 - alpha, n, groups) * _find_error(n, spread, unseen)
    above, below = _chance(margin - difference - limit, n, spread), _chance(limit - margin - difference, n, spread)
    return max(0.0, above - below)


def power_of_non_inferiority(
    n: float,
    spread: float,
    margin: float,
    *,
    difference: float = 0.0,
    alpha: float = 0.05,
    unseen: float = 0.0,
    groups: float = math.inf,
) -> float:
    """Give the chance that n pairs show a system not worse than the baseline by the margin."""
    limit = _find_critical(1 - alpha, n, groups) * _find_error(n, spread, unseen)
    return _chance(margin + difference - limit, n, spread)
