"""Quality against cost, with the front of systems that none beats on both drawn as a line."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from context_bench.plots.quality_cost import QualityCost, read_quality_cost
from context_bench.report.axes import Scale, clip_name, draw_mark, figure, label, line, svg, table, x_axis
from context_bench.report.elements import Child, Markup, element
from context_bench.report.run_facts import RunFacts
from context_bench.reporters.layout import dollars, score, tokens

__all__ = ["plot_pareto"]

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 396, 40, 160, 34, 346


_SHOW: dict[str, Callable[[float], str]] = {"usd": dollars, "tokens": tokens}


def plot_pareto(facts: RunFacts) -> Child:
    """Draw the plot; a sentence where there is nothing to draw."""
    data = read_quality_cost(facts.result)
    if data is None:
        return element("p", {"class": "missing"}, "Not measured: no system has both a score and a cost.")
    cost, key, points, front, controls = data.cost, data.key, data.points, data.front, data.controls
    show = _SHOW[cost.unit]
    picture = _draw(facts, data)
    caption = (
        "Up and to the left is better. The line joins the systems that no other beats on both: "
        f"{', '.join(front) or 'none'}. Whiskers are 95% intervals."
    )
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
    return figure("quality against cost", picture, caption, numbers)


def _draw(facts: RunFacts, data: QualityCost) -> Markup:
    cost, key, points, front = data.cost, data.key, data.points, data.front
    show = _SHOW[cost.unit]
    costs = [x for x, _ in points.values()]
    wide = data.is_wide
    low, high = (min(costs) / 1.5, max(costs) * 1.5) if wide else (0.0, max(costs) * 1.08)
    xs = Scale(low, high, _LEFT, _WIDTH - _RIGHT, log=wide)
    intervals = {name: own.get(key) for name, own in facts.result.intervals.items()}
    known = {name: each for name, each in intervals.items() if each is not None and each.known and name in points}
    top = max([1.0, *(y for _, y in points.values())])
    bottom = min([0.0, *(y for _, y in points.values())])
    ys = Scale(bottom, top, _BOTTOM, _TOP)
    grid = [
        Markup(
            line(_LEFT, ys(tick), _WIDTH - _RIGHT, ys(tick), "grid")
            + label(_LEFT - 8, ys(tick) + 4, f"{tick:g}", "end", "tick")
        )
        for tick in ys.ticks(5)
    ]
    steps = []
    for before, after in pairwise(front):
        (x1, y1), (x2, y2) = points[before], points[after]
        steps.append(f"M{xs(x1)} {ys(y1)}H{xs(x2)}V{ys(y2)}")
    whiskers = [
        line(xs(points[name][0]), ys(each.low), xs(points[name][0]), ys(each.high), "whisker")
        for name, each in known.items()
    ]
    marks, names = [], []
    places = _spread({name: (xs(x), ys(y)) for name, (x, y) in points.items()})
    for number, name in enumerate(facts.result.summary):
        if name not in points:
            continue
        x, y = points[name]
        within = f", 95% interval [{score(known[name].low)}, {score(known[name].high)}]" if name in known else ""
        tip = f"{name}: {key.replace('_', ' ')} {score(y)}{within}; {cost.title}: {show(x)}"
        marks.append(draw_mark(xs(x), ys(y), number, tip))
        names.append(label(xs(x) + 11, places[name] + 4, clip_name(name, 24), "start", "point"))
    return svg(
        _WIDTH,
        _HEIGHT,
        f"Quality against {cost.title}; the numbers are in the table beneath.",
        *grid,
        x_axis(xs, _BOTTOM, _TOP, show, cost.title),
        label(8, 14, key.replace("_", " "), "start", "name"),
        element("path", {"d": "".join(steps), "class": "front"}) if steps else None,
        *whiskers,
        *marks,
        *names,
    )


def _spread(places: dict[str, tuple[float, float]], gap: float = 15, near: float = 170) -> dict[str, float]:
    """Move the names of neighbours apart, so that none covers another."""
    moved: dict[str, float] = {}
    for name, (x, y) in sorted(places.items(), key=lambda item: item[1][1]):
        taken = [moved[other] for other in moved if abs(places[other][0] - x) < near]
        at = max([y, *(each + gap for each in taken if each + gap > y)])
        moved[name] = at if at <= _BOTTOM - 2 else min([_BOTTOM - 2.0, *(each - gap for each in taken)])
    return moved
