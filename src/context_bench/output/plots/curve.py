"""The curves of sweeps: quality against the tokens that reached the model, a line for each system with a knob."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from context_bench.numbers import score, tokens
from context_bench.output.plots.chart import (
    Axis,
    Chart,
    Drawn,
    Key,
    Line,
    Plane,
    Point,
    make_cost_scale,
    make_score_scale,
)
from context_bench.output.plots.labels import label_system, label_systems, number_series, shorten_name
from context_bench.output.plots.pareto import find_limits, write_amount, write_limits

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve
    from context_bench.results import EvalResult

_WIDE = 12  # tokens that differ by more than this factor get a log scale


def draw_curve(result: EvalResult, curves: Iterable[Curve]) -> Drawn:
    """Draw quality against tokens for each sweep with known tokens at every setting."""
    curves = [curve for curve in curves if all(math.isfinite(point.tokens) for point in curve.points)]
    if not curves:
        return (
            "no system was run at several settings of a parameter (such as bm25:ratio=0.1|0.3), or tokens that reached "
            "the model were not measured"
        )
    labels = label_systems(curve.name for curve in curves)
    used = [max(point.tokens, 1e-9) for curve in curves for point in curve.points]
    qualities = [point.quality for curve in curves for point in curve.points]
    xs = make_cost_scale(used, wide=max(used) > _WIDE * min(used))
    ys = make_score_scale([each.value for each in qualities], map(find_limits, qualities))
    points, table = [], []
    lines = [
        Line("baseline", [(xs.low, value), (xs.high, value)], label=f"{label_system(name)} (baseline)")
        for name, value in _read_baselines(result, curves).items()
    ]
    numbers = number_series(result.summary)
    for curve in curves:
        first = numbers[curve.points[0].system]
        lines.append(Line("curve", [(point.tokens, point.quality.value) for point in curve.points], first))
        for point in curve.points:
            limits, name = find_limits(point.quality), labels[curve.name] if point is curve.points[-1] else ""
            value = f"{score(point.quality.value)}{write_limits(limits)}"
            tip = f"{point.system}: {value}, {tokens(point.tokens)} tokens"
            label = shorten_name(point.setting, 12)
            series = numbers[point.system]
            points.append(Point(point.tokens, point.quality.value, label, tip, series, limits=limits, name=name))
            table.append([curve.name, f"{curve.knob}={point.setting}", tokens(point.tokens), value])
    metric = curves[0].metric.replace("_", " ")
    return Chart(
        "curve",
        "quality against tokens",
        title_curves(curves, labels),
        _explain(curves, has_baseline=lines[0].kind == "baseline"),
        Plane(
            Axis(curves[0].tokens_title, xs, write_amount),
            Axis(metric, ys),
            points,
            lines,
            [Key(f"{labels[curve.name]} ({curve.knob})", series=numbers[curve.points[0].system]) for curve in curves],
        ),
        ["system", "setting", curves[0].tokens_title, metric],
        table,
    )


def _read_baselines(result: EvalResult, curves: Iterable[Curve]) -> dict[str, float]:
    """Read the known score of each baseline that is not a setting of the curve itself."""
    scores = {
        curve.baseline: result.summary.get(curve.baseline, {}).get(curve.metric, math.nan)
        for curve in curves
        if curve.baseline not in {point.system for point in curve.points}
    }
    return {name: score for name, score in scores.items() if math.isfinite(score)}


def title_curves(curves: list[Curve], labels: dict[str, str]) -> str:
    """Write the main observation: the saving without loss, or that there are too few examples to show it."""
    found = [(curve, curve.best_point) for curve in curves]
    parts = [
        f"{labels[curve.name]} saves {best.saving:.0%}" for curve, best in found if best and math.isfinite(best.saving)
    ]
    if parts:
        return f"{' and '.join(parts[:2])} without being worse than {label_system(found[0][0].baseline)}"
    qualities = [point.quality for curve in curves for point in curve.points]
    scores = {f"{each.value:.3f}" for each in qualities}
    apart = [point.difference for curve in curves for point in curve.points if point.difference is not None]
    if len(scores) == 1 and all(each.low <= -curves[0].margin <= 0 <= each.high for each in apart if each.known):
        few = f"{min(each.n for each in qualities):,} examples are too few to show that saving costs no quality"
        return f"All settings score {scores.pop()}, and {few}"
    return "Quality against tokens: no setting is shown to save tokens without being worse"


def _explain(curves: list[Curve], *, has_baseline: bool) -> list[str]:
    notes = ["Up and to the left is better. Each mark is a setting; whiskers are 95% intervals."]
    if has_baseline:
        notes.append("The dashed line is the baseline.")
    if any(curve.best_point for curve in curves):
        notes.append(f"Not worse: within a margin of {curves[0].margin:g}, shown by the interval of the difference.")
    return notes
