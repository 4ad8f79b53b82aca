"""Quality against cost, with the Pareto front drawn as a line."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from context_bench.numbers import dollars, score, tokens
from context_bench.output.page.axes import (
    LETTERING,
    Frame,
    Scale,
    draw_mark,
    figure,
    label,
    line,
    span_scores,
    svg,
    table,
    write_name,
    x_axis,
)
from context_bench.output.page.elements import Child, Markup, element, join
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.labels import Box, Place, label_systems, place_labels
from context_bench.output.plots.pareto import title_pareto
from context_bench.output.plots.quality_cost import QualityCost, find_limits, read_quality_cost

__all__ = ["plot_pareto"]

_HEIGHT, _LEFT, _TOP, _BOTTOM = 402, 40, 34, 346

_SHOW: dict[str, Callable[[float], str]] = {"usd": dollars, "tokens": tokens}


def plot_pareto(facts: RunFacts) -> Child:
    """Draw the plot; a sentence where there is nothing to draw."""
    data = read_quality_cost(facts.result)
    if data is None:
        return element("p", {"class": "missing"}, "Not measured: no system has both a score and a cost.")
    cost, key, points, front, controls = data.cost, data.key, data.points, data.front, data.controls
    show = _SHOW[cost.unit]
    names = {name: name for name in points}
    caption = f"{title_pareto(data, names)}. Up and to the left is better. Whiskers are 95% intervals."
    if data.trace_front(0, 0):
        caption += " The dashed line is the front."
    if data.missing:
        caption += f" Not measured, so not drawn: {', '.join(data.missing)}."
    if controls:
        caption += f" Controls do not compete: {', '.join(sorted(controls))}."
    numbers = table(
        ["system", cost.title, key.replace("_", " "), "on the front"],
        [
            [name, show(x), score(y), "control" if name in controls else "yes" if name in front else "no"]
            for name, (x, y) in points.items()
        ],
        "Quality and cost",
    )
    return figure("quality against cost", lambda frame: _draw(facts, data, frame), caption, numbers)


def _draw(facts: RunFacts, data: QualityCost, frame: Frame) -> Markup:
    cost, key, points = data.cost, data.key, data.points
    show = _SHOW[cost.unit]
    limits = {name: find_limits(facts.result.intervals.get(name, {}).get(key)) for name in points}
    xs = _make_cost_scale(data, frame)
    ys = Scale(*span_scores([y for _, y in points.values()], limits.values()), _BOTTOM, _TOP)
    corners = [(xs(x), ys(y)) for x, y in data.trace_front(ys.low, xs.high)]
    whiskers = {name: (xs(points[name][0]), ys(each[1]), ys(each[0])) for name, each in limits.items() if each}
    marks = []
    for number, name in enumerate(facts.result.summary):
        if name not in points:
            continue
        x, y = points[name]
        own = limits[name]
        within = f", 95% interval [{score(own[0])}, {score(own[1])}]" if own else ""
        tip = f"{name}: {key.replace('_', ' ')} {score(y)}{within}; {cost.title}: {show(x)}"
        marks.append(draw_mark(xs(x), ys(y), number, tip))
    path = "M" + "L".join(f"{x} {y}" for x, y in corners)
    return svg(
        frame.width,
        _HEIGHT,
        f"Quality against {cost.title}; the numbers are in the table beneath.",
        *(_draw_tick(tick, ys, frame) for tick in ys.ticks(5)),
        x_axis(xs, _BOTTOM, _TOP, "${:g}".format if cost.unit == "usd" else tokens, cost.title),
        label(8, 14, key.replace("_", " "), "start", "name"),
        element("path", {"d": path, "class": "front"}) if corners else None,
        _write_names({name: (xs(x), ys(y)) for name, (x, y) in points.items()}, corners, [*whiskers.values()], frame),
        *(line(x, top, x, bottom, "whisker") for x, top, bottom in whiskers.values()),
        *marks,
    )


def _make_cost_scale(data: QualityCost, frame: Frame) -> Scale:
    costs = [x for x, _ in data.points.values()]
    low, high = (min(costs) / 1.5, max(costs) * 1.5) if data.is_wide else (0.0, max(costs) * 1.08)
    return Scale(low, high, _LEFT, frame.points, log=data.is_wide)


def _draw_tick(tick: float, ys: Scale, frame: Frame) -> Markup:
    return join(
        line(_LEFT, ys(tick), frame.points, ys(tick), "grid"),
        label(_LEFT - 8, ys(tick) + 4, f"{tick:g}", "end", "tick"),
    )


def _write_names(
    points: dict[str, tuple[float, float]],
    corners: list[tuple[float, float]],
    whiskers: list[tuple[float, float, float]],
    frame: Frame,
) -> Markup:
    """Write each name beside its point, where it covers neither other points nor whiskers nor the front."""
    top = 20.0
    taken: list[Box] = [(x - 4 - _LEFT, high - top, x + 4 - _LEFT, low - top) for x, high, low in whiskers]
    for (x1, y1), (x2, y2) in pairwise(corners):
        left, right = sorted((x1 - _LEFT, x2 - _LEFT))
        high, low = sorted((y1 - top, y2 - top))
        taken.append((left - 2, high - 2, right + 2, low + 2))
    names = label_systems(points, frame.letters)
    wanted = [(x - _LEFT, y - top, names[name]) for name, (x, y) in points.items()]
    places = place_labels(wanted, frame.width - _LEFT, _BOTTOM - top, taken, LETTERING)
    return join(
        *(write_name(Place(x + _LEFT, y + top, align), names[name]) for name, (x, y, align) in zip(points, places))
    )
