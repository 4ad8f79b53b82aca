"""Repeated answers to one example, and the noise floor: the difference between two runs of the same system."""

from __future__ import annotations

import copy
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from context_bench.stats.differences import PairedSums, paired_difference
from context_bench.stats.distributions import f_quantile
from context_bench.stats.interval import TOO_FEW, Interval
from context_bench.stats.means import Moments, mean_interval, share_interval

__all__ = [
    "NoiseFloor",
    "RepeatSums",
    "RepeatedAnswers",
    "chance_all_pass",
    "chance_any_passes",
    "flip_share",
    "noise_of_repeats",
    "noise_of_twins",
    "pass_all_k",
    "pass_at_k",
    "repeat_share",
]


def chance_any_passes(passed: int, n: int, k: int) -> float:
    """Estimate pass@k for one example: the probability that at least one of k answers passes, given `passed` of n."""
    return 1 - math.comb(n - passed, k) / math.comb(n, k)


def chance_all_pass(passed: int, n: int, k: int) -> float:
    """Estimate pass^k for one example: the probability that all of k answers pass, given `passed` of n."""
    return math.comb(passed, k) / math.comb(n, k)


@dataclass
class RepeatSums:
    """Sums over examples that were each answered several times."""

    examples: int = 0
    n: int = 0
    n_squares: float = 0.0
    total: float = 0.0
    squares: float = 0.0
    between: float = 0.0  # sum over examples of (sum of scores)² / number of answers
    counts: dict[str, int] = field(default_factory=dict)
    """The number of examples for each number of answers and of passed answers: `"answers:passed"`."""

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


class RepeatedAnswers:
    """Collects the answers to each example until it is complete; then keeps only sums."""

    def __init__(self, repeats: int, threshold: float) -> None:
        self._repeats, self._threshold = repeats, threshold
        self._sums = RepeatSums()
        self._open: dict[Hashable, list[float | None]] = {}

    def add(self, example: Hashable, value: float | None) -> None:
        """Add one answer to an example; None means that the score is missing."""
        answers = self._open.setdefault(example, [])
        answers.append(value)
        if len(answers) >= self._repeats:
            self._count(self._sums, self._open.pop(example))

    def _count(self, sums: RepeatSums, answers: Sequence[float | None]) -> None:
        scores = [score for score in answers if score is not None]
        sums.add(scores, sum(score >= self._threshold for score in scores))

    def total(self) -> RepeatSums:
        """Sum up all examples, including those with missing answers."""
        if not self._open:
            return self._sums
        sums = copy.deepcopy(self._sums)
        for answers in self._open.values():
            self._count(sums, answers)
        return sums


def _interval_over(sums: RepeatSums, least: int, value_of: dict[tuple[int, int], float], level: float) -> Interval:
    moments = Moments()
    for n, passed, examples in sums.tally():
        if n >= least:
            value = value_of[n, passed]
            moments.merge(Moments(examples, value * examples, value * value * examples, value, value))
    return mean_interval(moments, level)


def pass_at_k(sums: RepeatSums, k: int, level: float = 0.95) -> Interval:
    """Return pass@k over the examples that have at least k answers."""
    values = {(n, c): chance_any_passes(c, n, k) for n, c, _ in sums.tally() if n >= k}
    return _interval_over(sums, k, values, level)


def pass_all_k(sums: RepeatSums, k: int, level: float = 0.95) -> Interval:
    """Return pass^k over the examples that have at least k answers."""
    values = {(n, c): chance_all_pass(c, n, k) for n, c, _ in sums.tally() if n >= k}
    return _interval_over(sums, k, values, level)


def flip_share(sums: RepeatSums, level: float = 0.95) -> Interval:
    """Return the probability that exactly one of two answers to an example passes."""
    values = {(n, c): c * (n - c) / math.comb(n, 2) for n, c, _ in sums.tally() if n >= 2}
    return _interval_over(sums, 2, values, level)


def repeat_share(sums: RepeatSums, level: float = 0.95) -> Interval:
    """Return the share of the variance between repeats of one example; the rest is between examples.

    A one-way analysis of variance; the interval is exact for normal scores and equally many answers to each example.
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


@dataclass(frozen=True)
class NoiseFloor:
    """How often two runs of one system disagree, and the difference of means that this alone explains.

    In 19 of 20 cases, two runs of one system differ by at most `floor`. If the two runs never disagreed, `floor` is
    NaN, because no noise level can be estimated.
    """

    n: int
    flips: float
    share: Interval
    floor: float

    @property
    def nothing_seen(self) -> bool:
        """Whether the two runs agree on every example, even in scores that do not affect a pass."""
        return self.n > 0 and self.flips == 0 and math.isnan(self.floor)

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for strict JSON; unmeasured values are null."""
        numbers = {name: None if math.isnan(value := getattr(self, name)) else value for name in ("flips", "floor")}
        return {**asdict(self), **numbers, "share": self.share.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> NoiseFloor:
        """Read the dict of `to_dict`."""
        flips, floor = (math.nan if stored[name] is None else stored[name] for name in ("flips", "floor"))
        return cls(stored["n"], flips, Interval.from_dict(stored["share"]), floor)


def noise_of_twins(sums: PairedSums, level: float = 0.95, *, flips: int | None = None) -> NoiseFloor:
    """Return the noise floor from two runs of the baseline; `flips` counts examples that only one of them passes."""
    interval = paired_difference(sums).interval(level)
    floor = (interval.high - interval.low) / 2 if sums.changed else math.nan
    flips = sums.changed if flips is None else flips
    return NoiseFloor(sums.n, flips, share_interval(flips, sums.n, level), floor)


def noise_of_repeats(sums: RepeatSums, level: float = 0.95, *, answers: int = 1) -> NoiseFloor:
    """Return the noise floor of a mean over `answers`, estimated from examples that were answered several times."""
    share = flip_share(sums, level)
    if not share.n or math.isnan(share.value):
        return NoiseFloor(share.n, math.nan, share, math.nan)
    within = max(0.0, sums.squares - sums.between) / (sums.n - sums.examples)
    if within < 1e-12:
        return NoiseFloor(share.n, share.value * share.n, share, math.nan)
    twin = PairedSums(share.n, 0.0, 2 * within / answers * share.n)
    interval = paired_difference(twin).interval(level)
    return NoiseFloor(share.n, share.value * share.n, share, (interval.high - interval.low) / 2)
