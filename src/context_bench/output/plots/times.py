"""Times: how they are spread as data, and the plot of latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.output.plots.labels import label_systems
from context_bench.output.plots.scales import BLUE, GREY, ORANGE, Scale
from context_bench.output.plots.vega_plot import Plot
from context_bench.stats.quantiles import percentile

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["BINS", "Spread", "Spreads", "draw_latency", "gather_latencies", "spread_times", "write_seconds"]

BINS = 55
_WIDTH, _STEP = 470, 46


@dataclass(frozen=True)
class Spread:
    """How the times of one system are spread: how many in each bin, and the times that half and 95% do not exceed."""

    count: int
    bins: list[int]
    median: float
    p95: float
    slowest: float


@dataclass(frozen=True)
class Spreads:
    """The times of all systems on one scale by powers of ten, cut into equal bins."""

    scale: Scale
    systems: dict[str, Spread]


def gather_latencies(rows: Iterable[EvalRow]) -> dict[str, list[float]]:
    """Gather the latencies of rows without an error, by system."""
    times: dict[str, list[float]] = {}
    for row in rows:
        if row.error is None:
            times.setdefault(row.system, []).append(row.latency)
    return times


def spread_times(times: Mapping[str, Sequence[float]], names: Iterable[str]) -> Spreads | None:
    """Sort times into bins, from the fastest hundredth to the slowest; None where no system took any time."""
    found = {name: sorted(times[name]) for name in names if times.get(name)}
    found = {name: values for name, values in found.items() if values[-1] > 0}
    if not found:
        return None
    low = max(1e-7, min(percentile([each for each in values if each > 0], 0.01) for values in found.values()))
    high = max(max(values[-1] for values in found.values()), low * 10)
    scale = Scale(low / 1.2, high * 1.05, log=True)
    spreads = {}
    for name, values in found.items():
        bins = [0] * BINS
        for value in values:
            share = min(1.0, max(0.0, scale.find_share(value)))
            bins[min(BINS - 1, int(share * BINS))] += 1
        middle, late = percentile(values, 0.5), percentile(values, 0.95)
        spreads[name] = Spread(len(values), bins, middle, late, values[-1])
    return Spreads(scale, spreads)


def write_seconds(value: float) -> str:
    """Write a time in the unit that suits it, with no more than three digits that count."""
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


def draw_latency(names: Sequence[str], times: Mapping[str, Sequence[float]]) -> Plot:
    """Draw how latencies are spread: a histogram by powers of ten for each system, with median and p95.

    Raises:
        UsageError: No row has a latency.
    """
    spreads = spread_times(times, names)
    if spreads is None:
        raise UsageError("there is no plot of latencies of this run: no row has one, or the rows were not kept")
    labels = label_systems(spreads.systems)
    bars: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    for place, (name, spread) in enumerate(spreads.systems.items()):
        base, most = (place + 1) * _STEP - 8, max(spread.bins)
        for number, count in enumerate(spread.bins):
            if count:
                left, right = (number / BINS * _WIDTH, (number + 1) / BINS * _WIDTH)
                bars.append({"x": left, "x2": right - 0.8, "y": base - 30 * count / most, "y2": base, "rows": count})
                bars[-1]["system"] = labels[name]
        marks.append(
            {"system": labels[name], "y": base, "top": base - 32, "half": base - 18}
            | {"median": spread.median, "p95": spread.p95, "rows": spread.count}
            | {"label": f"{write_seconds(spread.median)}, p95 {write_seconds(spread.p95)}", "middle": base - 13}
        )
    height = len(spreads.systems) * _STEP
    spec = {
        "title": {
            "text": _find_title(spreads, labels),
            "subtitle": ["Time for each example, on a scale by powers of ten. Orange: median; short grey line: p95."],
        },
        "width": _WIDTH,
        "height": height,
        "layer": _draw_layers(bars, marks, spreads.scale),
    }
    return Plot("latency", spec)


def _draw_layers(bars: list[dict[str, Any]], marks: list[dict[str, Any]], scale: Scale) -> list[dict[str, Any]]:
    def at(field: str) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "scale": None}

    ticks = [tick for tick in scale.list_ticks() if math.log10(tick) % 1 < 1e-9 or scale.high / scale.low < 1e3]
    axis = {"values": ticks, "domain": True, "grid": True, "labelExpr": _LABELS}
    x = {"type": "quantitative", "scale": scale.to_spec(), "axis": axis, "title": "latency"}
    tips = [
        {"field": "system"},
        {"field": "label", "title": "median, p95"},
        {"field": "rows", "type": "quantitative", "format": ","},
    ]
    data = {"values": marks}
    return [
        {
            "data": {"values": bars},
            "mark": {"type": "rect", "color": BLUE, "opacity": 0.55},
            "encoding": {"x": at("x"), "x2": {"field": "x2"}, "y": at("y"), "y2": {"field": "y2"}},
        },
        {
            "data": data,
            "mark": {"type": "rule", "color": ORANGE, "strokeWidth": 2},
            "encoding": {"x": {**x, "field": "median"}, "y": at("top"), "y2": {"field": "y"}, "tooltip": tips},
        },
        {
            "data": data,
            "mark": {"type": "rule", "color": GREY, "strokeWidth": 2},
            "encoding": {"x": {**x, "field": "p95"}, "y": at("half"), "y2": {"field": "y"}, "tooltip": tips},
        },
        {
            "data": data,
            "mark": {"type": "text", "align": "right", "baseline": "middle", "fontSize": 12},
            "encoding": {"x": {"value": -10}, "y": at("middle"), "text": {"field": "system"}},
        },
        {
            "data": data,
            "mark": {"type": "text", "align": "left", "baseline": "middle"},
            "encoding": {"x": {"value": _WIDTH + 10}, "y": at("middle"), "text": {"field": "label"}},
        },
    ]


_LABELS = (
    "datum.value >= 1 ? format(datum.value, '~g') + ' s' : datum.value >= 1e-3 ? "
    "format(datum.value * 1e3, '.3~g') + ' ms' : format(datum.value * 1e6, '.3~g') + ' µs'"
)


def _find_title(spreads: Spreads, labels: dict[str, str]) -> str:
    """Say what is seen: the fastest and the slowest by the median."""
    ordered = sorted(spreads.systems, key=lambda name: spreads.systems[name].median)
    first, last = ordered[0], ordered[-1]
    if first == last:
        return f"Latency of {labels[first]}: {write_seconds(spreads.systems[first].median)} at the median"
    slow, quick = spreads.systems[last].median, spreads.systems[first].median
    return f"Median latency: {write_seconds(quick)} ({labels[first]}) to {write_seconds(slow)} ({labels[last]})"
