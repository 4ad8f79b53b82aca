"""Several answers to one example: how often one of k passes, how often all do, how much of the spread is chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from context_bench.stats.accumulator import Accumulator
from context_bench.stats.distributions import f_quantile
from context_bench.stats.interval import TOO_FEW, Interval
from context_bench.stats.means import Moments, mean_interval

__all__ = [
    "RepeatSums",
    "chance_all_pass",
    "chance_any_passes",
    "flip_share",
    "pass_all_k",
    "pass_at_k",
    "repeat_share",
]


def chance_any_passes(passed: int, n: int, k: int) -> float:
    """Estimate pass@k for one example: the chance that at least one of k answers passes, from `passed` of n."""
    return 1 - math.comb(n - passed, k) / math.comb(n, k)


def chance_all_pass(passed: int, n: int, k: int) -> float:
    """Estimate pass^k for one example: the chance that all of k answers pass, from `passed` of n."""
    return math.comb(passed, k) / math.comb(n, k)


def _merge_counts(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


@dataclass
class RepeatSums(Accumulator):
    """Sums over examples that were each answered several times."""

    examples: int = 0
    n: int = 0
    n_squares: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    between: float = 0.0
    """Sum over examples of (sum of scores)² / number of answers."""
    counts: dict[str, int] = field(default_factory=dict, metadata={"merge": _merge_counts})
    """How many examples had so many answers, of which so many passed: `"answers:passed"`."""

    def add(self, scores: Sequence[float], passed: int) -> None:
        """Add one example: the scores of its answers, and how many of them passed."""
        if not scores:
            return
        total = sum(scores)
        self.examples += 1
        self.n += len(scores)
        self.n_squares += len(scores) ** 2
        self.total += total
        self.squares += sum(score * score for score in scores)
        self.between += total * total / len(scores)
        key = f"{len(scores)}:{passed}"
        self.counts[key] = self.counts.get(key, 0) + 1

    def tally(self) -> list[tuple[int, int, int]]:
        """List (answers, passed, examples)."""
        return [(*map(int, key.split(":")), count) for key, count in sorted(self.counts.items())]  # type: ignore[misc]


def _interval_over(sums: RepeatSums, least: int, value_of: dict[tuple[int, int], float], level: float) -> Interval:
    moments = Moments()
    for n, passed, examples in sums.tally():
        if n >= least:
            value = value_of[n, passed]
            moments.merge(Moments(examples, value * examples, value * value * examples, value, value))
    return mean_interval(moments, level)


def pass_at_k(sums: RepeatSums, k: int, level: float = 0.95) -> Interval:
    """Give pass@k over the examples that have at least k answers."""
    values = {(n, c): chance_any_passes(c, n, k) for n, c, _ in sums.tally() if n >= k}
    return _interval_over(sums, k, values, level)


def pass_all_k(sums: RepeatSums, k: int, level: float = 0.95) -> Interval:
    """Give pass^k over the examples that have at least k answers."""
    values = {(n, c): chance_all_pass(c, n, k) for n, c, _ in sums.tally() if n >= k}
    return _interval_over(sums, k, values, level)


def flip_share(sums: RepeatSums, level: float = 0.95) -> Interval:
    """Give the chance that of two answers to one example just one passes: the noise floor of a comparison."""
    values = {(n, c): c * (n - c) / math.comb(n, 2) for n, c, _ in sums.tally() if n >= 2}
    return _interval_over(sums, 2, values, level)


def repeat_share(sums: RepeatSums, level: float = 0.95) -> Interval:
    """Give the share of the variance that lies between repeats of one example; the rest lies between examples.

    A one-way analysis of variance; the interval is exact for normal scores and as many answers to each example.
    """
    within_degrees, between_degrees = sums.n - sums.examples, sums.examples - 1
    few = Interval(math.nan, math.nan, math.nan, level, sums.examples, "anova", TOO_FEW)
    if within_degrees < 1 or between_degrees < 1:
        return few
    within = max(0.0, sums.squares - sums.between) / within_degrees
    between = max(0.0, sums.between - sums.total**2 / sums.n) / between_degrees
    if within + between < 1e-15:
        return few
    answers = (sums.n - sums.n_squares / sums.n) / between_degrees
    if within < 1e-15:
        return Interval(0.0, 0.0, 0.0, level, sums.examples, "anova")

    def share(ratio: float) -> float:
        return min(1.0, answers / (max(1.0, ratio) - 1 + answers))

    ratio, tail = between / within, (1 - level) / 2
    low = share(ratio / f_quantile(tail, between_degrees, within_degrees))
    high = share(ratio / f_quantile(1 - tail, between_degrees, within_degrees))
    return Interval(share(ratio), low, high, level, sums.examples, "anova")
