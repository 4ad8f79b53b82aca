"""The noise floor: what the same system differs from itself by, when it is run twice."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.stats.differences import PairedSums, paired_difference
from context_bench.stats.interval import Interval
from context_bench.stats.means import share_interval
from context_bench.stats.repeats import RepeatSums, flip_share

__all__ = ["NoiseFloor", "noise_of_repeats", "noise_of_twins"]


@dataclass(frozen=True)
class NoiseFloor:
    """How often two runs of one system disagree, and the difference in the mean that this alone explains.

    A difference between two systems within `floor` is what running one of them twice would give in 19 of 20 cases.
    """

    n: int
    flips: float
    share: Interval
    floor: float


def noise_of_twins(sums: PairedSums, level: float = 0.95) -> NoiseFloor:
    """Give the noise floor from the baseline run twice on the same examples."""
    interval = paired_difference(sums).interval(level)
    floor = (interval.high - interval.low) / 2
    return NoiseFloor(sums.n, sums.changed, share_interval(sums.changed, sums.n, level), floor)


def noise_of_repeats(sums: RepeatSums, level: float = 0.95) -> NoiseFloor:
    """Give the noise floor from examples that were answered several times."""
    share = flip_share(sums, level)
    if not share.n or math.isnan(share.value):
        return NoiseFloor(share.n, math.nan, share, math.nan)
    within = max(0.0, sums.squares - sums.between) / (sums.n - sums.examples)
    twin = PairedSums(share.n, 0.0, 2 * within * share.n)
    interval = paired_difference(twin).interval(level)
    return NoiseFloor(share.n, share.value * share.n, share, (interval.high - interval.low) / 2)
