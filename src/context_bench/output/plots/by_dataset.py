"""Quality by dataset: the lines as data, and the plot."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from context_bench.compare.verdicts import are_unlike
from context_bench.errors import UsageError
from context_bench.output.plots.labels import label_systems, shorten_name
from context_bench.output.plots.quality_cost import choose_quality, find_limits
from context_bench.output.plots.scales import BLUE, GREY, make_score_scale
from context_bench.output.plots.vega_plot import Plot

if TYPE_CHECKING:
    from context_bench.results import EvalResult
    from context_bench.stats import Interval

__all__ = ["DatasetScore", "draw_datasets", "list_dataset_scores"]

Spec = dict[str, Any]

_MOST = 24
"""Datasets that are drawn."""


class DatasetScore(NamedTuple):
    """The score of a system on a dataset; `key` is that of the summary."""

    key: str
    dataset: str
    system: str
    value: float
    interval: Interval | None


def list_dataset_scores(result: EvalResult) -> list[DatasetScore]:
    """List the score of each system on each dataset; over all examples where there is but one dataset.

    Systems whose score is of another kind than the baseline's are left out.
    """
    baseline = result.settings.baseline or ""
    summary = {name: own for name, own in result.summary.items() if not are_unlike(result.config, name, baseline)}
    keys = list(dict.fromkeys(key for values in summary.values() for key in values if key.startswith("dataset:")))
    return [
        DatasetScore(key, _name_dataset(result, key), name, values[key], result.intervals.get(name, {}).get(key))
        for key in keys or [choose_quality(result)]
        for name, values in summary.items()
        if math.isfinite(values.get(key, math.nan))
    ]


def _name_dataset(result: EvalResult, key: str) -> str:
    if key.startswith("dataset:"):
        return key.partition(":")[2]
    return next(iter(result.settings.datasets), "") or "all examples"


def draw_datasets(result: EvalResult) -> Plot:
    """Draw the score of each system on each dataset, with its interval.

    Raises:
        UsageError: No row has a score.
    """
    scores = list_dataset_scores(result)
    if not scores:
        raise UsageError("there is no plot by dataset of this run: no row has a score")
    systems = label_systems(dict.fromkeys(each.system for each in scores))
    tags = label_systems(list(dict.fromkeys(each.dataset for each in scores))[:_MOST], 34)
    comparison = result.comparison
    baseline = comparison.baseline if comparison is not None else None
    base = {each.dataset: each.value for each in scores if each.system == baseline}
    scale = make_score_scale(each.value for each in scores)
    columns = min(3, len(tags))
    x: Spec = {"field": "score", "type": "quantitative", "scale": scale.to_spec(), "title": "score"}
    x["axis"] = {"values": scale.list_ticks(), "format": "~g"}
    panels = []
    for place, (tag, label) in enumerate(tags.items()):
        rows = [_describe(each, systems, baseline) for each in scores if each.dataset == tag]
        y: Spec = {"field": "system", "type": "nominal", "sort": None, "title": None}
        y["scale"] = {"domain": list(systems.values())}
        y["axis"] = {
            "domain": False,
            "ticks": False,
            "labelLimit": 260,
            "labelPadding": 8,
            "labels": not place % columns,
        }
        panels.append(
            {
                "title": {"text": label, "fontSize": 12, "anchor": "start", "offset": 8},
                "width": 420 // columns + 40,
                "height": {"step": 22},
                "layer": _draw_layers(rows, base.get(tag), x, y),
            }
        )
    spec = {
        "title": {"text": _find_title(result, scores, tags, systems), "subtitle": _explain(scores, tags, baseline)},
        # Not a facet: it takes a dataset called `constructor` for something of its own.
        "concat": panels,
        "columns": columns,
        "spacing": {"row": 18, "column": 26},
    }
    return Plot("datasets", spec)


def _describe(each: DatasetScore, systems: dict[str, str], baseline: str | None) -> Spec:
    low, high = find_limits(each.interval) or (None, None)
    return {
        "dataset": shorten_name(each.dataset, 60),
        "system": systems[each.system],
        "score": each.value,
        "low": low,
        "high": high,
        "colour": GREY if each.system == baseline else BLUE,
    }


def _draw_layers(rows: list[Spec], base: float | None, x: Spec, y: Spec) -> list[Spec]:
    colour = {"field": "colour", "type": "nominal", "scale": None, "legend": None}
    tips = [
        {"field": "system"},
        {"field": "dataset"},
        {"field": "score", "type": "quantitative", "format": ".3f"},
        {"field": "low", "type": "quantitative", "format": ".3f", "title": "95% interval from"},
        {"field": "high", "type": "quantitative", "format": ".3f", "title": "to"},
    ]
    return [
        {
            "data": {"values": [] if base is None else [{"score": base}]},
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": GREY, "opacity": 0.5},
            "encoding": {"x": x},
        },
        {
            "data": {"values": [row for row in rows if row["low"] is not None]},
            "mark": {"type": "rule", "strokeWidth": 1.6},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
        },
        {
            "data": {"values": rows},
            "mark": {"type": "circle", "size": 60, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
    ]


def _find_title(result: EvalResult, scores: list[DatasetScore], tags: dict[str, str], systems: dict[str, str]) -> str:
    """Say what is seen: the largest distance from the baseline, else the range of scores."""
    baseline = result.comparison.baseline if result.comparison is not None else None
    base = {each.dataset: each.value for each in scores if each.system == baseline}
    controls = set(result.settings.controls)
    away = [
        (each.value - base[each.dataset], each)
        for each in scores
        if each.dataset in base and each.system not in controls
    ]
    far = max(away, key=lambda found: abs(found[0]), default=None)
    if far is None or abs(far[0]) < 0.005:
        low, high = min(each.value for each in scores), max(each.value for each in scores)
        return f"Scores by dataset: from {low:.2f} to {high:.2f}"
    difference, each = far
    bare = [tag.partition(":")[0] for tag in tags]
    name = each.dataset.partition(":")[0] if len(set(bare)) == len(bare) else each.dataset
    where = f" on {shorten_name(name, 24)}" if len(tags) > 1 else ""
    shown = f"{difference:+.2f}".replace("-", "−")
    return f"Furthest from {shorten_name(baseline or '', 24)}: {systems[each.system]}, {shown}{where}"


def _explain(scores: list[DatasetScore], tags: dict[str, str], baseline: str | None) -> list[str]:
    dashed = f"; dashed: {shorten_name(baseline)}, the baseline" if baseline else ""
    lines = [f"Mean score of each system, bars: 95% intervals for examples drawn at random{dashed}."]
    count = len({each.dataset for each in scores})
    if count > len(tags):
        lines.append(f"The first {len(tags)} of {count} datasets are drawn.")
    return lines
