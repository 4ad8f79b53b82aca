"""Stopping as soon as a verdict is settled: five looks over complete prefixes of a random order.

A look counts the first so many examples of the order that was drawn before the run, and waits for every one of them:
taking answers as they arrive, quick ones first, raises false alarms in 8% of runs. No clock, no randomness, no input
or output: the caller draws the order, and hands over each example with its place in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from context_bench.compare.pairing import Pairs, ScoredAnswer
from context_bench.errors import UsageError
from context_bench.stats.boundaries import crossing_chance, look_boundary
from context_bench.stats.differences import Difference
from context_bench.stats.distributions import normal_cdf, normal_quantile
from context_bench.stats.interval import Interval
from context_bench.stats.verdicts import (
    ALL_GROUPS,
    DEFAULT_MARGIN,
    THESE_GROUPS,
    Needed,
    Verdict,
    choose_judged,
    explain_undecided,
    find_needed,
    name_groups,
)

SETTLED = ("equivalent", "better", "worse")


@dataclass
class Looks:
    """The looks at one system against the baseline.

    Args:
        planned: Examples in all; the last look has them all.
        looks: How many.
        margin: Of equivalence.
        alpha: Level of the whole family.
        comparisons: Size of the family: each system stops on its own, at alpha / comparisons.
        sizes: The number of examples at each look; without it, equal parts of those planned. Where examples come in
            groups the order must keep each group together, and each look hold whole groups.
        name: The system.
        fixed_groups: Whether the groups of the run are all that matter.
    """

    planned: int
    looks: int = 5
    margin: float = DEFAULT_MARGIN
    alpha: float = 0.05
    comparisons: int = 1
    sizes: Sequence[int] = ()
    name: str = ""
    fixed_groups: bool = False
    verdict: Verdict | None = None  # set once it is settled, or all planned examples are there
    look: int = 0  # how many looks were taken
    p: float = 1.0  # the smallest level at which any look so far would have decided
    _next: int = 0
    _waiting: dict[int, tuple[ScoredAnswer, ScoredAnswer] | None] = field(default_factory=dict)
    _counted: Pairs = field(default_factory=Pairs)

    @property
    def settled(self) -> bool:
        """Whether no further example is needed."""
        return self.verdict is not None

    def __post_init__(self) -> None:
        if self.planned < self.looks:
            raise UsageError(f"the planned examples must be at least as many as the looks (got {self.planned})")
        self.sizes = self.sizes or [math.ceil(self.planned * look / self.looks) for look in range(1, self.looks + 1)]
        if len(self.sizes) != self.looks or list(self.sizes) != sorted(self.sizes) or self.sizes[-1] != self.planned:
            raise UsageError(f"the sizes must be one for each look, up to {self.planned} (got {list(self.sizes)})")

    @property
    def examples(self) -> int:
        """How many examples of the order are counted, with those that have no score."""
        return self._next

    @property
    def difference(self) -> Difference:
        """The difference over the examples that are counted."""
        return self._counted.difference()

    def add(self, place: int, own: ScoredAnswer, baseline: ScoredAnswer) -> Verdict | None:
        """Take the two answers at a place of the order, counted from 0; return the verdict once there is one."""
        return self._take(place, (own, baseline))

    def skip(self, place: int) -> Verdict | None:
        """Leave out the example at this place, as its answers cannot be compared."""
        return self._take(place, None)

    def finish(self) -> Verdict:
        """Give the verdict when no more examples come, though fewer than planned: by the next look's boundary."""
        if self.verdict is None:
            self._judge(last=True)
        assert self.verdict is not None
        return self.verdict

    def _take(self, place: int, pair: tuple[ScoredAnswer, ScoredAnswer] | None) -> Verdict | None:
        if self.verdict is None and place >= self._next:
            self._waiting[place] = pair
            while self.verdict is None and self._next in self._waiting:
                if (complete := self._waiting.pop(self._next)) is not None:
                    self._counted.add(*complete)
                self._next += 1
                # A group that is larger than a part of the run makes several looks one: the last of them counts.
                while self.verdict is None and self._next >= self.sizes[self.look]:
                    self._judge()
        return self.verdict

    def _judge(self, *, last: bool = False) -> None:
        self.look += 1
        difference = self.difference
        self.p = min(self.p, self._find_level(difference))
        word = self._find_word(difference, self.p)
        if last or word in SETTLED or self.look == self.looks:
            self.verdict = self._describe(word, difference)

    def _find_level(self, difference: Difference) -> float:
        """Find the level at which this look would just have decided that there is a difference."""
        if not difference.known:
            return 1.0
        met = abs(normal_quantile(difference.p_value() / 2)) * math.sqrt(self.look / self.looks)
        # rounded down, so that p is never too small and the same constants come again
        return crossing_chance(math.floor(min(met, 20) * 1e4) / 1e4, self.looks)

    def _find_word(self, difference: Difference, p: float) -> str:
        if not difference.known:
            return "undecided"
        boundary = look_boundary(self.look, self.looks, 2 * self.alpha)
        allowed = normal_cdf(-boundary)
        judged = choose_judged(difference, self.fixed_groups)
        low, high = judged.limits(allowed) if judged.known else (-math.inf, math.inf)
        if -self.margin < low and high < self.margin:
            return "equivalent"
        if p <= self.alpha / self.comparisons:
            return "better" if difference.centre > 0 else "worse"
        return "not worse" if -self.margin < low else "undecided"

    def _find_intervals(self, difference: Difference) -> tuple[Interval, Interval]:
        """Give the 95% interval that holds at all looks together, and the 90% one that decides at this look."""
        judged = choose_judged(difference, self.fixed_groups)
        if not (difference.known and judged.known):
            return difference.interval(1 - self.alpha), difference.interval(1 - 2 * self.alpha)
        tails = [normal_cdf(-look_boundary(self.look, self.looks, factor * self.alpha)) for factor in (1, 2)]
        method = f"{self.looks} looks"
        wide = difference.enclose(*difference.widen(*tails), 1 - self.alpha, method)
        return wide, judged.enclose(*judged.limits(tails[1]), 1 - 2 * self.alpha, method)

    def _describe(self, word: str, difference: Difference) -> Verdict:
        early = self.look < self.looks
        reason = f"settled at look {self.look} of {self.looks}, after {self._next:,} of {self.planned:,} examples"
        if early and word in SETTLED:
            reason += "; a difference at which a run stops early is somewhat too large"
        needed = Needed()
        if word == "undecided":
            needed = find_needed(difference, self.margin, alpha=self.alpha, comparisons=self.comparisons)
            reason = explain_undecided(difference, needed)
        fixed = self.fixed_groups and difference.rows is not None and word in ("equivalent", "not worse")
        if fixed:
            reason += f"; it holds for {name_groups(difference)}, taken as all that matter (--fixed-groups)"
        wide, narrow = self._find_intervals(difference)
        corrected = min(1.0, self.p * self.comparisons)
        clean = self._counted.difference(without_errors=True)
        return Verdict(
            *(word, difference.value, wide, self.p, corrected, self.margin),
            *(difference.n, needed.if_same, reason, self.name),
            narrow=narrow,
            groups=difference.groups,
            needed_n_if_equal=needed.if_equal,
            promised=needed.promised,
            scope=THESE_GROUPS if fixed else ALL_GROUPS,
            word_without_errors=self._find_word(clean, self._find_level(clean)),
        )
