"""Drawing as SVG: scales with round ticks, marks that tell their values, and the frame that every plot has.

Colours are classes of the style sheet, so that a plot follows the light or dark theme and prints in ink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap

from context_bench.output.page.elements import Child, Markup, element, join
from context_bench.output.plots.labels import Lettering, Place

__all__ = [
    *("STYLES", "LETTERING", "Frame", "Scale", "draw_mark", "figure", "label", "line", "section", "svg", "table"),
    *("span_scores", "write_name", "x_axis"),
]

STYLES = 8
"""Colours and shapes that tell systems apart; they begin again after that many."""


@dataclass(frozen=True)
class Frame:
    """The width that a plot is drawn for, and how much of it is left of its names and right of its values.

    Attributes:
        width: All of it.
        names: Where a plot begins that has names at its left.
        values: Where it ends, if values stand at its right.
        points: Where a plot of points ends: their names need room.
        letters: How long a name may be.
    """

    width: int
    names: int
    values: int
    points: int
    letters: int


_WINDOW = Frame(760, 210, 650, 600, 26)
_PHONE = Frame(360, 146, 298, 345, 18)


@dataclass(frozen=True)
class Scale:
    """Turns values into places: linear, or by powers of ten."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (
            (math.log10(max(each, 1e-12)) for each in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        share = (at - low) / (high - low) if high > low else 0.5
        return round(self.start + min(1.0, max(0.0, share)) * (self.end - self.start), 1)

    def ticks(self, most: int = 6) -> list[float]:
        """Choose round values; powers of ten, with more where there is room, on a scale by powers."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            room = abs(self.end - self.start) / max(1e-9, math.log10(self.high / self.low))
            steps = (1, 2, 5) if room >= 150 else (1, 3) if room >= 100 else (1,)
            values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            shown = [value for value in values if self.low * 0.999 <= value <= self.high * 1.001]
            return shown or [float(f"{self.low:.1g}")]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(each * power for each in (1, 2, 2.5, 5, 10) if span / (each * power) <= most)
        first = math.ceil(self.low / step - 1e-9)
        return [round(number * step, 10) for number in range(first, int(self.high / step + 1e-9) + 1)]


def span_scores(values: Iterable[float], limits: Iterable[tuple[float, float] | None]) -> tuple[float, float]:
    """Give the ends of an axis of scores: 0 and 1, or beyond them as far as values and their intervals reach."""
    ends = [0.0, 1.0, *values, *(end for pair in limits if pair is not None for end in pair)]
    return min(ends), max(ends)


def svg(width: float, height: float, about: str, *children: Child) -> Markup:
    """Make a picture; `about` is read to those who do not see it, and a picture without it is mere decoration."""
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height}
    read = {"role": "img", "aria-label": about} if about else {"aria-hidden": "true"}
    return element("svg", {**size, **read}, *children)


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Markup:
    """Write a text in a picture."""
    return element("text", {"x": x, "y": y, "text-anchor": anchor, "class": kind or None}, text)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Draw a straight line."""
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind})


_SHAPES = (
    "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5Z",
    "M-4.5-4.5H4.5V4.5H-4.5Z",
    "M0-5.8L5.4 4.2H-5.4Z",
    "M0-6L6 0L0 6L-6 0Z",
    "M0 5.8L5.4-4.2H-5.4Z",
    "M-2-5.5H2V-2H5.5V2H2V5.5H-2V2H-5.5V-2H-2Z",
    "M-5.6-3L0-6L5.6-3V3L0 6L-5.6 3Z",
    "M-5.5-2.5H5.5V2.5H-5.5Z",
)


def draw_mark(x: float, y: float, number: int, tip: str) -> Markup:
    """Draw the mark of a system: its number chooses colour and shape; `tip` is shown when it is pointed at."""
    kind = number % STYLES
    attributes = {"d": _SHAPES[kind], "transform": f"translate({x:g} {y:g})", "class": f"mark s{kind}", "data-tip": tip}
    return element("path", attributes)


def x_axis(scale: Scale, y: float, top: float, show: Callable[[float], str], title: str) -> Markup:
    """Draw the axis beneath a plot, with faint lines up to `top`; its title says where it goes by powers of ten."""
    ticks = scale.ticks(max(2, int((scale.end - scale.start) / 70)))
    if len({show(tick) for tick in ticks}) < len(ticks):  # such as tokens below 1: whole numbers would all be alike
        show = "{:g}".format
    title = f"{title} (log\u00a0scale)" if scale.log else title
    marks = [
        join(line(scale(tick), top, scale(tick), y, "grid"), label(scale(tick), y + 16, show(tick), "middle", "tick"))
        for tick in ticks
    ]
    middle = (scale.start + scale.end) / 2
    titles = wrap(title, max(20, int(scale.end / 6.6)))
    names = [label(middle, y + 34 + 15 * place, text, "middle", "name") for place, text in enumerate(titles)]
    return join(*marks, line(scale.start, y, scale.end, y, "axis"), *names)


def write_name(place: Place, text: str) -> Markup:
    """Write the name of a point where `place_labels` put it."""
    anchors = {"left": "start", "right": "end", "center": "middle"}
    return label(round(place.x, 1), round(place.y + 4, 1), text, anchors[place.align], "point")


LETTERING = Lettering(line=14.0, measure=lambda text: 7.2 * len(text))
"""How large the names of points are; fonts differ, so somewhat larger than most."""


def table(
    head: Sequence[Child], lines: Sequence[Sequence[Child]], caption: str | None = None, kind: str | None = None
) -> Markup:
    """Lay out a table: the first column names the line, the others are right-aligned."""
    heads = [element("th", {"scope": "col"}, each) for each in head]
    body = [
        element("tr", None, element("th", {"scope": "row"}, cells[0]), *(_cell(each) for each in cells[1:]))
        for cells in lines
    ]
    whole = element(
        "table",
        {"class": kind},
        element("caption", None, caption) if caption else None,
        element("thead", None, element("tr", None, *heads)),
        element("tbody", None, *body),
    )
    return element(
        "div", {"class": "scroll", "tabindex": 0, "role": "group", "aria-label": f"Table: {caption or head[0]}"}, whole
    )


def _cell(child: Child) -> Markup:
    return element("td", None, child) if child not in (None, "") else element("td", {"class": "none"}, "–")


def figure(
    name: str, picture: Markup | Callable[[Frame], Markup], caption: Child, numbers: Markup | None = None
) -> Markup:
    """Put a picture over its caption, and its numbers as a table that can be opened.

    Args:
        name: What it is a plot of.
        picture: The picture, or what draws it for a width: then a window and a phone have one each.
        caption: What has to be known to read it.
        numbers: The same as a table.
    """
    if not isinstance(picture, Markup):
        kinds = (("window", _WINDOW), ("phone", _PHONE))
        picture = join(*(element("div", {"class": kind}, picture(frame)) for kind, frame in kinds))
    return element(
        "figure",
        None,
        element("div", {"class": "plot", "tabindex": 0, "role": "group", "aria-label": f"Plot: {name}"}, picture),
        element("figcaption", None, caption),
        element("details", None, element("summary", None, "The numbers"), numbers) if numbers else None,
    )


def section(name: str, title: str, *children: Child, of: str = "") -> Markup:
    """Make a part of the page with its heading; `of` names what it is about where several parts have that heading."""
    more = element("span", {"class": "sr"}, f" of {of}") if of else None
    return element(
        "section",
        {"id": name, "aria-labelledby": f"{name}-title"},
        element("h2", {"id": f"{name}-title"}, title, more),
        *children,
    )
