"""Curves as tables: a line for each setting of a knob, and what the whole curve says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from context_bench.reporters.fitting import fit_columns, wrap
from context_bench.reporters.layout import percent, tokens
from context_bench.reporters.plain_text import escape_note
from context_bench.results import EvalResult
from context_bench.stats import Interval

if TYPE_CHECKING:
    from context_bench.curves import Curve, Point

__all__ = ["curve_tables", "sum_up_curve", "write_difference"]

_GIVE_WAY = ("against the baseline", "saved", "tokens")


def curve_tables(result: EvalResult, width: int | None = None) -> list[str]:
    """Give a table and a few lines for each curve of a result."""
    return [_render(curve, width) for curve in result.curves()]


def _render(curve: Curve, width: int | None) -> str:
    lines = [[f"{curve.name}: {curve.knob}", "tokens", "saved", "score", "against the baseline"]]
    for point in curve.points:
        difference = "baseline" if point.difference is None else write_difference(point.difference)
        saved = "–" if math.isnan(point.saving) else percent(point.saving)
        count = "–" if math.isnan(point.tokens) else tokens(point.tokens)
        lines.append([point.setting, count, saved, point.quality.render(), difference])
    table = fit_columns(lines, width, _GIVE_WAY)
    return "\n".join([table, "", *(wrap(escape_note(line), width) for line in sum_up_curve(curve))])


def write_difference(interval: Interval) -> str:
    """Write a difference with its interval."""
    shown = f"{interval.value:+.3f}"
    if not interval.known:
        return f"{shown} ({interval.mark})"
    return f"{shown} [{interval.low:+.3f}, {interval.high:+.3f}]"


def sum_up_curve(curve: Curve) -> list[str]:
    """Say in a few sentences what the whole curve tells."""
    name = "macro score" if curve.metric == "macro_score" else "score"
    lines = [f"{curve.tokens_title}; {name} with 95% intervals; baseline: {curve.baseline}."]
    if curve.area is not None and curve.span is not None:
        low, high = curve.span
        line = f"area under the curve: {curve.area.render()} from {low:,.0f} to {high:,.0f} tokens"
        if curve.area_difference is not None:
            line += f"; {write_difference(curve.area_difference)} against the first curve"
        lines.append(f"{line}.")
    lines.append(_describe_best(curve, curve.best_point))
    return [*lines, *([f"{curve.note}."] if curve.note else [])]


def _describe_best(curve: Curve, best: Point | None) -> str:
    within = f"not worse than {curve.baseline} within {curve.margin:g}"
    if best is None:
        return f"largest saving that is {within}: none is shown to be."
    return f"largest saving that is {within}: {percent(best.saving)}, with {curve.knob}={best.setting}."
