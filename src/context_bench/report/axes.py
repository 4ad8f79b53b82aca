"""Drawing as SVG: scales with round ticks, marks that tell their values, and the frame that every plot has.

Colours are classes of the style sheet, so that a plot follows the light or dark theme and prints in ink.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from context_bench.report.elements import Child, Markup, clean_text, element, join

__all__ = ["Scale", "clip_name", "draw_mark", "figure", "label", "line", "section", "svg", "table", "x_axis"]

STYLES = 8
"""Colours and shapes that tell systems apart; they begin again after that many."""


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
        """Choose round values; powers of ten, with 2 and 5 where few, on a scale by powers."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 2, 5) if last - first <= 2 else (1,)
            values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
            return [value for value in values if self.low * 0.999 <= value <= self.high * 1.001] or [self.low]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(span / most))
        step = next(each * power for each in (1, 2, 2.5, 5, 10) if span / (each * power) <= most)
        first = math.ceil(self.low / step - 1e-9)
        return [round(number * step, 10) for number in range(first, int(self.high / step + 1e-9) + 1)]


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
    """Draw the axis beneath a plot, with faint lines up to `top`."""
    ticks = scale.ticks()
    marks = [
        join(line(scale(tick), top, scale(tick), y, "grid"), label(scale(tick), y + 16, show(tick), "middle", "tick"))
        for tick in ticks
    ]
    middle = (scale.start + scale.end) / 2
    return join(*marks, line(scale.start, y, scale.end, y, "axis"), label(middle, y + 34, title, "middle", "name"))


def clip_name(name: str, length: int = 26) -> str:
    """Shorten a name for a picture; the mark tells all of it."""
    name = " ".join(clean_text(name).split())
    return name if len(name) <= length else name[: length - 1] + "…"


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


def figure(name: str, picture: Markup, caption: Child, numbers: Markup | None = None) -> Markup:
    """Put a picture over its caption, and its numbers as a table that can be opened."""
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
