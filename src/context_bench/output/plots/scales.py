"""Scales and colours that all plots share: domains, round ticks, and where a value stands in pixels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BLUE", "FORMATS", "GREY", "ORANGE", "PALETTE", "Scale", "make_cost_scale", "make_score_scale"]

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6b6b6b"
PALETTE = (BLUE, ORANGE, "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", GREY)
"""Colours that colour-blind readers can tell apart (Okabe and Ito)."""
FORMATS = {"usd": "$,.3~r", "tokens": ",.3~r"}
"""How a number of a unit is written on an axis."""


@dataclass(frozen=True)
class Scale:
    """The range of an axis: linear, or by powers of ten."""

    low: float
    high: float
    log: bool = False

    def find_share(self, value: float) -> float:
        """Return where a value stands, from 0 at the low end to 1 at the high end."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = (math.log10(max(each, 1e-12)) for each in (low, high, value))
        return (value - low) / (high - low)

    def list_ticks(self) -> list[float]:
        """List round values for the axis."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 4 else (1,)
            values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        else:
            span = self.high - self.low
            power = 10.0 ** math.floor(math.log10(span / 6))
            step = next(each * power for each in (1, 2, 5, 10) if span / (each * power) <= 6)
            values = [
                round(number * step, 10) for number in range(math.ceil(self.low / step), int(self.high / step) + 1)
            ]
        return [value for value in values if self.low <= value <= self.high]

    def name_axis(self, title: str) -> str:
        """Name the axis, and say where it goes by powers of ten."""
        return f"{title} (log scale)" if self.log else title

    def to_spec(self) -> dict[str, Any]:
        """Give it as Vega-Lite writes it."""
        return {"type": "log" if self.log else "linear", "domain": [self.low, self.high], "nice": False, "zero": False}


def make_cost_scale(costs: Sequence[float], *, wide: bool) -> Scale:
    """Make the scale of costs: from 0, or by powers of ten where they differ much."""
    return Scale(min(costs) / 1.6, max(costs) * 1.6, log=True) if wide else Scale(0.0, max(costs) * 1.1)


def make_score_scale(scores: Iterable[float]) -> Scale:
    """Make the scale of scores: all of 0 to 1, and more where there is more, with a little room."""
    values = list(scores)
    low, high = min([0.0, *values]), max([1.0, *values])
    return Scale(low - 0.03 * (high - low), high + 0.08 * (high - low))
