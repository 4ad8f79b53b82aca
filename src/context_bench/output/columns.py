"""Which numbers stand in the table of systems and how each is written, in the terminal and on the page alike."""

from __future__ import annotations

import math
from collections.abc import Callable

from context_bench.numbers import (
    EVIDENCE_SURVIVAL,
    MACRO_SCORE,
    MEAN_SCORE,
    NUMBERS,
    PARETO_FRONT,
    PARETO_RANK,
    SYSTEMS,
    Number,
    get_number,
    list_numbers,
)
from context_bench.output.layout import format_as
from context_bench.results import EvalResult

__all__ = [
    *("Column", "choose_columns", "is_answered_by_script", "is_replaced", "list_tables", "own_columns"),
]

Column = tuple[str, str, Callable[[float], str]]
"""Title, key of the summary, and how its value is written."""

_READ, _OWN, _UNREAD = "system", "own query", "context, not read"
"""The titles of the tables of systems."""


def choose_columns(result: EvalResult) -> list[Column]:
    """Choose the columns that this run has something for."""
    shown = [
        each for each in list_numbers(SYSTEMS) if _is_shown(each, result.summary) and not is_replaced(each, result)
    ]
    if any(each.key == PARETO_FRONT for each in shown):  # ranks of points say more than the data show
        shown = [each for each in shown if each.key != PARETO_RANK]
    evidence = NUMBERS[EVIDENCE_SURVIVAL]
    if _is_shown(evidence, result.summary) and is_answered_by_script(result):
        # A script's answers say little; whether the evidence got through says what the run is about.
        places = [place for place, each in enumerate(shown) if each.key in (MACRO_SCORE, MEAN_SCORE)]
        shown.insert(min(places, default=len(shown)), evidence)
    columns = [(each.title, each.key, each.show) for each in shown]
    first = {each.key for each in list_numbers(SYSTEMS)}
    further = [
        (key, key, get_number(key).show)
        for values in result.summary.values()
        for key in values
        if ":" in key and key not in first and key.partition(":")[0] in first
    ]
    known = {key for _, key, _ in (*columns, *further)}
    own = [(key, key, show) for key, show in own_columns(result).items() if key not in known]
    return [*columns, *dict.fromkeys(further), *own]


def own_columns(result: EvalResult) -> dict[str, Callable[[float], str]]:
    """List the numbers of metrics that do not ship with the package, with how each is written."""
    columns = result.settings.columns
    return {key: format_as(form) for key, form in columns.items() if _is_shown(get_number(key), result.summary)}


def _is_shown(number: Number, summary: dict[str, dict[str, float]]) -> bool:
    values = [own[number.key] for own in summary.values() if number.key in own]
    if number.key.endswith("_usd"):  # where nothing is priced there is nothing to compare
        return not all(map(math.isnan, values))
    return any(values) if number.hide_zero else bool(values)


def is_replaced(number: Number, result: EvalResult) -> bool:
    """Whether every system has a number that says more, such as what a tap saw."""
    better = number.replaced_by
    return bool(better and result.summary) and all(better in values for values in result.summary.values())


def is_answered_by_script(result: EvalResult) -> bool:
    """Whether a script answered in place of a model."""
    reports = result.settings.reports.values()
    return any(str(report.get("answered_by", "")).startswith("scripted/") for report in reports)


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
