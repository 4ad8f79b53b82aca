"""The SVG renderer: charts for the page, for files and for notebooks.

Colours are classes of `assets/chart.css`. On the page they follow the light or dark theme, and print in ink; a file
contains a style sheet with the light colours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from textwrap import wrap

from context_bench.output.elements import Child, Markup, element, join
from context_bench.output.plots.chart import (
    Axis,
    Bar,
    Cell,
    Chart,
    Dot,
    Grid,
    Grids,
    Histogram,
    Line,
    Look,
    Plane,
    Row,
    Rows,
    Scale,
)
from context_bench.output.plots.labels import (
    STYLES,
    Box,
    Lettering,
    cover_line,
    label_systems,
    place_labels,
    shorten_name,
)

_LETTERING = Lettering(line=14.0, reach=5)
_LEADER = 24  # a label farther from its point than this gets a connecting line


@dataclass(frozen=True)
class Frame:
    """The width of a chart and its divisions."""

    width: int  # all of it
    names: int  # start of the rows, right of their names
    values: int  # end of the rows, left of their values
    points: int  # end of a plane; labels of its points may extend beyond
    letters: int  # most characters of a name
    is_file: bool = False  # whether it is a standalone picture, without scripts for tooltips

    def tip(self, tag: str, attributes: dict[str, object], tip: str, *children: Child) -> Markup:
        """Make an element with a tooltip."""
        if self.is_file:
            return element(tag, attributes, element("title", None, tip), *children)
        return element(tag, {**attributes, "data-tip": tip}, *children)


_WINDOW = Frame(960, 230, 850, 850, 30)
_PHONE = Frame(360, 146, 298, 345, 18)
_FILE = Frame(760, 210, 650, 620, 30, is_file=True)


def draw_figure(chart: Chart) -> Markup:
    """Draw a chart for the page: grids flow; all others get a drawing for windows and one for phones."""
    if isinstance(chart.body, Grids):
        return element("div", {"class": "grids"}, *(_draw_line_of_grids(line, chart.body) for line in chart.body.lines))
    about = f"{chart.title}; the table below has the numbers."
    drawings = []
    for kind, frame in (("window", _WINDOW), ("phone", _PHONE)):
        height, drawn = _draw_body(chart.body, frame)
        drawings.append(element("div", {"class": kind}, _make_svg(frame.width, height, about, drawn)))
    return join(*drawings)


def _draw_line_of_grids(line: Sequence[Grid], grids: Grids) -> Markup:
    drawings = []
    for grid in line:
        width, height, drawn = _draw_grid(grid, grids, _WINDOW)
        drawings.append(_make_svg(width, height, grid.about, drawn))
    alone = " alone" if len(line) == 1 and len(grids.lines) > 1 else ""  # so that the pairs below line up
    return element("div", {"class": f"pair{alone}"}, *drawings)


_MARGIN = 16


def draw_file(chart: Chart) -> str:
    """Draw a chart as a standalone picture, with its title and notes above."""
    if isinstance(chart.body, Grids):
        width, height, drawn = _flow_grids(chart.body)
    else:
        width, (height, drawn) = float(_FILE.width), _draw_body(chart.body, _FILE)
    y, texts = 0, []
    for kind, step, letter, text in (("title", 20, 8.3, chart.title), ("note", 16, 6.4, " ".join(chart.notes))):
        for line in wrap(text, int(width / letter)):
            y += step
            texts.append(_write(8, y, line, kind=kind))
    picture = element("g", {"transform": f"translate({_MARGIN} {_MARGIN})"}, *texts, _move(0, y + _MARGIN, drawn))
    ground = element("rect", {"width": "100%", "height": "100%", "class": "ground"})
    style = element("style", None, Markup(_light_style()))
    total = y + height + 3 * _MARGIN
    return _make_svg(width + 2 * _MARGIN, total, chart.title, style, ground, picture, is_file=True) + "\n"


def read_style() -> str:
    """Read the style sheet of charts."""
    return files("context_bench.output.plots").joinpath("assets/chart.css").read_text(encoding="utf-8").strip()


@cache
def _light_style() -> str:
    """Write the style sheet with the light colours instead of variables, which some programs do not support."""
    style = re.sub(r"light-dark\(([^,]+), [^)]+\)", r"\1", read_style())
    colours = {**dict(re.findall(r"(--[\w-]+): ([^;]+);", style)), "--ground": "#ffffff"}
    style = re.sub(r":root \{[^}]*\}\s*", "", style)
    return re.sub(r"var\((--[\w-]+)\)", lambda found: colours[found[1]], style)


def _make_svg(width: float, height: float, about: str, *children: Child, is_file: bool = False) -> Markup:
    """Make a drawing; `about` is for screen readers, and a drawing without it is decorative."""
    size = {"viewBox": f"0 0 {width:g} {height:g}", "width": width, "height": height, "class": "chart"}
    read = {"role": "img", "aria-label": about} if about else {"aria-hidden": "true"}
    return element("svg", {**({"xmlns": "http://www.w3.org/2000/svg"} if is_file else {}), **size, **read}, *children)


def _write(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Markup:
    place = {"x": round(x, 1), "y": round(y, 1), "text-anchor": anchor}
    return element("text", {**place, "class": kind or None}, text)


def _draw_straight(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    ends = {name: round(value, 1) for name, value in zip(("x1", "y1", "x2", "y2"), (x1, y1, x2, y2))}
    return element("line", {**ends, "class": kind})


def _draw_path(places: Sequence[tuple[float, float]], kind: str) -> Markup:
    return element("path", {"d": "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places), "class": kind})


def _move(x: float, y: float, drawn: Markup) -> Markup:
    return element("g", {"transform": f"translate({x:g} {y:g})"}, drawn)


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


def _name_mark(series: int | None, look: Look = "filled") -> str:
    colour = "" if series is None else f" s{series % STYLES}"
    return f"mark{colour}{'' if look == 'filled' else f' {look}'}"


def _describe_mark(x: float, y: float, series: int | None, look: Look = "filled") -> dict[str, object]:
    shape = _SHAPES[0 if series is None else series // STYLES % STYLES]
    return {"d": shape, "transform": f"translate({x:.1f} {y:.1f})", "class": _name_mark(series, look)}


def draw_symbol(series: int) -> Markup:
    """Draw only the mark of a series, to show next to its name."""
    return _make_svg(16, 16, "", element("path", _describe_mark(8, 8, series)))


Placer = Callable[[float], float]


def _place_on(scale: Scale, start: float, end: float) -> Placer:
    return lambda value: round(start + scale.find_share(value) * (end - start), 1)


def _draw_axis(axis: Axis, start: float, end: float, y: float, top: float) -> tuple[float, Markup]:
    """Draw the axis below a chart, with faint lines up to `top`; return its lower end."""
    at = _place_on(axis.scale, start, end)
    ticks = axis.write_ticks(max(2, int((end - start) / (50 if axis.scale.log else 60))))
    marks = [
        join(_draw_straight(at(tick), top, at(tick), y, "grid"), _write(at(tick), y + 16, text, "middle", "tick"))
        for tick, text in ticks.items()
    ]
    titles = wrap(axis.full_title, max(20, int(end / 6.6)))
    names = [_write((start + end) / 2, y + 34 + 15 * row, text, "middle", "name") for row, text in enumerate(titles)]
    return y + 26 + 15 * len(titles), join(*marks, _draw_straight(start, y, end, y, "axis"), *names)


def _draw_body(body: Plane | Rows, frame: Frame) -> tuple[float, Markup]:
    """Draw points and lines, or rows; also return the height."""
    return _draw_plane(body, frame) if isinstance(body, Plane) else _draw_rows(body, frame)


# --- points and lines

_LEFT, _TOP, _BOTTOM = 40, 30, 346


def _draw_plane(plane: Plane, frame: Frame) -> tuple[float, Markup]:
    x = _place_on(plane.x.scale, _LEFT, frame.points)
    y = _place_on(plane.y.scale, _BOTTOM, _TOP)
    children: list[Child] = [
        join(
            _draw_straight(_LEFT, y(tick), frame.points, y(tick), "grid"),
            _write(_LEFT - 8, y(tick) + 4, text, "end", "tick"),
        )
        for tick, text in plane.y.write_ticks().items()
    ]
    down, axis = _draw_axis(plane.x, _LEFT, frame.points, _BOTTOM, _TOP)
    children += [axis, _write(8, 14, plane.y.title, kind="name")]
    taken: list[Box] = []
    for line in plane.lines:
        places = [(x(across), y(up)) for across, up in line.points]
        kind = f"curve s{line.series % STYLES}" if line.kind == "curve" else "dashed"
        children.append(_draw_path(places, kind))
        taken += _cover(line, places)
        if line.label:
            label = shorten_name(line.label, frame.letters + 4)
            right, height = places[-1]
            children.append(_write(right, height - 6, label, "end", "point"))
            taken.append((right - _LETTERING.measure(label), height - 18, right, height))
    for point in plane.points:
        if point.limits is not None:
            across, low, high = x(point.x), *map(y, point.limits)
            children.append(_draw_straight(across, high, across, low, "whisker"))
            taken.append((across - 4, high, across + 4, low))
    texts = [f"{point.name} {point.label}".strip() for point in plane.points]
    short = label_systems(dict.fromkeys(texts), frame.letters)
    wanted = [(x(point.x), y(point.y), short[text]) for point, text in zip(plane.points, texts)]
    taken += [(0, 0, _LEFT, _BOTTOM), (0, 0, frame.width, 18)]  # the axis, and its title
    places_of_labels = place_labels(wanted, frame.width, _BOTTOM, taken, _LETTERING)
    children += [
        _draw_straight(across, up, place.x, place.y + (5 if place.y < up else -5), "whisker leader")
        for place, (across, up, _) in zip(places_of_labels, wanted)
        if abs(place.y - up) > _LEADER
    ]
    anchors = {"left": "start", "right": "end", "center": "middle"}
    children += [
        _write(place.x, place.y + 4, text, anchors[place.align], "point")
        for place, (_, _, text) in zip(places_of_labels, wanted)
    ]
    children += [
        frame.tip("path", _describe_mark(x(point.x), y(point.y), point.series, point.look), point.tip)
        for point in plane.points
    ]
    down, legend = _draw_legend(plane, frame, down)
    return down, join(*children, legend)


def _cover(line: Line, places: Sequence[tuple[float, float]]) -> list[Box]:
    """Cover a line with boxes that labels avoid."""
    if line.kind == "curve":
        return cover_line(places)
    return [
        (min(x1, x2) - 2, min(y1, y2) - 2, max(x1, x2) + 2, max(y1, y2) + 2) for (x1, y1), (x2, y2) in pairwise(places)
    ]


def _draw_legend(plane: Plane, frame: Frame, y: float) -> tuple[float, Markup]:
    """Draw the keys side by side, on as many lines as needed."""
    children, x = [], float(_LEFT)
    for key in plane.legend:
        text = shorten_name(key.text, 2 * frame.letters)
        long = 24 + 6.6 * len(text)
        if x > _LEFT and x + long > frame.width:
            x, y = float(_LEFT), y + 18
        children.append(element("path", _describe_mark(x + 6, y + 10, key.series, key.look)))
        children.append(_write(x + 17, y + 14, text, kind="tick"))
        x += long + 8
    return y + 24, join(*children)


# --- rows

_HEIGHTS = {Dot: 20, Bar: 18, Histogram: 44}
_GROUP = 28


def _draw_rows(rows: Rows, frame: Frame) -> tuple[float, Markup]:
    """Draw rows below the titles of their groups, and the axis at the bottom."""
    start, end = frame.names, frame.values
    at = _place_on(rows.axis.scale, start, end)
    children: list[Child] = []
    y = 8.0
    for group in rows.groups:
        if group.title:
            y += _GROUP
            children.append(_write(8, y - 8, shorten_name(group.title, 2 * frame.letters), kind="group"))
        top = y
        for row in group.rows:
            height = _HEIGHTS[type(row.mark)]
            middle = y + height - 14 if isinstance(row.mark, Histogram) else y + height / 2
            value = _draw_row(row, at, middle, frame)
            y += height
            children.append(_write(start - 12, middle + 4, shorten_name(row.name, frame.letters), "end"))
            children.append(value)
        if group.baseline is not None:
            children.append(_draw_straight(at(group.baseline), top, at(group.baseline), y, "base"))
    down, axis = _draw_axis(rows.axis, start, end, y + 4, 8)
    return down + 4, join(axis, *children)


def _draw_row(row: Row, at: Placer, middle: float, frame: Frame) -> Markup:
    """Draw the mark of a row, and its value."""
    mark, value = row.mark, _write(frame.values + 14, middle + 4, row.value, kind="value")
    if isinstance(mark, Dot):
        dot = frame.tip("path", _describe_mark(at(mark.value), middle, row.series), row.tip)
        low, high = mark.limits or (mark.value, mark.value)
        whisker = _draw_straight(at(low), middle, at(high), middle, "whisker") if mark.limits else None
        return join(whisker, dot, value)
    if isinstance(mark, Bar):
        if mark.value is None:
            return _write(at(0) + 6, middle + 4, row.value, kind="absent")
        left, right = sorted((at(0), at(mark.value)))
        box = {"x": left, "y": middle - 6, "width": round(max(1.0, right - left), 1), "height": 12}
        kind = {"class": _name_mark(row.series)}
        return join(frame.tip("rect", {**box, **kind}, row.tip), _write(right + 6, middle + 4, row.value, kind="value"))
    base, width, most = middle + 10, (frame.values - frame.names) / len(mark.bins), max(mark.bins)
    bars = "".join(
        f"M{frame.names + place * width:.1f} {base:g}v-{28 * count / most:.1f}h{width * 0.9:.1f}V{base:g}Z"
        for place, count in enumerate(mark.bins)
        if count
    )
    return join(
        frame.tip("path", {"d": bars, "class": f"{_name_mark(row.series)} soft"}, row.tip),
        _draw_straight(at(mark.median), base - 30, at(mark.median), base, "median"),
        _draw_straight(at(mark.p95), base - 14, at(mark.p95), base, "late"),
        value,
    )


# --- grids

_GRID_LEFT, _GRID_TOP, _GRID_FOOT = 70, 30, 24


def _draw_grid(grid: Grid, grids: Grids, frame: Frame) -> tuple[float, float, Markup]:
    """Draw one grid; also return its width and height."""
    side, high = grids.side, grids.height
    width = max(250, _GRID_LEFT + len(grid.columns) * side + 8)
    height = _GRID_TOP + len(grid.rows) * high + _GRID_FOOT
    children = [_write(8, 16, shorten_name(grid.title, int(width / 8)), kind="group")]
    for row, name in enumerate(grid.rows):
        y = _GRID_TOP + row * high
        children.append(_write(_GRID_LEFT - 8, y + high / 2 + 4, name, "end", "tick"))
        children += [
            _draw_cell(cell, _GRID_LEFT + place * side, y, grids, frame) for place, cell in enumerate(grid.cells[row])
        ]
    for place, name in enumerate(grid.columns):
        children.append(_write(_GRID_LEFT + (place + 0.5) * side, height - 8, name, "middle", "tick"))
    return width, height, join(*children)


def _draw_cell(cell: Cell, x: float, y: float, grids: Grids, frame: Frame) -> Markup:
    box = element("rect", {"x": x + 1, "y": y + 1, "width": grids.side - 2, "height": grids.height - 2, "rx": 3})
    first = y + grids.height / 2 + 4 - 8 * len(cell.more)
    texts = [
        _write(x + grids.side / 2, first + 16 * place, text, "middle", "strong" if cell.more and not place else "")
        for place, text in enumerate([cell.text, *cell.more])
        if text
    ]
    return frame.tip("g", {"class": f"q {cell.shade}"}, cell.tip, box, *texts)


def _flow_grids(grids: Grids) -> tuple[float, float, Markup]:
    """Arrange grids in lines, in at least the width of other pictures."""
    drawn, x, y, width, tallest = [], 0.0, 0.0, float(_FILE.width), 0.0
    for line in grids.lines:
        for grid in line:
            own_width, own_height, picture = _draw_grid(grid, grids, _FILE)
            if x > 0 and x + own_width > _FILE.width:
                x, y = 0.0, y + tallest
            drawn.append(_move(x, y, picture))
            x, tallest = x + own_width + 8, own_height
            width = max(width, x - 8)
        x, y = 0.0, y + tallest
    return width, y, join(*drawn)
