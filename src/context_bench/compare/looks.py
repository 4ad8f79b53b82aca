"""Stopping as soon as a verdict is settled: five interim looks over complete prefixes of a random order.

Each look judges a fixed prefix of the order that was drawn before the run, and waits for all examples in it. Judging
answers as they arrive, quick ones first, raises false alarms in 8% of runs. This module uses no clock, randomness or
I/O: the caller draws the order and passes each example with its place.
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
    """The interim looks at one system against the baseline.

    Args:
        planned: The number of examples in all, and at the last look.
        looks: The number of looks.
        margin: The margin of equivalence.
        alpha: The level of the whole family of comparisons.
        comparisons: The size of the family: each system stops separately, at alpha / comparisons.
        sizes: The number of examples at each look; by default equal parts. If examples come in groups, the order must
            keep each group together, and each look must end with a whole group.
        name: The system.
        fixed_groups: Judge only the groups of this run, not others like them.
    """

    planned: int
    looks: int = 5
    margin: float = DEFAULT_MARGIN
    alpha: float = 0.05
    comparisons: int = 1
    sizes: Sequence[int] = ()
    name: str = ""
    fixed_groups: bool = False
    verdict: Verdict | None = None  # set when it is settled or all planned examples have arrived
    look: int = 0  # the number of looks so far
    p: float = 1.0  # the smallest level at which one of the looks so far would have decided
    _next: int = 0
    _waiting: dict[int, tuple[ScoredAnswer, ScoredAnswer] | None] = field(default_factory=dict)
    _counted: Pairs = field(default_factory=Pairs)

    @property
    def settled(self) -> bool:
        return self.verdict is not None

    def __post_init__(self) -> None:
        if self.planned < self.looks:
            raise UsageError(f"there must be at least as many planned examples as looks (got {self.planned})")
        self.sizes = self.sizes or [math.ceil(self.planned * look / self.looks) for look in range(1, self.looks + 1)]
        if len(self.sizes) != self.looks or list(self.sizes) != sorted(self.sizes) or self.sizes[-1] != self.planned:
            raise UsageError(f"sizes must have one size for each look, up to {self.planned} (got {list(self.sizes)})")

    @property
    def examples(self) -> int:
        """The number of examples counted so far, including those without a score."""
        return self._next

    @property
    def difference(self) -> Difference:
        return self._counted.difference()

    def add(self, place: int, own: ScoredAnswer, baseline: ScoredAnswer) -> Verdict | None:
        """Add the two answers at a place of the order (from 0); return the verdict when there is one."""
        return self._take(place, (own, baseline))

    def skip(self, place: int) -> Verdict | None:
        """Skip the example at this place, whose answers cannot be compared."""
        return self._take(place, None)

    def finish(self) -> Verdict:
        """Return the verdict after the last example; with fewer than planned, use the next look's boundary."""
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
                # A group larger than one part of the run merges several looks; the last of them counts.
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
        """Find the smallest level at which this look would have shown a difference."""
        if not difference.known:
            return 1.0
        met = abs(normal_quantile(difference.p_value() / 2)) * math.sqrt(self.look / self.looks)
        # rounded down: p is then never too small, and cached constants are used again
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
        """Return the 95% interval valid over all looks, and the 90% interval that decides at this look."""
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
            reason += "; early stopping overstates the difference somewhat"
        needed = Needed()
        if word == "undecided":
            needed = find_needed(difference, self.margin, alpha=self.alpha, comparisons=self.comparisons)
            reason = explain_undecided(difference, needed)
        fixed = self.fixed_groups and difference.rows is not None and word in ("equivalent", "not worse")
        if fixed:
            reason += f"; it holds only for {name_groups(difference)} (--fixed-groups)"
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
