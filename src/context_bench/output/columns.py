"""Which numbers stand in the table of systems and how each is written, in the terminal and on the page alike."""

from __future__ import annotations

import math
from collections.abc import Callable

from context_bench.output.layout import dollars, format_as, percent, score, seconds, tokens
from context_bench.results import EvalResult

__all__ = [
    *("LESS_THAN_THE_TAP", "Column", "all_metered", "choose_columns", "is_answered_by_script", "list_tables"),
    "own_columns",
]

Column = tuple[str, str, Callable[[float], str]]
"""Title, key of the summary, and how its value is written."""

_EVIDENCE: Column = ("evidence", "evidence_survival", percent)
_COLUMNS: tuple[Column, ...] = (
    ("n", "num_examples", "{:,.0f}".format),
    ("errors", "num_errors", "{:,.0f}".format),
    ("unscored", "num_unscored", "{:,.0f}".format),
    ("macro score", "macro_score", score),
    ("score", "mean_score", score),
    ("official", "official_score", score),
    ("pass rate", "pass_rate", percent),
    ("judge score", "mean_score:judge_score", score),
    ("card pass rate", "card_pass_rate", percent),
    ("pass@k", "pass_at_k", percent),
    ("pass^k", "pass_all_k", percent),
    ("flips", "repeat_flips", percent),
    ("repeat variance", "repeat_variance_share", percent),
    ("compression", "compression_ratio", percent),
    ("savings", "prompt_savings", percent),
    ("untouched", "untouched_share", percent),
    ("cost of pass", "cost_of_pass", tokens),
    ("model tokens / pass", "upstream_cost_of_pass", tokens),
    ("$ / pass", "cost_of_pass_usd", dollars),
    ("$ / 1k", "cost_per_1k_usd", dollars),
    ("$ saved / 1k", "saved_per_1k_usd", dollars),
    ("embedding $", "embedding_cost_usd", dollars),
    ("judge $", "judge_cost_usd", dollars),
    ("latency p50", "latency_median", seconds),
    ("p95", "latency_p95", seconds),
    ("overhead p50", "proxy_overhead_median", seconds),
    ("first token", "first_token_overhead_median", seconds),
    ("retention", "retention", percent),
    ("Pareto", "pareto_front", lambda value: "front" if value else "off"),
    ("Pareto rank", "pareto_rank", "{:.0f}".format),
)
_WHEN_NOT_ZERO = {"num_errors", "num_unscored"}
LESS_THAN_THE_TAP = {"compression_ratio", "cost_of_pass"}
"""Columns that say less than what a tap or a reader saw; left out where that is known of every system."""


_READ, _OWN, _UNREAD = "system", "own query", "context, not read"
"""The titles of the tables of systems."""


def choose_columns(result: EvalResult) -> list[Column]:
    """Choose the columns that this run has something for."""
    columns = [column for column in _COLUMNS if _is_shown(column[1], result.summary)]
    if any(key == "pareto_front" for _, key, _ in columns):  # ranks of points say more than the data show
        columns = [column for column in columns if column[1] != "pareto_rank"]
    if all_metered(result):
        columns = [column for column in columns if column[1] not in LESS_THAN_THE_TAP]
    if _is_shown(_EVIDENCE[1], result.summary) and is_answered_by_script(result):
        # A script's answers say little; whether the evidence got through says what the run is about.
        places = [place for place, column in enumerate(columns) if column[1] in ("macro_score", "mean_score")]
        place = min(places, default=len(columns))
        columns.insert(place, _EVIDENCE)
    first = [key for _, key, _ in _COLUMNS]
    further = [
        (key, key, show)
        for values in result.summary.values()
        for key in values
        for plain, show in [(key.partition(":")[0], _format_of(key.partition(":")[0]))]
        if ":" in key and key not in first and plain in first and show is not None
    ]
    known = {key for _, key, _ in (*columns, *further)}
    own = [(key, key, show) for key, show in own_columns(result).items() if key not in known]
    return [*columns, *dict.fromkeys(further), *own]


def own_columns(result: EvalResult) -> dict[str, Callable[[float], str]]:
    """List the numbers of metrics that do not ship with the package, with how each is written."""
    columns = result.settings.columns
    return {key: format_as(form) for key, form in columns.items() if _is_shown(key, result.summary)}


def _format_of(key: str) -> Callable[[float], str] | None:
    return next((show for _, each, show in _COLUMNS if each == key), None)


def _is_shown(key: str, summary: dict[str, dict[str, float]]) -> bool:
    values = [own[key] for own in summary.values() if key in own]
    if key.endswith("_usd"):  # where nothing is priced there is nothing to compare
        return not all(map(math.isnan, values))
    return any(values) if key in _WHEN_NOT_ZERO else bool(values)


def is_answered_by_script(result: EvalResult) -> bool:
    """Whether a script answered in place of a model."""
    reports = result.settings.reports.values()
    return any(str(report.get("answered_by", "")).startswith("scripted/") for report in reports)


def all_metered(result: EvalResult) -> bool:
    """Whether it is known of every system what the model behind it got to read."""
    return bool(result.summary) and all("prompt_savings" in values for values in result.summary.values())


def list_tables(result: EvalResult) -> list[tuple[str, list[str]]]:
    """List the tables of systems, each with its title: those whose scores are of one kind stand together.

    Memory systems that answer by themselves stand apart from those with a reader, and contexts that no model has read
    apart from answers. The baseline's table comes first, with the systems of which no kind is known.
    """
    reports, returns = result.settings.reports, result.settings.returns
    default = result.settings.score_field == "score"  # else it is one score for all
    unread = result.settings.unread if default else ()
    kinds = {}
    for name in result.summary:
        own = ((reports.get(name) or {}).get("memory") or {}).get("answers") == "own"
        kinds[name] = _OWN if own else _UNREAD if name in unread else _READ if name in returns else ""
    first = kinds.get(result.settings.baseline or "") or next(filter(None, kinds.values()), _READ)
    tables = {
        title: [name for name, kind in kinds.items() if (kind or first) == title] for title in (_READ, _OWN, _UNREAD)
    }
    found = [(title, names) for title, names in tables.items() if names] or [(_READ, [])]
    found.sort(key=lambda table: table[0] != first)
    return found if len(found) != 1 or found[0][0] == _OWN else [(_READ, found[0][1])]
