"""The curve: quality against the tokens that reached the model, a line for each system with a knob."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.output.plots.labels import Place, cover_line, label_systems, place_labels, shorten_name
from context_bench.output.plots.quality_cost import find_limits
from context_bench.output.plots.scales import FORMATS, GREY, PALETTE, Scale, make_cost_scale, make_score_scale
from context_bench.output.plots.texts import draw_texts
from context_bench.output.plots.vega_plot import Plot

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve
    from context_bench.results import EvalResult

__all__ = ["draw_curve", "keep_measured", "make_token_scale", "read_baselines", "title_curves"]

_MARGIN = 60
"""Pixels at the right that labels may take."""
_WIDTH, _HEIGHT = 600, 340
_WIDE = 12
"""Tokens that differ by more than this factor are drawn by powers of ten."""


def keep_measured(curves: Iterable[Curve]) -> list[Curve]:
    """Keep the curves whose tokens are known at every setting: only those can be drawn."""
    return [curve for curve in curves if all(math.isfinite(point.tokens) for point in curve.points)]


def read_baselines(result: EvalResult, curves: Iterable[Curve]) -> dict[str, float]:
    """Read the score of each baseline that is not a setting of the curve itself, where it is known."""
    scores = {
        curve.baseline: result.summary.get(curve.baseline, {}).get(curve.metric, math.nan)
        for curve in curves
        if curve.baseline not in {point.system for point in curve.points}
    }
    return {name: score for name, score in scores.items() if math.isfinite(score)}


def make_token_scale(curves: list[Curve]) -> Scale:
    """Make the scale of tokens that all curves share."""
    tokens = [max(point.tokens, 1e-9) for curve in curves for point in curve.points]
    return make_cost_scale(tokens, wide=max(tokens) > _WIDE * min(tokens))


def draw_curve(result: EvalResult, curves: Iterable[Curve] | None = None) -> Plot:
    """Draw quality against tokens for each sweep of a run.

    Args:
        result: The run.
        curves: Its curves, where they were drawn already; by default from its rows.

    Raises:
        UsageError: The run has no sweep, or tokens were not measured.
    """
    curves = keep_measured(result.curves() if curves is None else curves)
    if not curves:
        raise UsageError(
            "there is no curve of this run: no system was run with several settings of a knob "
            "(such as bm25:ratio=0.1|0.3), or tokens that reached the model were not measured"
        )
    labels = label_systems(curve.name for curve in curves)
    xs = make_token_scale(curves)
    values = [
        _describe_point(curve, labels[curve.name], number, place)
        for number, curve in enumerate(curves)
        for place in range(len(curve.points))
    ]
    baselines = read_baselines(result, curves)
    ys = make_score_scale(each["score"] for each in values)
    x = {"field": "tokens", "type": "quantitative", "scale": xs.to_spec()}
    x |= {"title": xs.name_axis(curves[0].tokens_title)}
    x["axis"] = {"format": FORMATS["tokens"], "grid": False, "values": xs.list_ticks()}
    y = {"field": "score", "type": "quantitative", "scale": ys.to_spec()}
    y |= {"title": _name_metric(curves[0]), "axis": {"format": "~g", "values": ys.list_ticks()}}
    colour = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    spec = {
        "title": {"text": title_curves(curves, labels), "subtitle": _explain(curves)},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            _draw_baselines(baselines, y),
            _draw_band(values, x, y, colour),
            _draw_line(values, x, y, colour),
            _draw_points(values, x, y, colour),
            *_draw_texts(values, xs, ys, baselines),
        ],
    }
    return Plot("curve", spec)


def _describe_point(curve: Curve, label: str, number: int, place: int) -> dict[str, Any]:
    point = curve.points[place]
    low, high = find_limits(point.quality) or (None, None)
    setting = f"{curve.knob}={point.setting}"
    return {
        "curve": label,
        "setting": shorten_name(setting, 24),
        "tokens": point.tokens,
        "score": point.quality.value,
        "low": low,
        "high": high,
        "colour": PALETTE[number % len(PALETTE)],
        "last": place == len(curve.points) - 1,
    }


def _name_metric(curve: Curve) -> str:
    return curve.metric.replace("_", " ")


def _draw_band(values: list[dict[str, Any]], x: Any, y: Any, colour: Any) -> dict[str, Any]:
    return {
        "data": {"values": [each for each in values if each["low"] is not None]},
        "mark": {"type": "area", "opacity": 0.14},
        "encoding": {
            "x": x,
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": colour,
            "detail": {"field": "curve"},
        },
    }


def _draw_line(values: list[dict[str, Any]], x: Any, y: Any, colour: Any) -> dict[str, Any]:
    return {
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour, "detail": {"field": "curve"}},
    }


def _draw_points(values: list[dict[str, Any]], x: Any, y: Any, colour: Any) -> dict[str, Any]:
    tips = [
        {"field": "curve", "type": "nominal"},
        {"field": "setting", "type": "nominal"},
        {"field": "tokens", "type": "quantitative", "format": ",.0f"},
        {"field": "score", "type": "quantitative", "format": ".3f"},
        {"field": "low", "type": "quantitative", "format": ".3f", "title": "95% interval from"},
        {"field": "high", "type": "quantitative", "format": ".3f", "title": "to"},
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "circle", "size": 60, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
    }


def _draw_baselines(baselines: dict[str, float], y: Any) -> dict[str, Any]:
    """Draw the score of each baseline as a dashed line across."""
    return {
        "data": {"values": [{"score": score} for score in baselines.values()]},
        "mark": {"type": "rule", "strokeDash": [5, 4], "color": GREY},
        "encoding": {"y": y},
    }


def _draw_texts(
    values: list[dict[str, Any]], xs: Scale, ys: Scale, baselines: dict[str, float]
) -> list[dict[str, Any]]:
    """Write each setting beside its point, the name of each curve with its last one, and each baseline at the right."""
    texts = [f"{each['curve']} {each['setting']}" if each["last"] else each["setting"] for each in values]
    points = [
        (xs.find_share(each["tokens"]) * _WIDTH, (1 - ys.find_share(each["score"])) * _HEIGHT, text)
        for each, text in zip(values, texts)
    ]
    heights = {name: (1 - ys.find_share(score)) * _HEIGHT for name, score in baselines.items()}
    rules = [(0.0, y - 3, float(_WIDTH), y + 3) for y in heights.values()]
    names = [Place(_WIDTH, y + 9, "right") for y in heights.values()]
    labels = [f"{label} (baseline)" for label in label_systems(baselines).values()]
    taken = [(place.x - 6.2 * len(label), place.y - 7, place.x, place.y + 7) for place, label in zip(names, labels)]
    for _, line in groupby(zip(values, points), key=lambda pair: pair[0]["curve"]):
        taken += cover_line([(x, y) for _, (x, y, _) in line])
    places = place_labels(points, _WIDTH + _MARGIN, _HEIGHT, [*taken, *rules])
    colours = [each["colour"] for each in values] + [GREY] * len(names)
    return draw_texts([*texts, *labels], [*places, *names], colours)


def title_curves(curves: list[Curve], labels: dict[str, str]) -> str:
    """Say what is seen: how much can be saved without being worse, or that too few examples were run to show it."""
    found = [(curve, curve.best_point) for curve in curves]
    parts = [
        f"{labels[curve.name]} saves {best.saving:.0%}" for curve, best in found if best and math.isfinite(best.saving)
    ]
    if parts:
        return f"{' and '.join(parts[:2])} without being worse than {shorten_name(found[0][0].baseline)}"
    qualities = [point.quality for curve in curves for point in curve.points]
    scores = {f"{each.value:.3f}" for each in qualities}
    apart = [point.difference for curve in curves for point in curve.points if point.difference is not None]
    if len(scores) == 1 and all(each.low <= -curves[0].margin <= 0 <= each.high for each in apart if each.known):
        few = f"{min(each.n for each in qualities):,} examples are too few to show that saving costs no quality"
        return f"All settings score {scores.pop()}, and {few}"
    return "Quality against tokens: no setting is shown to save tokens without being worse"


def _explain(curves: list[Curve]) -> list[str]:
    lines = ["Up and to the left is better. A point for each setting; bands: 95% intervals."]
    if any(curve.best_point for curve in curves):
        lines.append(f"Not worse: within a margin of {curves[0].margin:g}, shown by the interval of the difference.")
    return lines
