"""The curves of a sweep: quality against the tokens that reached the model, a line for each system with a knob."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from context_bench.numbers import score, tokens
from context_bench.output.page.axes import (
    LETTERING,
    STYLES,
    Frame,
    Scale,
    draw_mark,
    figure,
    label,
    line,
    span_scores,
    svg,
    write_name,
    x_axis,
)
from context_bench.output.page.elements import Child, Markup, element, join
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.labels import Box, cover_line, place_labels, shorten_name
from context_bench.output.plots.quality_cost import find_limits
from context_bench.output.plots.rate_distortion import keep_measured, make_token_scale, read_baselines, title_curves

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve

__all__ = ["plot_curves"]

_HEIGHT, _LEFT, _TOP, _BOTTOM = 382, 40, 34, 326


def plot_curves(facts: RunFacts, curves: Sequence[Curve]) -> Markup | None:
    """Draw all curves of a run in one plot; nothing where tokens were not measured."""
    drawn = keep_measured(curves)
    if not drawn:
        return None
    names = ", ".join(f"{curve.name} ({curve.knob})" for curve in drawn)
    return figure(
        "quality against tokens",
        lambda frame: _draw(facts, drawn, frame),
        f"{title_curves(drawn, {curve.name: curve.name for curve in drawn})}. "
        f"A line for each system with a knob, a mark for each setting: {names}. Up and to the left is better. "
        "Whiskers are 95% intervals; the dashed line is the baseline.",
    )


def _draw(facts: RunFacts, drawn: list[Curve], frame: Frame) -> Markup:
    wanted = make_token_scale(drawn)
    xs = Scale(wanted.low, wanted.high, _LEFT, frame.points, log=wanted.log)
    scores = [point.quality for curve in drawn for point in curve.points]
    ys = Scale(*span_scores([each.value for each in scores], map(find_limits, scores)), _BOTTOM, _TOP)
    grid = [
        join(
            line(_LEFT, ys(tick), frame.points, ys(tick), "grid"),
            label(_LEFT - 8, ys(tick) + 4, f"{tick:g}", "end", "tick"),
        )
        for tick in ys.ticks(5)
    ]
    bases: list[Child] = []
    rules: list[Box] = []
    for name, value in read_baselines(facts.result, drawn).items():
        text = shorten_name(f"{name} (baseline)", 24)
        bases.append(element("path", {"d": f"M{_LEFT} {ys(value)}H{frame.points}", "class": "front"}))
        bases.append(label(frame.points, ys(value) - 6, text, "end", "point"))
        rules.append((_LEFT, ys(value) - 3, frame.points, ys(value) + 3))
        rules.append((frame.points - LETTERING.measure(text), ys(value) - 18, frame.points, ys(value)))
    metric = drawn[0].metric.replace("_", " ")
    return svg(
        frame.width,
        _HEIGHT,
        "Quality against tokens for each setting; the tables beneath have the numbers.",
        *grid,
        x_axis(xs, _BOTTOM, _TOP, tokens, drawn[0].tokens_title),
        label(8, 14, metric, "start", "name"),
        *bases,
        _write_settings(drawn, xs, ys, rules, frame),
        *(_draw_curve(curve, number, xs, ys) for number, curve in enumerate(drawn)),
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
    return join(*parts)


def _write_settings(drawn: list[Curve], xs: Scale, ys: Scale, rules: list[Box], frame: Frame) -> Markup:
    """Write each setting beside its mark, the name of a curve with its last one, where they cover nothing."""
    wanted, taken = [], list(rules)
    for curve in drawn:
        places = [(xs(point.tokens), ys(point.quality.value)) for point in curve.points]
        taken += cover_line(places)
        for point, (x, y) in zip(curve.points, places):
            limits = find_limits(point.quality)
            if limits is not None:
                taken.append((x - 3, ys(limits[1]), x + 3, ys(limits[0])))
            name = f"{shorten_name(curve.name, frame.letters - 7)} " if point is curve.points[-1] else ""
            wanted.append((x, y, f"{name}{shorten_name(point.setting, 10)}"))
    spread = place_labels(wanted, frame.width, _BOTTOM, taken, LETTERING)
    return join(*(write_name(place, text) for place, (_, _, text) in zip(spread, wanted)))
