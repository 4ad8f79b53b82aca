"""The Pareto plot: quality against cost, with intervals, and the systems on the front."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.output.plots.labels import Place, label_systems, place_labels
from context_bench.output.plots.quality_cost import QualityCost, find_limits, read_quality_cost
from context_bench.output.plots.scales import BLUE, FORMATS, GREY, Scale, make_cost_scale, make_score_scale
from context_bench.output.plots.texts import draw_texts
from context_bench.output.plots.vega_plot import Plot
from context_bench.text import list_names

if TYPE_CHECKING:
    from context_bench.results import EvalResult

__all__ = ["draw_pareto", "title_pareto"]

_MARGIN = 60
"""Pixels at the right that labels may take."""
_WIDTH, _HEIGHT = 600, 360


def draw_pareto(result: EvalResult) -> Plot:
    """Draw quality against tokens or dollars.

    Raises:
        UsageError: No system has both.
    """
    data = read_quality_cost(result)
    if data is None:
        raise UsageError("there is no Pareto plot of this run: no system has both a score and a cost")
    labels = label_systems(data.points)
    xs = make_cost_scale([cost for cost, _ in data.points.values()], wide=data.is_wide)
    ys = make_score_scale(quality for _, quality in data.points.values())
    intervals = {name: find_limits(result.intervals.get(name, {}).get(data.key)) for name in data.points}
    values: list[dict[str, Any]] = []
    for name, (cost, quality) in data.points.items():
        limits = intervals[name] or (None, None)
        kind = "control" if name in data.controls else "front" if name in data.front else "beaten"
        values.append(
            {"system": labels[name], "cost": cost, "quality": quality, "low": limits[0], "high": limits[1]}
            | {"kind": kind}
        )
    x = {"field": "cost", "type": "quantitative", "scale": xs.to_spec(), "title": xs.name_axis(data.cost.title)}
    x["axis"] = {"format": FORMATS[data.cost.unit], "grid": False, "values": xs.list_ticks()}
    y = {"field": "quality", "type": "quantitative", "scale": ys.to_spec(), "title": _name_quality(data)}
    y["axis"] = {"format": "~g", "values": ys.list_ticks()}
    corners = data.trace_front(ys.low, xs.high)
    colours = [BLUE if each["kind"] == "front" else GREY for each in values]
    spec = {
        "title": {"text": title_pareto(data, labels), "subtitle": _explain(data)},
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            _draw_front(corners, x, y),
            _draw_whiskers(values, x, y),
            _draw_points(values, x, y, data),
            *draw_texts([each["system"] for each in values], _place(values, corners, xs, ys), colours),
        ],
    }
    return Plot("pareto", spec)


def _place(values: list[dict[str, Any]], corners: list[tuple[float, float]], xs: Scale, ys: Scale) -> list[Place]:
    def at(cost: float, quality: float) -> tuple[float, float]:
        return xs.find_share(cost) * _WIDTH, (1 - ys.find_share(quality)) * _HEIGHT

    points = [(*at(each["cost"], each["quality"]), each["system"]) for each in values]
    taken = []
    for each in values:
        if each["low"] is not None:
            (x, top), (_, bottom) = at(each["cost"], each["high"]), at(each["cost"], each["low"])
            taken.append((x - 4, top, x + 4, bottom))
    for (x1, y1), (x2, y2) in pairwise([at(*corner) for corner in corners]):
        taken.append((min(x1, x2) - 2, min(y1, y2) - 2, max(x1, x2) + 2, max(y1, y2) + 2))
    return place_labels(points, _WIDTH + _MARGIN, _HEIGHT, taken)


def _draw_front(corners: list[tuple[float, float]], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    steps = [{"cost": cost, "quality": quality, "order": place} for place, (cost, quality) in enumerate(corners)]
    return {
        "data": {"values": steps},
        "mark": {"type": "line", "color": BLUE, "strokeWidth": 1.5, "opacity": 0.45},
        "encoding": {"x": x, "y": y, "order": {"field": "order", "type": "quantitative"}},
    }


def _draw_whiskers(values: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    return {
        "data": {"values": [each for each in values if each["low"] is not None]},
        "mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.7},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": _COLOUR},
    }


_KINDS = ["front", "beaten", "control"]
_COLOUR = {"field": "kind", "scale": {"domain": _KINDS, "range": [BLUE, GREY, GREY]}, "legend": None}


def _draw_points(
    values: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any], data: QualityCost
) -> dict[str, Any]:
    shape = {"field": "kind", "scale": {"domain": _KINDS, "range": ["circle", "circle", "diamond"]}, "legend": None}
    fill = {"field": "kind", "scale": {"domain": _KINDS, "range": [BLUE, GREY, "#ffffff"]}, "legend": None}
    tips = [
        {"field": "system", "type": "nominal"},
        {"field": "quality", "type": "quantitative", "format": ".3f", "title": _name_quality(data)},
        {"field": "low", "type": "quantitative", "format": ".3f", "title": "95% interval from"},
        {"field": "high", "type": "quantitative", "format": ".3f", "title": "to"},
        {"field": "cost", "type": "quantitative", "format": FORMATS[data.cost.unit], "title": data.cost.title},
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "point", "size": 75, "opacity": 1, "strokeWidth": 1.5},
        "encoding": {"x": x, "y": y, "color": _COLOUR, "fill": fill, "shape": shape, "tooltip": tips},
    }


def _name_quality(data: QualityCost) -> str:
    return data.key.replace("_", " ")


def title_pareto(data: QualityCost, labels: dict[str, str]) -> str:
    """Say what is seen: who is on the front."""
    competing = [labels[name] for name in data.points if name not in data.controls]
    if not competing:
        return "Quality against cost of the controls"
    if not data.front and data.needs_no_context:
        return "Quality against cost: examples need no context"
    if not data.front:
        return f"The baseline puts {list_names(competing, 3)} off the Pareto front"
    if len(competing) == 1:
        return f"Quality and cost of {competing[0]}"
    return f"On the Pareto front of quality and cost: {list_names([labels[name] for name in data.front], 3)}"


def _explain(data: QualityCost) -> list[str]:
    lines = ["Up and to the left is better. Blue: on the Pareto front; bars: 95% intervals."]
    if data.controls:
        lines.append("Hollow: controls, which do not compete.")
    if data.missing:
        names = label_systems(data.missing)
        lines.append(f"Not measured, so not drawn: {list_names(list(names.values()))}.")
    return lines
