"""The chart model: one chart as plain data, which the SVG and the terminal renderer read.

A chart holds the drawn data and all texts, independent of pixels. Each plot of a result fills one chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Limits = tuple[float, float] | None  # the ends of an interval; None if unknown

Look = Literal["filled", "hollow", "control"]
"""How a mark is drawn: its series determines colour and shape; a control is grey."""


@dataclass(frozen=True)
class Scale:
    """The range of an axis: linear, or by powers of ten."""

    low: float
    high: float
    log: bool = False

    def find_share(self, value: float) -> float:
        """Return the position of a value, from 0 at the low end to 1 at the high end; values beyond are clamped."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = (math.log10(max(each, 1e-12)) for each in (low, high, value))
        return min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 0.5

    def list_ticks(self, most: int | None = None) -> list[float]:
        """List round values for the axis, in at most this many steps (default 6, or 15 on a log scale)."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            ways = [(1, 2, 5), (1,)] if last - first <= 4 else [(1,)]
            for steps in ways:
                values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
                values = [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]
                if len(values) <= (most or 15):
                    break
            return values[:: math.ceil(len(values) / (most or 15)) or 1] or [float(f"{self.low:.1g}")]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        most = most or 6
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(each * power for each in (1, 2, 5, 10) if span / (each * power) <= most)
        first, last = math.ceil(self.low / step - 1e-9), int(self.high / step + 1e-9)
        return [round(number * step, 10) for number in range(first, last + 1)]


def make_cost_scale(costs: Sequence[float], *, wide: bool) -> Scale:
    """Make the scale of costs: from 0, or logarithmic if the costs differ much."""
    return Scale(min(costs) / 1.6, max(costs) * 1.6, log=True) if wide else Scale(0.0, max(costs) * 1.1)


def make_score_scale(scores: Iterable[float], limits: Iterable[Limits] = ()) -> Scale:
    """Make the scale of scores: from 0 to 1, extended to all scores and intervals, with a small margin."""
    ends = [0.0, 1.0, *scores, *(end for pair in limits if pair is not None for end in pair)]
    low, high = min(ends), max(ends)
    return Scale(low - 0.03 * (high - low), high + 0.08 * (high - low))


@dataclass(frozen=True)
class Axis:
    """An axis: its title, its scale, and how its ticks are written."""

    title: str
    scale: Scale
    show: Callable[[float], str] = "{:g}".format

    @property
    def full_title(self) -> str:
        """The title, with a remark if the scale is logarithmic."""
        return f"{self.title} (log scale)" if self.scale.log else self.title

    def write_ticks(self, most: int | None = None) -> dict[float, str]:
        """Write the ticks, with more digits if two would look equal (tokens below 1)."""
        texts = {tick: self.show(tick) for tick in self.scale.list_ticks(most)}
        return texts if len(set(texts.values())) == len(texts) else {tick: f"{tick:g}" for tick in texts}


@dataclass(frozen=True)
class Point:
    """A mark on a plane."""

    x: float  # horizontal position
    y: float  # vertical position
    label: str  # text next to it
    tip: str  # tooltip
    series: int  # the number that chooses its colour and shape
    look: Look = "filled"  # how it is drawn
    limits: Limits = None  # the ends of its vertical interval
    name: str = ""  # the name of its series, written before the label if there is room


@dataclass(frozen=True)
class Line:
    """A line through points of a plane: the curve of a series, or a dashed front or baseline."""

    kind: Literal["curve", "front", "baseline"]
    points: Sequence[tuple[float, float]]
    series: int = 0
    label: str = ""


@dataclass(frozen=True)
class Key:
    """An entry of the legend: the meaning of a look, or a series."""

    text: str
    look: Look = "filled"
    series: int | None = None


@dataclass(frozen=True)
class Plane:
    """Points and lines between two axes."""

    x: Axis
    y: Axis
    points: Sequence[Point]
    lines: Sequence[Line]
    legend: Sequence[Key]


@dataclass(frozen=True)
class Dot:
    """A value with its interval."""

    value: float
    limits: Limits = None


@dataclass(frozen=True)
class Bar:
    """A bar from 0; without a value, the row explains why."""

    value: float | None


@dataclass(frozen=True)
class Histogram:
    """Counts in equal bins over the whole axis, with lines at the median and at p95."""

    bins: Sequence[int]
    median: float
    p95: float


@dataclass(frozen=True)
class Row:
    """A line of a chart: a name at the left, a mark, and its value at the right."""

    name: str
    mark: Dot | Bar | Histogram
    value: str
    tip: str
    series: int


@dataclass(frozen=True)
class Group:
    """Rows beneath a title; a dashed line runs through them at the value of the baseline."""

    title: str
    rows: Sequence[Row]
    baseline: float | None = None


@dataclass(frozen=True)
class Rows:
    """Groups of rows over one axis."""

    axis: Axis
    groups: Sequence[Group]


@dataclass(frozen=True)
class Cell:
    """A cell of a grid; its shade is a class of the style sheet: q0 to q9, up1 to up4, down1 to down4, even, none."""

    text: str
    shade: str
    tip: str
    more: Sequence[str] = ()


@dataclass(frozen=True)
class Grid:
    """Cells in rows and columns below a title; `about` names it for screen readers."""

    title: str
    about: str
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Grids:
    """Lines of grids with cells of one size, in pixels."""

    lines: Sequence[Sequence[Grid]]
    side: int
    height: int


Body = Plane | Rows | Grids


@dataclass(frozen=True)
class Chart:
    """A chart with its texts."""

    name: str  # its name in file names, such as `pareto`
    subject: str  # its subject, for screen readers
    title: str  # a sentence with the main observation
    notes: Sequence[str]  # sentences that explain how to read it
    body: Body  # the drawn data
    head: Sequence[str]  # the titles of the same numbers as a table
    lines: Sequence[Sequence[str]]  # the lines of that table


Drawn = Chart | str  # a chart, or the reason why there is none
