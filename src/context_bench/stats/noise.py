"""The noise floor: what the same system differs from itself by, when it is run twice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from context_bench.stats.differences import PairedSums, paired_difference
from context_bench.stats.interval import Interval
from context_bench.stats.means import share_interval
from context_bench.stats.repeats import RepeatSums, flip_share

__all__ = ["NoiseFloor", "noise_of_repeats", "noise_of_twins"]


@dataclass(frozen=True)
class NoiseFloor:
    """How often two runs of one system disagree, and the difference in the mean that this alone explains.

    A difference between two systems within `floor` is what running one of them twice would give in 19 of 20 cases. It
    is NaN where no disagreement was seen: there is nothing to tell it from.
    """

    n: int
    flips: float
    share: Interval
    floor: float

    @property
    def nothing_seen(self) -> bool:
        """Whether the two agree on every example, also in scores that do not change a pass."""
        return self.n > 0 and self.flips == 0 and math.isnan(self.floor)

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON can hold it: what was not measured is null."""
        numbers = {name: None if math.isnan(value := getattr(self, name)) else value for name in ("flips", "floor")}
        return {**asdict(self), **numbers, "share": self.share.to_dict()}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> NoiseFloor:
        """Read back what `to_dict` wrote."""
        flips, floor = (math.nan if stored[name] is None else stored[name] for name in ("flips", "floor"))
        return cls(stored["n"], flips, Interval.from_dict(stored["share"]), floor)


def noise_of_twins(sums: PairedSums, level: float = 0.95, *, flips: int | None = None) -> NoiseFloor:
    """Give the noise floor from the baseline run twice on the same examples.

    Args:
        sums: Over the pairs.
        level: The confidence.
        flips: Examples that only one of the two passes; without it, those on which the scores differ.
    """
    interval = paired_difference(sums).interval(level)
    floor = (interval.high - interval.low) / 2 if sums.changed else math.nan
    flips = sums.changed if flips is None else flips
    return NoiseFloor(sums.n, flips, share_interval(flips, sums.n, level), floor)


def noise_of_repeats(sums: RepeatSums, level: float = 0.95, *, answers: int = 1) -> NoiseFloor:
    """Give the noise floor from examples that were answered several times.

    Args:
        sums: Over the examples.
        level: The confidence.
        answers: How many answers to each example the means that are compared are made of.
    """
    share = flip_share(sums, level)
    if not share.n or math.isnan(share.value):
        return NoiseFloor(share.n, math.nan, share, math.nan)
    within = max(0.0, sums.squares - sums.between) / (sums.n - sums.examples)
    if within < 1e-12:
        return NoiseFloor(share.n, share.value * share.n, share, math.nan)
    twin = PairedSums(share.n, 0.0, 2 * within / answers * share.n)
    interval = paired_difference(twin).interval(level)
    return NoiseFloor(share.n, share.value * share.n, share, (interval.high - interval.low) / 2)
