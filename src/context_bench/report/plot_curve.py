"""The curves of a sweep: quality against the tokens that reached the model, a line for each system with a knob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from context_bench.plots.quality_cost import find_limits
from context_bench.plots.rate_distortion import keep_measured, make_token_scale, read_baselines
from context_bench.report.axes import STYLES, Scale, clip_name, draw_mark, figure, label, line, svg, x_axis
from context_bench.report.elements import Child, Markup, element, join
from context_bench.report.run_facts import RunFacts
from context_bench.reporters.layout import score, tokens

if TYPE_CHECKING:
    from context_bench.curves import Curve

__all__ = ["plot_curves"]

_WIDTH, _HEIGHT, _LEFT, _END, _TOP, _BOTTOM = 760, 376, 40, 600, 34, 326


def plot_curves(facts: RunFacts, curves: Sequence[Curve]) -> Markup | None:
    """Draw all curves of a run in one plot; nothing where tokens were not measured."""
    drawn = keep_measured(curves)
    if not drawn:
        return None
    wanted = make_token_scale(drawn)
    xs = Scale(wanted.low, wanted.high, _LEFT, _END, log=wanted.log)
    values = [point.quality.value for curve in drawn for point in curve.points]
    ys = Scale(min([0.0, *values]), max([1.0, *values]), _BOTTOM, _TOP)
    grid = [
        join(line(_LEFT, ys(tick), _END, ys(tick), "grid"), label(_LEFT - 8, ys(tick) + 4, f"{tick:g}", "end", "tick"))
        for tick in ys.ticks(5)
    ]
    bases: list[Child] = []
    for name, value in read_baselines(facts.result, drawn).items():
        bases.append(element("path", {"d": f"M{_LEFT} {ys(value)}H{_END}", "class": "front"}))
        bases.append(label(_END + 8, ys(value) + 4, clip_name(f"{name} (baseline)", 22), "start", "point"))
    metric = drawn[0].metric.replace("_", " ")
    picture = svg(
        _WIDTH,
        _HEIGHT,
        "Quality against tokens for each setting; the tables beneath have the numbers.",
        *grid,
        x_axis(xs, _BOTTOM, _TOP, tokens, "tokens that reached the model, for each example"),
        label(8, 14, metric, "start", "name"),
        *bases,
        *(_draw_curve(curve, number, xs, ys) for number, curve in enumerate(drawn)),
    )
    names = ", ".join(f"{curve.name} ({curve.knob})" for curve in drawn)
    return figure(
        "quality against tokens",
        picture,
        f"A line for each system with a knob, a mark for each setting: {names}. Up and to the left is better. "
        "Whiskers are 95% intervals; the dashed line is the baseline.",
    )


def _draw_curve(curve: Curve, number: int, xs: Scale, ys: Scale) -> Markup:
    places = [(xs(point.tokens), ys(point.quality.value)) for point in curve.points]
    path = "M" + "L".join(f"{x} {y}" for x, y in places)
    parts: list[Child] = [element("path", {"d": path, "class": f"curve s{number % STYLES}"})]
    for point, (x, y) in zip(curve.points, places):
        limits = find_limits(point.quality)
        if limits is not None:
            parts.append(line(x, ys(limits[0]), x, ys(limits[1]), "whisker"))
        within = f" [{score(limits[0])}, {score(limits[1])}]" if limits else ""
        tip = f"{point.system}: {score(point.quality.value)}{within}, {tokens(point.tokens)} tokens"
        parts.append(draw_mark(x, y, number, tip))
        parts.append(label(x + 9, y + 15, clip_name(point.setting, 12), "start", "tick"))
    x, y = places[-1]
    parts.append(label(x + 11, y - 8, clip_name(curve.name, 20), "start", "point"))
    return join(*parts)
