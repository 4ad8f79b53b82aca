"""The terminal renderer: a plane of points and lines in Unicode, on a grid of characters.

No plotting library is used: drawing whiskers and names next to marks would take as many lines of code with a
library, and a terminal should need no extra.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from context_bench.output.layout import display_width, wrap
from context_bench.output.plots.chart import Chart, Key, Line, Plane, Point
from context_bench.output.plots.labels import LabelPlace, Lettering, label_systems, place_labels

_MIN_WIDTH, _AXIS, _ROWS = 40, 6, 17
"""The fewest columns of a plot, the columns of the axis at the left, and the rows of the plot."""
_DIM, _END = "\x1b[2m", "\x1b[0m"
_COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m")
_LOOKS = {"filled": "●", "hollow": "○", "control": "◇"}
_MARKS = "●■▲◆▼○□△"
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS = Lettering(line=1.0, gap=2.0, steps=(1.0, 2.0, 1.0, 3.0), measure=display_width)
_MAX_NAME = 24


def draw_text(chart: Chart, width: int, *, color: bool = False) -> str:
    """Draw a chart of points and lines in a terminal of `width` columns."""
    plane = chart.body
    if not isinstance(plane, Plane):
        raise TypeError(f"the chart {chart.name} is not drawn in a terminal")
    width = max(_MIN_WIDTH, width)
    canvas = _Canvas(plane, width - _AXIS)
    for line in plane.lines:
        canvas.draw_line(line)
    for point in plane.points:
        if point.limits is not None:
            low, high = point.limits
            canvas.draw_down(canvas.find_column(point.x), canvas.find_row(high), canvas.find_row(low), "│", _DIM)
    by_series = any(key.series is not None for key in plane.legend)
    key = canvas.write_labels(may_use_letters=not by_series)
    for point in plane.points:
        mark, colour = _choose_mark(point.series if by_series else None, point)
        canvas.put(canvas.find_column(point.x), canvas.find_row(point.y), mark, colour)
    legend = [f"{_choose_mark(each.series, each)[0]} {each.text}" for each in plane.legend]
    dashed = [f"┄ {line.label}" for line in plane.lines if line.label]
    at = sum(each.look != "control" for each in plane.legend)
    legend = [*legend[:at], "│ 95% interval", *legend[at:], *dashed]
    lines = [wrap(chart.title, width), plane.y.title, canvas.render(color=color)]
    lines += [_center(plane.x.full_title, canvas.width), "", *_pack(legend, width)]
    lines += _pack([f"{letter} {label}" for label, letter in key.items()], width) if key else []
    lines += [wrap(note, width) for note in chart.notes if note.startswith("Not measured")]
    return "\n".join(lines) + "\n"


def _choose_mark(series: int | None, drawn: Point | Key) -> tuple[str, str]:
    """Choose mark and colour by the series, else by the look; without a series, only filled marks have a colour."""
    if series is None:
        return _LOOKS[drawn.look], _COLOURS[0] if drawn.look == "filled" else ""
    return _MARKS[series % len(_MARKS)], _COLOURS[series % len(_COLOURS)]


@dataclass
class _Canvas:
    """A grid of characters between two axes; each may have a colour."""

    plane: Plane
    width: int
    height: int = _ROWS
    cells: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)

    def find_column(self, value: float) -> int:
        return round(self.plane.x.scale.find_share(value) * (self.width - 1))

    def find_row(self, value: float) -> int:
        return round((1 - self.plane.y.scale.find_share(value)) * (self.height - 1))

    def put(self, column: int, row: int, text: str, colour: str = "") -> None:
        """Write a text; a wide character takes two columns."""
        for char in text:
            if not 0 <= column < self.width or not 0 <= row < self.height:
                return
            self.cells[column, row] = (char, colour)
            if display_width(char) == 2:
                column += 1
                self.cells[column, row] = ("", "")
            column += 1

    def draw_down(self, column: int, start: int, end: int, char: str, colour: str) -> None:
        for row in range(min(start, end), max(start, end) + 1):
            self.put(column, row, char, colour)

    def draw_line(self, line: Line) -> None:
        """Draw a curve with dots, and a front or a baseline with dashes, in horizontal and vertical steps."""
        places = [(self.find_column(x), self.find_row(y)) for x, y in line.points]
        for (left, row), (right, end) in pairwise(places):
            if line.kind == "curve":
                self._draw_dots((left, row), (right, end), _COLOURS[line.series % len(_COLOURS)])
            elif left == right:
                self.draw_down(left, row, end, "┊", _COLOURS[0])
            else:
                char, colour = ("┈", _COLOURS[0]) if line.kind == "front" else ("┄", _DIM)
                for column in range(left, right + 1):
                    self.put(column, row, char, colour)

    def _draw_dots(self, one: tuple[int, int], two: tuple[int, int], colour: str) -> None:
        steps = max(abs(two[0] - one[0]), abs(two[1] - one[1]), 1)
        for step in range(1, steps):
            column, row = (a + step / steps * (b - a) for a, b in zip(one, two))
            self.put(math.floor(column + 0.5), math.floor(row + 0.5), "·", colour)

    def write_labels(self, *, may_use_letters: bool) -> dict[str, str]:
        """Write the name of each mark next to it, or letters if names would cover each other.

        Returns:
            The letter of each label, if letters were used.
        """
        points = self.plane.points
        labels = label_systems(dict.fromkeys(point.label for point in points), _MAX_NAME)
        texts = [labels[point.label] for point in points]
        marks = [(self.find_column(point.x), self.find_row(point.y)) for point in points]
        taken = [(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in self.cells]
        key: dict[str, str] = {}
        for shown in [texts, list(_ALPHABET[: len(texts)])] if may_use_letters and len(texts) <= 52 else [texts]:
            wanted = [(*mark, text) for mark, text in zip(marks, shown)]
            places = place_labels(wanted, self.width - 1, self.height - 1, taken, _LETTERS)
            cells = [cell for place, text in zip(places, shown) for cell in _list_cells(place, text)]
            key = dict(zip(texts, shown)) if shown is not texts else {}
            if len(set(cells) | set(marks)) == len(cells) + len(set(marks)):
                break
        for place, text, point in zip(places, shown, points):
            colour = _COLOURS[0] if may_use_letters and point.look == "filled" else ""
            self.put(round(place.x) - _find_shift(place, text), round(place.y), text, colour)
        return key

    def render(self, *, color: bool) -> str:
        """Return the lines, with the axis of scores at the left and the axis of costs below."""
        scores = {self.find_row(tick): text for tick, text in self.plane.y.write_ticks().items()}
        lines = [
            f"{scores.get(row, ''):>{_AXIS - 2}} {'┤' if row in scores else '│'}{self._render_row(row, color=color)}"
            for row in range(self.height)
        ]
        found = {self.find_column(tick): text for tick, text in self.plane.x.write_ticks().items()}
        ticks = _spread_ticks(found, self.width)
        rule = "".join("┬" if column in ticks else "─" for column in range(self.width))
        numbers = [" "] * self.width
        for column, text in ticks.items():
            start = min(max(0, column - len(text) // 2), self.width - len(text))
            numbers[start : start + len(text)] = text
        lines += [" " * (_AXIS - 1) + "└" + rule, " " * _AXIS + "".join(numbers)]
        return "\n".join(line.rstrip() for line in lines)

    def _render_row(self, row: int, *, color: bool) -> str:
        found = [self.cells.get((column, row), (" ", "")) for column in range(self.width)]
        last = max((column for column, (char, _) in enumerate(found) if char != " "), default=-1)
        return "".join(f"{paint}{char}{_END}" if color and paint else char for char, paint in found[: last + 1])


def _spread_ticks(ticks: Mapping[int, str], width: int) -> dict[int, str]:
    """Leave out ticks whose number would touch the previous one."""
    kept: dict[int, str] = {}
    end = -2
    for column, text in sorted(ticks.items()):
        start = min(max(0, column - len(text) // 2), width - len(text))
        if start > end + 1:
            kept[column], end = text, start + len(text)
    return kept


def _list_cells(place: LabelPlace, text: str) -> list[tuple[int, int]]:
    start = round(place.x) - _find_shift(place, text)
    return [(start + column, round(place.y)) for column in range(display_width(text))]


def _find_shift(place: LabelPlace, text: str) -> int:
    return {"left": 0, "right": display_width(text) - 1, "center": display_width(text) // 2}[place.align]


def _pack(items: Sequence[str], width: int) -> list[str]:
    """Put items side by side, on as many lines as needed."""
    lines = [items[0]]
    for item in items[1:]:
        together = f"{lines[-1]}   {item}"
        if display_width(together) <= width:
            lines[-1] = together
        else:
            lines.append(item)
    return lines


def _center(text: str, width: int) -> str:
    text = wrap(text, width + _AXIS)
    return " " * max(0, _AXIS + (width - display_width(text)) // 2) + text
