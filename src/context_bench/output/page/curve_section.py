"""The curve of a sweep: quality against tokens for each setting of a knob, as a plot and as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from context_bench.numbers import percent, tokens
from context_bench.output.page.axes import table
from context_bench.output.page.elements import Child, Markup, element, join
from context_bench.output.page.plot_curve import plot_curves
from context_bench.output.page.run_facts import RunFacts
from context_bench.output.tables import sum_up_curve, write_difference

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve

__all__ = ["describe_curves"]


def describe_curves(facts: RunFacts) -> Markup:
    """Lay out the curves of a run, or say why there is none."""
    if not facts.has_sweep:
        why = "Not measured: no system was run with several settings of a knob (as in truncate:ratio=0.3|0.5|0.7)."
        return element("p", {"class": "missing"}, why)
    if facts.sweep_rows is None:
        return element(
            "p", {"class": "missing"}, "Not drawn: the run has too many rows; context-bench runs show has them."
        )
    curves = facts.draw_curves()
    if not curves:
        return element("p", {"class": "missing"}, "Not measured: the rows were not kept.")
    return join(plot_curves(facts, curves), *(_describe(curve) for curve in curves))


def _describe(curve: Curve) -> Markup:
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
