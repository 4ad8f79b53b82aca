"""Plots for a terminal: quality against cost, and the curves of sweeps, in Unicode on a grid of characters.

Drawn by hand: marks need their names beside them and whiskers through them, which takes as many lines on top of a
plotting library as without one, and whoever has a terminal should not need an extra.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from context_bench.errors import UsageError
from context_bench.numbers import dollars, tokens
from context_bench.output.layout import display_width, wrap
from context_bench.output.plots.labels import Lettering, Place, label_systems, place_labels, shorten_name
from context_bench.output.plots.pareto import title_pareto
from context_bench.output.plots.quality_cost import find_front, find_limits, read_quality_cost
from context_bench.output.plots.rate_distortion import keep_measured, make_token_scale, read_baselines, title_curves
from context_bench.output.plots.scales import Scale, make_cost_scale, make_score_scale
from context_bench.results import EvalResult

__all__ = ["draw_curve_text", "draw_pareto_text"]

_NARROWEST, _AXIS, _ROWS = 40, 6, 17
"""The fewest columns of a plot, the columns of the axis at the left, and the rows of the plot."""
_BLUE, _DIM = "\x1b[36m", "\x1b[2m"
_COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m")
_END = "\x1b[0m"
_MARKS = "●■▲◆▼○□△"
_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LETTERS = Lettering(line=1.0, gap=2.0, steps=(1.0, 2.0, 1.0, 3.0), measure=display_width)


@dataclass
class _Canvas:
    """A grid of characters with axes; each may have a colour."""

    xs: Scale
    ys: Scale
    width: int
    height: int = _ROWS
    cells: dict[tuple[int, int], tuple[str, str]] = field(default_factory=dict)

    def find_column(self, value: float) -> int:
        return round(min(1.0, max(0.0, self.xs.find_share(value))) * (self.width - 1))

    def find_row(self, value: float) -> int:
        return round((1 - min(1.0, max(0.0, self.ys.find_share(value)))) * (self.height - 1))

    def put(self, column: int, row: int, text: str, colour: str = "") -> None:
        """Write a text; a wide character takes the next column too."""
        for char in text:
            if not 0 <= column < self.width or not 0 <= row < self.height:
                return
            self.cells[column, row] = (char, colour)
            if display_width(char) == 2:
                column += 1
                self.cells[column, row] = ("", "")
            column += 1

    def put_label(self, place: Place, text: str, colour: str = "") -> None:
        """Write a label at its place."""
        self.put(round(place.x) - _find_shift(place, text), round(place.y), text, colour)

    def draw_down(self, column: int, rows: tuple[int, int], char: str, colour: str = "") -> None:
        for row in range(min(rows), max(rows) + 1):
            self.put(column, row, char, colour)

    def draw_across(self, columns: tuple[int, int], row: int, char: str, colour: str = "") -> None:
        for column in range(min(columns), max(columns) + 1):
            self.put(column, row, char, colour)

    def render(self, unit: str, *, color: bool) -> str:
        """Give the lines: the axis of scores at the left, that of costs beneath."""
        scores = {self.find_row(tick): f"{tick:g}" for tick in self.ys.list_ticks()}
        lines = [
            f"{scores.get(row, ''):>{_AXIS - 2}} {'┤' if row in scores else '│'}{self._render_row(row, color=color)}"
            for row in range(self.height)
        ]
        ticks = _spread_ticks({self.find_column(tick): _write(tick, unit) for tick in self.xs.list_ticks()}, self.width)
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


def _write(value: float, unit: str) -> str:
    return dollars(value) if unit == "usd" else tokens(value) if value >= 10 else f"{value:.3g}"


def _spread_ticks(ticks: dict[int, str], width: int) -> dict[int, str]:
    """Leave out ticks whose number would touch the one before."""
    kept: dict[int, str] = {}
    end = -2
    for column, text in sorted(ticks.items()):
        start = min(max(0, column - len(text) // 2), width - len(text))
        if start > end + 1:
            kept[column], end = text, start + len(text)
    return kept


def _measure(width: int) -> int:
    return max(_NARROWEST, width) - _AXIS


def draw_pareto_text(result: EvalResult, width: int, *, color: bool = False) -> str:
    """Draw quality against cost, in so many columns.

    Raises:
        UsageError: No system has both.
    """
    data = read_quality_cost(result)
    if data is None:
        raise UsageError("there is no Pareto plot of this run: no system has both a score and a cost")
    canvas = _Canvas(
        make_cost_scale([cost for cost, _ in data.points.values()], wide=data.is_wide),
        make_score_scale(quality for _, quality in data.points.values()),
        _measure(width),
    )
    labels = label_systems(data.points, 24)
    places = {name: (canvas.find_column(cost), canvas.find_row(score)) for name, (cost, score) in data.points.items()}
    _draw_front(canvas, [places[name] for name in find_front({name: data.points[name] for name in data.front})])
    for name, (column, _) in places.items():
        limits = find_limits(result.intervals.get(name, {}).get(data.key))
        if limits is not None:
            canvas.draw_down(column, (canvas.find_row(limits[0]), canvas.find_row(limits[1])), "│", _DIM)
    shown, key = _write_names(canvas, places, labels)
    for name, place in shown.items():
        canvas.put_label(place, key.get(name, labels[name]), _BLUE if name in data.front else "")
    for name, (column, row) in places.items():
        mark = "◇" if name in data.controls else "●" if name in data.front else "○"
        canvas.put(column, row, mark, _BLUE if name in data.front else "")
    legend = ["● on the Pareto front", "○ off it", "│ 95% interval", *(["◇ control"] if data.controls else [])]
    lines = [wrap(title_pareto(data, labels), max(_NARROWEST, width)), data.key.replace("_", " ")]
    lines += [
        canvas.render(data.cost.unit, color=color),
        _center(canvas.xs.name_axis(data.cost.title), canvas.width),
        "",
    ]
    lines += _pack(legend, max(_NARROWEST, width))
    if key:
        lines += _pack([f"{letter} {labels[name]}" for name, letter in key.items()], max(_NARROWEST, width))
    if data.missing:
        lines.append(wrap(f"not measured, so not drawn: {', '.join(label_systems(data.missing).values())}", width))
    return "\n".join(lines) + "\n"


def _write_names(
    canvas: _Canvas, places: dict[str, tuple[int, int]], labels: dict[str, str]
) -> tuple[dict[str, Place], dict[str, str]]:
    """Place the names of the marks; where they would cover each other, letters that a key explains."""
    taken = [(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in canvas.cells]
    for letters in ({}, dict(zip(labels, _ALPHABET))):
        texts = {**labels, **letters}
        points = [(*places[name], texts[name]) for name in labels]
        found = dict(zip(labels, place_labels(points, canvas.width - 1, canvas.height - 1, taken, _LETTERS)))
        cells = [cell for name, place in found.items() for cell in _list_cells(place, texts[name])]
        if len(set(cells) | set(places.values())) == len(cells) + len(set(places.values())):
            break
    return found, letters


def _list_cells(place: Place, text: str) -> list[tuple[int, int]]:
    start = round(place.x) - _find_shift(place, text)
    return [(start + column, round(place.y)) for column in range(display_width(text))]


def _find_shift(place: Place, text: str) -> int:
    return {"left": 0, "right": display_width(text) - 1, "center": display_width(text) // 2}[place.align]


def _draw_front(canvas: _Canvas, corners: Sequence[tuple[int, int]]) -> None:
    """Draw the front as steps, from the axis beneath the cheapest to the right edge."""
    if not corners:
        return
    canvas.draw_down(corners[0][0], (corners[0][1], canvas.height - 1), "┊", _BLUE)
    for (left, row), (right, higher) in pairwise(corners):
        canvas.draw_across((left, right), row, "┈", _BLUE)
        canvas.draw_down(right, (row, higher), "┊", _BLUE)
    canvas.draw_across((corners[-1][0], canvas.width - 1), corners[-1][1], "┈", _BLUE)


def _pack(items: Sequence[str], width: int) -> list[str]:
    """Put items side by side, on as many lines as it takes."""
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


def draw_curve_text(result: EvalResult, width: int, *, color: bool = False) -> str:
    """Draw the curves of a run's sweeps, in so many columns.

    Raises:
        UsageError: The run has no sweep, or tokens were not measured.
    """
    curves = keep_measured(result.curves())
    if not curves:
        raise UsageError(
            "there is no curve of this run: no system was run with several settings of a knob "
            "(such as bm25:ratio=0.1|0.3), or tokens that reached the model were not measured"
        )
    labels = label_systems((curve.name for curve in curves), 24)
    scores = [point.quality.value for curve in curves for point in curve.points]
    canvas = _Canvas(make_token_scale(curves), make_score_scale(scores), _measure(width))
    baselines = read_baselines(result, curves)
    for score in baselines.values():
        canvas.draw_across((0, canvas.width - 1), canvas.find_row(score), "┄", _DIM)
    points: list[tuple[float, float, str]] = []
    marks: list[tuple[int, int, str, str]] = []
    for number, curve in enumerate(curves):
        colour, mark = _COLOURS[number % len(_COLOURS)], _MARKS[number % len(_MARKS)]
        places = [(canvas.find_column(point.tokens), canvas.find_row(point.quality.value)) for point in curve.points]
        for before, after in pairwise(places):
            _draw_line(canvas, before, after, colour)
        for point, (column, row) in zip(curve.points, places):
            limits = find_limits(point.quality)
            if limits is not None:
                canvas.draw_down(column, (canvas.find_row(limits[0]), canvas.find_row(limits[1])), "│", _DIM)
            points.append((column, row, shorten_name(point.setting, 12)))
            marks.append((column, row, mark, colour))
    taken = [(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in canvas.cells]
    for place, (_, _, text) in zip(place_labels(points, canvas.width - 1, canvas.height - 1, taken, _LETTERS), points):
        canvas.put_label(place, text)
    for column, row, mark, colour in marks:
        canvas.put(column, row, mark, colour)
    legend = [
        f"{_MARKS[number % len(_MARKS)]} {labels[curve.name]} ({curve.knob})" for number, curve in enumerate(curves)
    ]
    legend += ["│ 95% interval", *(f"┄ {shorten_name(name)} (baseline)" for name in baselines)]
    lines = [wrap(title_curves(curves, labels), max(_NARROWEST, width)), curves[0].metric.replace("_", " ")]
    lines += [canvas.render("tokens", color=color)]
    lines += [_center(canvas.xs.name_axis(curves[0].tokens_title), canvas.width), ""]
    return "\n".join([*lines, *_pack(legend, max(_NARROWEST, width))]) + "\n"


def _draw_line(canvas: _Canvas, one: tuple[int, int], two: tuple[int, int], colour: str) -> None:
    """Draw a dotted line between two marks."""
    steps = max(abs(two[0] - one[0]), abs(two[1] - one[1]), 1)
    for step in range(1, steps):
        share = step / steps
        column, row = one[0] + share * (two[0] - one[0]), one[1] + share * (two[1] - one[1])
        canvas.put(math.floor(column + 0.5), math.floor(row + 0.5), "·", colour)
