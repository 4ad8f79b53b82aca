"""Planning: how many examples a comparison needs, and what a given number of examples can show.

The numbers count independent examples, or clusters if there are any. `spread` is the standard deviation of one
example's difference (`Difference.spread` of a pilot, or `pass_fail_spread`). If few examples change, the power is
enumerated over all counts of gains and losses, because the normal approximation would promise 80% and deliver 54%.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from context_bench.stats.differences import UNSEEN_PAIRS, PairedSums, paired_difference
from context_bench.stats.distributions import (
    beta_cdf,
    binomial_cdf,
    binomial_pmf,
    binomial_quantile,
    normal_cdf,
    normal_quantile,
    t_quantile,
)

__all__ = [
    "find_detectable",
    "find_least",
    "least_n",
    "n_for_difference",
    "n_for_equivalence",
    "n_for_non_inferiority",
    "pass_fail_spread",
    "power_of_difference",
    "power_of_equivalence",
    "power_of_non_inferiority",
]

ENUMERATED_UP_TO = 0.05  # share of discordant examples up to which the power is enumerated
MAX_DISCORDANT = 5000
"""Discordant examples up to which enumerating is quick; with more the normal approximation is exact enough."""
MAX_FOR_DIFFERENCE = 50  # the same for a difference, whose test needs no bound on losses not seen
NORMAL_EXTRA = 1.02  # correction of the normal approximation, from 5% discordant on
MAX_N = 10**9
_NEGLIGIBLE = 1e-9


def pass_fail_spread(discordant: float, difference: float = 0.0) -> float:
    """Return the spread of pass/fail differences, given the share of examples that only one of the two passes."""
    return math.sqrt(max(0.0, discordant - difference * difference))


@lru_cache(maxsize=10_000)
def least_n(margin: float, losses: int = 0, alpha: float = 0.05) -> int:
    """Return the smallest number of examples that can show "equivalent" with these net losses: 149 at margin 0.02
    if there are none."""
    found = find_least(lambda n: n > losses and beta_cdf(margin, losses + 1, n - losses) > 1 - alpha)
    assert found is not None
    return found


def find_least(enough: Callable[[int], bool]) -> int | None:
    """Find the smallest sufficient number of examples; None if a billion do not suffice."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > MAX_N:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


# --- enumerated: gains and losses of one point, as of pass/fail


def _count_discordant(spread: float, difference: float) -> float:
    """Return the discordant share for this spread; it is at least the difference itself."""
    return max(spread * spread + difference * difference, abs(difference))


def _is_enumerated(n: float, discordant: float, scores: bool, most: int = MAX_DISCORDANT) -> bool:
    return scores and discordant <= ENUMERATED_UP_TO * (1 + 1e-9) and n * discordant <= most


@lru_cache(maxsize=10_000)
def _bound_net_losses(n: int, margin: float, alpha: float) -> int:
    """Find the largest number of net losses in n examples for which the bound on unseen losses stays within the
    margin."""
    low, high = -1, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if beta_cdf(margin, middle + 1, n - middle) > 1 - alpha else (low, middle)
    return low


@lru_cache(maxsize=100_000)
def _find_most_losses(n: int, changed: int, margin: float, alpha: float) -> int:
    """Find the most net losses among `changed` examples that still show "not worse"; negative: a net gain."""
    bound = min(changed, _bound_net_losses(n, margin, alpha))

    def passes(losses: int) -> bool:
        found = paired_difference(PairedSums(n, -losses, changed, cubes=-losses))
        found = found if losses < 0 else replace(found, independent=None)  # up to here the bound holds
        return found.limits(alpha)[0] > -margin

    low, high = changed % 2, bound + 1 + (bound + 1 - changed) % 2  # net losses have the parity of the changes
    if low >= high or not passes(low):
        low, high = -changed - 2, min(low, high)
    while high - low > 2:
        middle = low + 2 * ((high - low) // 4)
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def _find_least_net(n: int, changed: int, alpha: float) -> int:
    """Find the smallest significant net change among `changed` examples; more than all if none is significant."""
    low, high = -2 + changed % 2, changed + 2
    while high - low > 2:
        middle = low + 2 * ((high - low) // 4)
        found = paired_difference(PairedSums(n, middle, changed)).p_value() <= alpha
        low, high = (low, middle) if found else (middle, high)
    return high


def _enumerate(n: int, discordant: float, difference: float, share: Callable[[int, float], float]) -> float:
    """Sum over all numbers of changes: their probability times the share of runs that succeed.

    `share` receives the number of changes and the probability that one of them is a loss.
    """
    if not discordant:
        return share(0, 0.5)
    loss = (1 - difference / discordant) / 2
    ends = [binomial_quantile(part, n, discordant) for part in (_NEGLIGIBLE, 1 - _NEGLIGIBLE)]
    return math.fsum(
        binomial_pmf(changed, n, discordant) * share(changed, loss) for changed in range(ends[0], ends[1] + 1)
    )


def _stay_above(chance: Callable[[int], float], goal: float, margin: float, alpha: float) -> int:
    """Find the number of examples from which on the probability stays above the goal. The probability falls until one
    more loss is allowed, and then jumps, so it is lowest just before a jump.
    """

    def is_above(losses: int) -> bool:
        return chance(least_n(margin, losses, alpha) - 1) >= goal

    step = find_least(lambda losses: is_above(losses) and is_above(losses + 1)) or 1
    while step > 1 and is_above(step - 1):
        step -= 1
    n, first = least_n(margin, step, alpha) - 1, least_n(margin, 0, alpha)
    while n > first and chance(n - 1) >= goal:
        n -= 1
    return n


# --- the power of a number of examples


def _find_error(n: float, spread: float, difference: float, scores: bool) -> float:
    """Return the standard error of a verdict on n examples, including the added pairs."""
    unseen = max(0.0, UNSEEN_PAIRS * (1 + difference**2 - 2 * spread**2)) if scores else 0.0
    return math.sqrt(spread * spread / n + unseen / (n * n))


def _find_critical(share: float, n: float) -> float:
    return t_quantile(share, n - 1) if n >= 2 else math.inf


def _chance(room: float, n: float, spread: float) -> float:
    """Return the probability that the mean of n differences deviates from the true one, to one side, by at most this
    much."""
    return float(room > 0) if spread == 0 else normal_cdf(room * math.sqrt(n) / spread)


def power_of_difference(
    n: float, spread: float, difference: float, *, alpha: float = 0.05, scores: bool = True
) -> float:
    """Return the probability that n examples find a true difference."""
    discordant = _count_discordant(spread, difference)
    graded = discordant > spread * spread + difference * difference + 1e-12  # pass/fail scores cannot spread less
    if not graded and _is_enumerated(n, discordant, scores, MAX_FOR_DIFFERENCE):

        def succeed(changed: int, loss: float) -> float:
            least = _find_least_net(int(n), changed, alpha)
            losing = 1 - binomial_cdf((changed + least) // 2 - 1, changed, loss)
            return losing + (binomial_cdf((changed - least) // 2, changed, loss) if least > 0 else 0.0)

        return _enumerate(int(n), discordant, difference, succeed)
    limit = _find_critical(1 - alpha / 2, n) * _find_error(n, spread, difference, scores)
    if spread == 0:
        return float(abs(difference) > limit)
    return _chance(abs(difference) - limit, n, spread) + _chance(-abs(difference) - limit, n, spread)


def power_of_equivalence(
    n: float, spread: float, margin: float, *, difference: float = 0.0, alpha: float = 0.05, scores: bool = True
) -> float:
    """Return the probability that n examples, or clusters, show two systems equivalent within the margin.

    For `scores` in [0, 1], a verdict also bounds unseen losses.
    """
    return _find_power(n, spread, margin, difference, alpha, scores, both_sides=True)


def power_of_non_inferiority(
    n: float, spread: float, margin: float, *, difference: float = 0.0, alpha: float = 0.05, scores: bool = True
) -> float:
    """Return the probability that n examples show a system not worse than the baseline by the margin."""
    return _find_power(n, spread, margin, difference, alpha, scores, both_sides=False)


def _find_power(
    n: float, spread: float, margin: float, difference: float, alpha: float, scores: bool, *, both_sides: bool
) -> float:
    discordant = _count_discordant(spread, difference)
    if _is_enumerated(n, discordant, scores):

        def succeed(changed: int, loss: float) -> float:
            most = _find_most_losses(int(n), changed, margin, alpha)
            if both_sides and most < 0:
                return 0.0
            gained_too_much = binomial_cdf((changed - most) // 2 - 1, changed, loss) if both_sides else 0.0
            return binomial_cdf((changed + most) // 2, changed, loss) - gained_too_much

        return _enumerate(int(n), discordant, difference, succeed)
    limit = _find_critical(1 - alpha, n) * _find_error(n, spread, difference, scores)
    if not both_sides:
        return _chance(margin + difference - limit, n, spread)
    above, below = _chance(margin - difference - limit, n, spread), _chance(limit - margin - difference, n, spread)
    return max(0.0, above - below)


# --- the number of examples for a power


def n_for_difference(
    spread: float, difference: float, *, alpha: float = 0.05, power: float = 0.8, scores: bool = True
) -> int | None:
    """Count the examples that find a true difference in a share `power` of all runs; None if it is 0."""
    if not difference:
        return None
    return find_least(lambda n: power_of_difference(n, spread, difference, alpha=alpha, scores=scores) >= power)


def n_for_equivalence(
    spread: float,
    margin: float,
    *,
    difference: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
    scores: bool = True,
) -> int | None:
    """Count the examples that show two systems equivalent within the margin; None if they truly are not."""
    if abs(difference) >= margin:
        return None
    return _find_n(power_of_equivalence, spread, margin, difference, alpha, power, scores)


def n_for_non_inferiority(
    spread: float,
    margin: float,
    *,
    difference: float = 0.0,
    alpha: float = 0.05,
    power: float = 0.8,
    scores: bool = True,
) -> int | None:
    """Count the examples that show a system not worse than the baseline by the margin; None if it truly is worse."""
    if difference <= -margin:
        return None
    return _find_n(power_of_non_inferiority, spread, margin, difference, alpha, power, scores)


def _find_n(
    compute: Callable[..., float],
    spread: float,
    margin: float,
    difference: float,
    alpha: float,
    power: float,
    scores: bool,
) -> int | None:
    def chance(n: int) -> float:
        return compute(n, spread, margin, difference=difference, alpha=alpha, scores=scores)

    room = margin - abs(difference) if compute is power_of_equivalence else margin + difference
    most = 20 * ENUMERATED_UP_TO / room**2  # more than any enumerated case needs
    if margin > 0 and _is_enumerated(most, _count_discordant(spread, difference), scores):
        return _stay_above(chance, power, margin, alpha)
    found = find_least(lambda n: chance(n) >= power)
    if not scores or found is None:
        return found
    return max(math.ceil(NORMAL_EXTRA * found), least_n(margin, 0, alpha) if margin > 0 else 0)


def find_detectable(spread: float, n: float, *, alpha: float = 0.05, power: float = 0.8, scores: bool = True) -> float:
    """Return the smallest true difference that n examples find in a share `power` of all runs."""
    judged = _find_critical(1 - alpha / 2, n) * _find_error(n, spread, 0.0, scores)
    return judged + normal_quantile(power) * spread / math.sqrt(n)
