"""The charts of a run on the page, each with its caption and its numbers as a table, or why there is none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from context_bench.numbers import percent, tokens
from context_bench.output.elements import Child, Markup, element, join, table
from context_bench.output.extra_tables import list_meters, sum_up_curve, write_difference
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.plots.by_system import draw_datasets, draw_meters, draw_times
from context_bench.output.plots.chart import Chart, Drawn
from context_bench.output.plots.curve import draw_curve
from context_bench.output.plots.grids import draw_evidence, draw_heatmap
from context_bench.output.plots.pareto import draw_pareto
from context_bench.output.plots.svg import draw_figure

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve

__all__ = ["say_missing", "show_charts"]


def show_charts(facts: RunFacts) -> dict[str, Markup]:
    """Draw the charts of a run, by the part of the page that they stand in."""
    return {
        "pareto": _show(draw_pareto(facts.result)),
        "datasets": _show(draw_datasets(facts.result)),
        "curve": _show_curves(facts),
        "needles": _show(draw_heatmap(facts.result, facts.cells)),
        "evidence": _show_evidence(facts),
        "meters": _show_meters(facts),
        "times": join(_show(draw_times(facts.result, facts.latencies, "latency")), _show_overhead(facts)),
    }


def say_missing(why: str) -> Markup:
    """Say why a part of the page has nothing to show."""
    return element("p", {"class": "missing"}, why)


def _show(drawn: Drawn, *more: Child) -> Markup:
    """Put a chart over its caption, and its numbers as a table that can be opened, with more tables after it."""
    if isinstance(drawn, str):
        return say_missing(f"Not measured: {drawn}.")
    numbers = table(drawn.head, drawn.lines, drawn.subject.capitalize())
    return join(_show_figure(drawn, element("details", None, element("summary", None, "The numbers"), numbers, *more)))


def _show_figure(chart: Chart, numbers: Child) -> Markup:
    scrolls = {"class": "plot", "tabindex": 0, "role": "group", "aria-label": f"Plot: {chart.subject}"}
    caption = element("figcaption", None, " ".join([f"{chart.title}.", *chart.notes]))
    return element("figure", None, element("div", scrolls, draw_figure(chart)), caption, numbers)


def _show_evidence(facts: RunFacts) -> Markup:
    drawn = draw_evidence(facts.result)
    if isinstance(drawn, str) and facts.is_memory:
        drawn = "retrieved turns are compared with evidence turns; see Memory"
    elif isinstance(drawn, str) and facts.has_evidence is False:
        drawn = "the examples do not name the passages that an answer needs"
    return _show(drawn)


def _show_meters(facts: RunFacts) -> Markup:
    drawn = draw_meters(facts.result)
    counted = [table(head, lines, head[0].capitalize(), "plain") for head, *lines in list_meters(facts.result)]
    return join(*counted) if isinstance(drawn, str) and counted else _show(drawn, *counted)


def _show_overhead(facts: RunFacts) -> Markup:
    if not facts.overheads:
        return say_missing("Overhead of a proxy: not measured (a tap is needed).")
    title = element("h3", None, "Overhead of the proxy")
    return join(title, _show(draw_times(facts.result, facts.overheads, "overhead")))


def _show_curves(facts: RunFacts) -> Markup:
    """Lay out the curves of a run as a chart and as tables, or say why there is none."""
    if not facts.has_sweep:
        return say_missing(
            "Not measured: no system was run with several settings of a knob (as in truncate:ratio=0.3|0.5|0.7)."
        )
    if facts.sweep_rows is None:
        return say_missing("Not drawn: the run has too many rows; context-bench runs show has them.")
    curves = facts.draw_curves()
    if not curves:
        return say_missing("Not measured: the rows were not kept.")
    chart = draw_curve(facts.result, curves)
    return join(_show_figure(chart, None) if isinstance(chart, Chart) else None, *map(_describe_curve, curves))


def _describe_curve(curve: Curve) -> Markup:
    lines: list[list[Child]] = [
        [
            element("span", {"class": "best" if point.system == curve.best else None}, f"{curve.knob}={point.setting}"),
            "not measured" if math.isnan(point.tokens) else tokens(point.tokens),
            "not measured" if math.isnan(point.saving) else percent(point.saving),
            point.quality.render(),
            "baseline" if point.difference is None else write_difference(point.difference),
        ]
        for point in curve.points
    ]
    head = ["setting", "tokens", "saved", "score", "against the baseline"]
    notes = [element("li", None, line) for line in sum_up_curve(curve)]
    title = element("h3", None, f"{curve.name}: {curve.knob}")
    return join(title, table(head, lines, f"Curve of {curve.name}", "plain"), element("ul", {"class": "notes"}, *notes))
