"""Quality against cost: the numbers, the Pareto front, and the chart."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from context_bench.compare.verdicts import are_unlike
from context_bench.numbers import (
    COST_OF_PASS,
    COST_PER_1K_USD,
    MEAN_OUTPUT_TOKENS,
    MEAN_UPSTREAM_TOKENS,
    NUM_ERRORS,
    NUMBERS,
    PARETO_COSTS,
    PARETO_FRONT,
    dollars,
    find_score_key,
    score,
    tokens,
)
from context_bench.output.plots.chart import (
    Axis,
    Chart,
    Drawn,
    Key,
    Line,
    Look,
    Plane,
    Point,
    make_cost_scale,
    make_score_scale,
)
from context_bench.output.plots.labels import label_systems, number_series
from context_bench.stats import TOO_FEW, Interval
from context_bench.text import list_names

if TYPE_CHECKING:
    from context_bench.results import EvalResult

_DOLLARS = (NUMBERS[PARETO_COSTS[0]].title, "usd")
_READ = (NUMBERS[PARETO_COSTS[1]].title, "tokens")
_WIDE = 30  # costs that differ by more than this factor are drawn by powers of ten


class Cost(NamedTuple):
    """The cost that is drawn against quality: values by system, with a title and a unit (`usd` or `tokens`)."""

    values: dict[str, float]
    title: str
    unit: str


@dataclass(frozen=True)
class QualityCost:
    """Systems by quality and cost."""

    key: str  # the number of the summary that stands for quality
    cost: Cost  # the cost of each system
    points: dict[str, tuple[float, float]]  # cost and quality by system, for those that have both
    front: list[str]  # the systems on the Pareto front, the cheapest first; controls do not compete
    controls: list[str]  # systems that are drawn and do not compete: floors, ceilings, controls
    missing: list[str]  # systems that lack one of the two
    # a floor, which reads no context, is as good as the baseline: no system is on the front
    needs_no_context: bool = False
    # systems that this data cannot distinguish from a naive cut of their size: they are not on the front either
    blind: list[str] = field(default_factory=list)

    @property
    def is_wide(self) -> bool:
        """Whether costs differ so much that they are drawn by powers of ten."""
        costs = [cost for cost, _ in self.points.values()]
        return max(costs) > _WIDE * min(costs)

    def trace_front(self, low: float, high: float) -> list[tuple[float, float]]:
        """Trace the front as steps (cost and quality of each corner) through its systems that no point beats.

        It is empty if fewer than two systems compete.
        """
        steps = find_front({name: self.points[name] for name in self.front})
        if len(self.points) - len(self.controls) < 2 or not steps:  # no system to beat
            return []
        first, last = self.points[steps[0]], self.points[steps[-1]]
        corners = [(first[0], low), first]
        for before, after in pairwise(steps):
            corners += [(self.points[after][0], self.points[before][1]), self.points[after]]
        return [*corners, (high, last[1])]


def find_baseline(result: EvalResult) -> str | None:
    """Return the name of the baseline, if it is in the result."""
    comparison = result.comparison
    named = comparison.baseline if comparison is not None else result.settings.baseline
    return named if named in result.summary else None


def choose_quality(result: EvalResult) -> str:
    """Choose the key for quality: with several datasets, the mean of the datasets' means."""
    return find_score_key(result.summary.values())


def choose_cost(result: EvalResult) -> Cost | None:
    """Choose the cost of the front; in a run without a front, the cost that most systems have.

    The front uses dollars, else tokens that the model reads, else tokens for each pass.
    """
    for number in (NUMBERS[key] for key in PARETO_COSTS):
        if values := _read_key(result, number.key):
            title, unit = number.title, "usd" if number.unit == "dollars" else number.unit
            if set(values) <= set(result.settings.unread):  # no model read anything
                title = title.replace("tokens that the model reads", "tokens kept")
            failed = any(own.get(NUM_ERRORS) for own in result.summary.values())
            return Cost(values, f"{title}, failures included" if failed else title, unit)
    returns = result.settings.returns
    read: dict[str, float] = {}
    for name, values in result.summary.items():
        if math.isfinite(values.get(MEAN_UPSTREAM_TOKENS, math.nan)):
            read[name] = values[MEAN_UPSTREAM_TOKENS]
        elif returns.get(name) == "context" and math.isfinite(values.get(MEAN_OUTPUT_TOKENS, math.nan)):
            read[name] = values[MEAN_OUTPUT_TOKENS]
    ways = (
        Cost(_read_key(result, COST_PER_1K_USD), *_DOLLARS),
        Cost(read, *_READ),
        Cost(_read_key(result, COST_OF_PASS), "tokens for each example that passed", "tokens"),
    )
    most = max(len(way.values) for way in ways)
    return next((way for way in ways if way.values and len(way.values) == most), None)


def _read_key(result: EvalResult, key: str) -> dict[str, float]:
    return {
        name: values[key]
        for name, values in result.summary.items()
        if key in values and math.isfinite(values[key]) and values[key] > 0
    }


def find_front(points: dict[str, tuple[float, float]]) -> list[str]:
    """Find the undominated systems: by rising cost, each with more quality than all cheaper ones.

    Systems at the same point do not dominate each other.
    """
    front: list[str] = []
    for name, (cost, quality) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1])):
        last = points[front[-1]] if front else (0.0, -math.inf)
        if quality > last[1] or (cost, quality) == last:
            front.append(name)
    return front


def read_quality_cost(result: EvalResult) -> QualityCost | None:
    """Read quality and cost of a result; None if no system has both."""
    cost, key = choose_cost(result), choose_quality(result)
    summary = result.summary
    if cost is None:
        return None
    points = {
        name: (cost.values[name], summary[name][key])
        for name in summary
        if name in cost.values and math.isfinite(summary[name].get(key, math.nan))
    }
    compared = result.settings.baseline or ""
    points = {name: at for name, at in points.items() if not are_unlike(result.config, name, compared)}
    if not points:
        return None
    controls = set(result.settings.controls)
    blind = [name for name in points if result.comparison is not None and result.comparison.explain_blindness(name)]
    competing = {name: at for name, at in points.items() if name not in controls.union(blind)}
    front = find_front(competing)
    if any(PARETO_FRONT in values for values in summary.values()):
        front = sorted((name for name in competing if summary[name].get(PARETO_FRONT)), key=lambda name: points[name])
    unneeded = result.comparison is not None and bool(result.comparison.context_unneeded)
    front = [] if unneeded else front
    return QualityCost(
        key=key,
        cost=cost,
        points=points,
        front=front,
        controls=[name for name in points if name in controls],
        missing=[name for name in summary if name not in points and not are_unlike(result.config, name, compared)],
        needs_no_context=unneeded,
        blind=blind,
    )


def find_limits(interval: Interval | None) -> tuple[float, float] | None:
    """Return the drawable limits of an interval; None if unknown or from too few examples."""
    if interval is None or not interval.known or interval.mark == TOO_FEW:
        return None
    return interval.low, interval.high


def write_limits(limits: tuple[float, float] | None) -> str:
    """Write the limits of an interval after its value; empty if there are none."""
    return f" [{score(limits[0])}, {score(limits[1])}]" if limits else ""


def write_amount(value: float) -> str:
    """Write a number of tokens; a small one with three significant digits."""
    return tokens(value) if value >= 10 else f"{value:.3g}"


def _explain_missing(result: EvalResult) -> str:
    """Say that the plot lacks a score or a cost, and which metrics would provide it."""
    given = set().union(*result.summary.values())
    needed = ["mean-score"] if choose_quality(result) not in given else []
    needed += ["cost-of-pass"] if choose_cost(result) is None and COST_OF_PASS not in given else []
    reason = "no system has both a score and a cost"
    return f"{reason}; add to metrics: {', '.join(needed)}" if needed else reason


def draw_pareto(result: EvalResult) -> Drawn:
    """Draw quality against tokens or dollars."""
    data = read_quality_cost(result)
    if data is None:
        return _explain_missing(result)
    labels, quality = label_systems(data.points), data.key.replace("_", " ")
    limits = {name: find_limits(result.intervals.get(name, {}).get(data.key)) for name in data.points}
    xs = make_cost_scale([cost for cost, _ in data.points.values()], wide=data.is_wide)
    ys = make_score_scale([value for _, value in data.points.values()], limits.values())
    show = dollars if data.cost.unit == "usd" else tokens
    points, lines = [], []
    for name, number in number_series(result.summary).items():
        if name not in data.points:
            continue
        cost, value = data.points[name]
        look: Look = "control" if name in data.controls else "filled" if name in data.front else "hollow"
        tip = f"{name}: {quality} {score(value)}{write_limits(limits[name])}; {data.cost.title}: {show(cost)}"
        points.append(Point(cost, value, labels[name], tip, number, look, limits[name]))
        on_front = {"control": "control", "filled": "yes", "hollow": "no"}[look]
        lines.append([name, show(cost), score(value), on_front])
    corners = data.trace_front(ys.low, xs.high)
    legend = [Key("on the Pareto front"), Key("off it", "hollow")]
    legend += [Key("control", "control")] if data.controls else []
    return Chart(
        "pareto",
        "quality against cost",
        title_pareto(data, labels),
        _explain(data, has_front=bool(corners)),
        Plane(
            Axis(data.cost.title, xs, dollars if data.cost.unit == "usd" else write_amount),
            Axis(quality, ys),
            points,
            [Line("front", corners)] if corners else [],
            legend,
        ),
        ["system", data.cost.title, quality, "on the front"],
        lines,
    )


def title_pareto(data: QualityCost, labels: dict[str, str]) -> str:
    """Write the main observation: the systems on the front."""
    competing = [labels[name] for name in data.points if name not in data.controls]
    if not competing:
        return "Quality against cost of the controls"
    if not data.front and data.needs_no_context:
        return "Quality against cost: examples need no context"
    if data.blind:
        names = list_names([labels[name] for name in data.blind], 3)
        return f"Quality against cost: this data cannot show whether {names} loses anything"
    if not data.front:
        return f"The baseline dominates {list_names(competing, 3)}"
    if len(competing) == 1:
        return f"Quality and cost of {competing[0]}"
    return f"On the Pareto front of quality and cost: {list_names([labels[name] for name in data.front], 3)}"


def _explain(data: QualityCost, *, has_front: bool) -> list[str]:
    notes = ["Up and to the left is better. Whiskers are 95% intervals."]
    if has_front:
        notes.append("The dashed line is the front.")
    if data.controls:
        notes.append(f"Controls do not compete: {list_names(list(label_systems(data.controls).values()))}.")
    if data.missing:
        notes.append(f"Not measured, so not drawn: {list_names(list(label_systems(data.missing).values()))}.")
    return notes
