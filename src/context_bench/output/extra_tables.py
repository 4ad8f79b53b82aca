"""Tables beneath the main one: what reached the model, what became of the evidence, and the curves of sweeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from context_bench.output.fitting import fit_columns, fit_grid, wrap
from context_bench.output.layout import escape_note, percent, tokens
from context_bench.results import EvalResult
from context_bench.stats import Interval
from context_bench.text import count_things

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve, Point

__all__ = ["curve_tables", "evidence", "list_meters", "meters", "sum_up_curve", "upstream_notes", "write_difference"]


Values = dict[str, float]
Column = tuple[str, str | Callable[[Values], float | None], Callable[[float], str]]
"""A title, the key of a number or what makes it of a system's summary, and how it is shown."""


def _take_tap_savings(values: Values) -> float | None:
    """Take the savings that a tap counted; the summary of a system without one has no `downstream_tokens`."""
    return values.get("counted_tokens_saved") if "downstream_tokens" in values else None


def _take_reader_savings(values: Values) -> float | None:
    """Take the savings of a compressor by the count of what its reader was sent."""
    return None if "downstream_tokens" in values else values.get("counted_tokens_saved")


def _take_sent(values: Values) -> float | None:
    """Take what was sent for the rows whose upstream tokens are known; without a tap, for those with savings."""
    return values.get("downstream_tokens", values.get("sent_tokens"))


def _count(value: float) -> str:
    return f"{value:.0f}"


def _unless_zero(key: str) -> Callable[[Values], float | None]:
    """A number that is worth a column only where it is not 0."""
    return lambda values: values.get(key) or None


_METERS: tuple[Column, ...] = (
    ("sent", _take_sent, tokens),
    ("reached the model", "upstream_tokens", tokens),
    ("saved, by the tap", _take_tap_savings, tokens),
    ("saved, as sent", _take_reader_savings, tokens),
    ("savings at best", "prompt_savings_best", percent),
    ("at worst", "prompt_savings_worst", percent),
    ("saved, its own claim", "claimed_tokens_saved", tokens),
    ("prompt, by API usage", "usage_prompt_tokens", tokens),
    ("extra calls", "extra_upstream_calls", _count),
    ("extra at worst", "extra_upstream_calls_worst", _count),
    ("lost calls", _unless_zero("lost_upstream_calls"), _count),
    ("tokens lost with them", _unless_zero("lost_upstream_tokens"), tokens),
    ("answers without a call", _unless_zero("answers_without_call"), _count),
    ("cached answers", _unless_zero("cached_answers"), _count),
)
_EVIDENCE: tuple[Column, ...] = (
    ("rows", "evidence_rows", _count),
    ("verbatim", "evidence_verbatim", percent),
    ("recoverable", "evidence_recoverable", percent),
    ("lost", "evidence_lost", percent),
    ("lost and rewritten", _unless_zero("evidence_rewritten"), percent),
    ("survived at best", "evidence_survival_best", percent),
    ("at worst", "evidence_survival_worst", percent),
    ("lost by the system", "lost_by_system", percent),
    ("failed anyway", "failed_anyway", percent),
    ("right without it", "right_without_evidence", percent),
)
_PREFIX: tuple[Column, ...] = (
    ("prefix kept", "prefix_stability", percent),
    ("first message changed", "first_message_changed", percent),
    ("history rewritten", "rewritten_history", percent),
)


_LOCAL = "smoke test: the model `local` is a small one on this machine; its scores say nothing about a real model"


def meters(result: EvalResult, width: int | None = None) -> str:
    """Tokens as the tap counted them, as the proxy claims them, and as the API bills them."""
    return "\n\n".join(fit_grid(lines, width) for lines in list_meters(result))


def list_meters(result: EvalResult) -> list[list[list[str]]]:
    """List the tables of tokens and of the prompt cache as texts, titles first, where there is anything in them."""
    tables = (("tokens", _METERS), ("prompt cache", _PREFIX))
    return [lines for title, columns in tables if (lines := _list_lines(result, title, columns))]


def evidence(result: EvalResult, width: int | None = None) -> str:
    """Whether what the answer needs reached the model, against whether the answer was right."""
    lines = _list_lines(result, "evidence", _EVIDENCE)
    return fit_grid(lines, width) if lines else ""


def _list_lines(result: EvalResult, title: str, columns: Sequence[Column]) -> list[list[str]]:
    """The systems that have any of these numbers; nothing when none has the first."""
    first = columns[0]
    systems = {name: values for name, values in result.summary.items() if _read(first, values) is not None}
    shown = [column for column in columns if any(_read(column, values) is not None for values in systems.values())]
    if not systems:
        return []
    lines = [[title, *(head for head, _, _ in shown)]]
    for name, values in systems.items():
        cells = [(column[2], _read(column, values)) for column in shown]
        lines.append([name, *("–" if value is None else show(value) for show, value in cells)])
    return lines


def _read(column: Column, values: Values) -> float | None:
    source = column[1]
    return values.get(source) if isinstance(source, str) else source(values)


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
