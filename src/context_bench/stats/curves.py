"""Quality against tokens: the settings of one knob as a curve, its area, and the largest saving that is not worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from context_bench.stats.differences import Difference

__all__ = ["Setting", "area_weights", "find_common_range", "find_largest_saving"]


def find_common_range(curves: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """Return the range of tokens that every curve covers; None if there is none."""
    low, high = max(min(tokens) for tokens in curves), min(max(tokens) for tokens in curves)
    return (low, high) if low < high else None


def area_weights(tokens: Sequence[float], low: float, high: float) -> list[float]:
    """Return the weight of each setting in the mean height of their line between two numbers of tokens."""
    weights = [0.0] * len(tokens)
    order = sorted(range(len(tokens)), key=lambda place: tokens[place])
    for one, two in pairwise(order):
        left, right = max(low, tokens[one]), min(high, tokens[two])
        if left < right:
            middle = ((left + right) / 2 - tokens[one]) / (tokens[two] - tokens[one])
            weights[one] += (right - left) * (1 - middle)
            weights[two] += (right - left) * middle
    return [weight / (high - low) for weight in weights]


@dataclass(frozen=True)
class Setting:
    """One setting of a knob: its share of tokens saved, and its difference in quality from the baseline."""

    name: str
    saving: float
    difference: Difference


def find_largest_saving(settings: Sequence[Setting], margin: float, *, alpha: float = 0.05) -> Setting | None:
    """Find the setting that saves most and is not worse than the baseline by the margin; None if there is none.

    Settings are tried from the smallest saving up, and the first that fails ends the search, so the level holds for all
    settings together without a correction.
    """
    best = None
    for setting in sorted(settings, key=lambda each: each.saving):
        if not setting.difference.known or setting.difference.limits(alpha)[0] <= -margin:
            break
        best = setting
    return best
