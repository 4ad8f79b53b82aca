"""Tables beneath the main one: what reached the model, what became of the evidence, and the curves of sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from context_bench.numbers import CACHE, EVIDENCE, TOKENS, Number, get_number, list_numbers, percent, tokens
from context_bench.output.fitting import fit_columns, fit_grid, wrap
from context_bench.output.layout import escape_note
from context_bench.results import EvalResult
from context_bench.stats import Interval
from context_bench.text import count_things

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve, Point

__all__ = ["curve_tables", "evidence", "list_meters", "meters", "sum_up_curve", "upstream_notes", "write_difference"]


Values = dict[str, float]
Column = tuple[str, Callable[[Values], float | None], Callable[[float], str]]
"""A title, what reads the number off a system's summary, and how it is written."""


def _list_columns(table: str) -> list[Column]:
    """List the columns of a table as they are declared, but for tokens that mean one thing with a tap, one without."""
    columns: list[Column] = []
    for each in list_numbers(table):
        if each.key == "downstream_tokens":  # without a tap: what was sent for the rows with savings
            columns.append(
                (each.title, lambda values: values.get("downstream_tokens", values.get("sent_tokens")), tokens)
            )
        elif each.key == "counted_tokens_saved":
            for title, tapped in (("saved, by the tap", True), ("saved, as sent", False)):
                columns.append((title, partial(_read_saved, tapped=tapped), tokens))
        else:
            columns.append((each.title, partial(_read, each), each.show))
    return columns


def _read(number: Number, values: Values) -> float | None:
    value = values.get(number.key)
    return None if number.hide_zero and not value else value


def _read_saved(values: Values, *, tapped: bool) -> float | None:
    """Read the tokens saved of a system with a tap, or without one: its summary then has no `downstream_tokens`."""
    return values.get("counted_tokens_saved") if tapped == ("downstream_tokens" in values) else None


_LOCAL = "smoke test: the model `local` is a small one on this machine; its scores say nothing about a real model"


def meters(result: EvalResult, width: int | None = None) -> str:
    """Tokens as the tap counted them, as the proxy claims them, and as the API bills them."""
    return "\n\n".join(fit_grid(lines, width) for lines in list_meters(result))


def list_meters(result: EvalResult) -> list[list[list[str]]]:
    """List the tables of tokens and of the prompt cache as texts, titles first, where there is anything in them."""
    return [lines for table in (TOKENS, CACHE) if (lines := _list_lines(result, table))]


def evidence(result: EvalResult, width: int | None = None) -> str:
    """Whether what the answer needs reached the model, against whether the answer was right."""
    lines = _list_lines(result, EVIDENCE)
    return fit_grid(lines, width) if lines else ""


def _list_lines(result: EvalResult, table: str) -> list[list[str]]:
    """List the systems that have any number of a table, titles first; nothing when none has the first number."""
    columns = _list_columns(table)
    systems = {name: values for name, values in result.summary.items() if columns[0][1](values) is not None}
    shown = [column for column in columns if any(column[1](values) is not None for values in systems.values())]
    if not systems:
        return []
    lines = [[table, *(head for head, _, _ in shown)]]
    for name, values in systems.items():
        cells = [(show, read(values)) for _, read, show in shown]
        lines.append([name, *("–" if value is None else show(value) for show, value in cells)])
    return lines


def upstream_notes(result: EvalResult) -> list[str]:
    """List what must be known to read the numbers of a tap."""
    notes = []
    for name, report in result.settings.reports.items():
        if report.get("unmatched"):
            count = report["unmatched"]
            requests = f"{count_things(count, 'request')} {'fits' if count == 1 else 'fit'}"
            kept = f"; {report['unmatched_kept']:,} of them are kept" if "unmatched_kept" in report else ""
            notes.append(f"{name}: {requests} no single example and count for none{kept}.")
    labels = {report.get("label"): None for report in result.settings.reports.values()}
    if result.settings.model == "local" and not any(labels):
        labels[_LOCAL] = None
    return notes + [f"{label}." for label in labels if label]


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
    name = get_number(curve.metric).title
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
