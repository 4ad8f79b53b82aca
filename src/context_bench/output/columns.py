"""The table of systems for terminal and page: its columns, and its cells with intervals and stars."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from context_bench.numbers import (
    COMPRESSION_RATIO,
    ERROR_RATE,
    EVIDENCE_SURVIVAL,
    MACRO_SCORE,
    MEAN_SCORE,
    NUM_ERRORS,
    NUM_EXAMPLES,
    NUMBERS,
    PARETO_FRONT,
    PARETO_RANK,
    PROMPT_SAVINGS,
    QUALITY,
    SYSTEMS,
    Number,
    get_number,
    list_numbers,
    score,
)
from context_bench.output.layout import format_as
from context_bench.results import EvalResult
from context_bench.stats import TOO_FEW, Interval

Column = tuple[str, str, Callable[[float], str]]  # title, key of the summary, and the function that writes its value

_READ, _OWN, _UNREAD = "system", "own query", "context, not read"  # the titles of the tables of systems


def make_columns(table: str) -> list[Column]:
    """Make the columns of a table from the declared numbers."""
    return [(each.title, each.key, each.show) for each in list_numbers(table)]


def choose_columns(result: EvalResult, *, wide: bool = True) -> list[Column]:
    """Choose the columns with values in this run; rarely needed columns only if `wide`."""
    shown = [
        each for each in list_numbers(SYSTEMS) if _is_shown(each, result.summary) and not is_replaced(each, result)
    ]
    if any(each.key == PARETO_FRONT for each in shown):  # ranks of points claim more than the data show
        shown = [each for each in shown if each.key != PARETO_RANK]
    if not wide:
        several = any(each.key == MACRO_SCORE for each in shown)
        shown = [each for each in shown if not (each.wide or (several and each.key == MEAN_SCORE))]
    evidence = NUMBERS[EVIDENCE_SURVIVAL]
    if _is_shown(evidence, result.summary) and is_answered_by_script(result):
        # A script's answers say little; evidence survival is the result of such a run.
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
    further = further if wide else []
    known = {key for _, key, _ in (*columns, *further)}
    own = [(key, key, show) for key, show in own_columns(result).items() if key not in known]
    return tell_apart([*columns, *dict.fromkeys(further), *own])


def tell_apart(columns: Sequence[Column]) -> list[Column]:
    """Rename the column of tokens saved in contexts if tokens saved in whole prompts are shown too."""
    both = any(key == PROMPT_SAVINGS for _, key, _ in columns)
    of_context = {COMPRESSION_RATIO: "context saved"} if both else {}
    return [(of_context.get(key, title), key, show) for title, key, show in columns]


def own_columns(result: EvalResult) -> dict[str, Callable[[float], str]]:
    """List the numbers of a user's metrics, each with the function that formats it."""
    columns = result.settings.columns
    return {key: format_as(form) for key, form in columns.items() if _is_shown(Number(key), result.summary)}


def _is_shown(number: Number, summary: dict[str, dict[str, float]]) -> bool:
    values = [own[number.key] for own in summary.values() if number.key in own]
    if number.key.endswith("_usd"):  # without a price there is nothing to compare
        return not all(map(math.isnan, values))
    return any(values) if number.hide_zero else bool(values)


def is_replaced(number: Number, result: EvalResult) -> bool:
    """Whether every system has a more informative number, such as one from a tap."""
    better = number.replaced_by
    return bool(better and result.summary) and all(better in values for values in result.summary.values())


def is_answered_by_script(result: EvalResult) -> bool:
    """Whether a script answered instead of a model."""
    reports = result.settings.reports.values()
    return any(str(report.get("answered_by", "")).startswith("scripted/") for report in reports)


def describe_memory(result: EvalResult, name: str) -> dict[str, Any]:
    """Return the run's record about the memory behind a line of its result."""
    report = result.settings.reports.get(name) or {}
    return report.get("memory") or {}


def is_read_by_script(result: EvalResult) -> bool:
    """Whether a script, not a model, answered from the retrieved text; False if nothing was read."""
    read = any(describe_memory(result, name).get("answers") == "reader" for name in result.summary)
    return read and result.settings.read_by_script


def is_own_beside_script(result: EvalResult, name: str) -> bool:
    """Whether a line has a system's own answers while a script answered in other lines; only --wide shows it."""
    return describe_memory(result, name).get("answers") == "own" and is_read_by_script(result)


def list_tables(result: EvalResult) -> list[tuple[str, list[str]]]:
    """List the tables of systems with their titles, one table for each kind of score.

    Memory systems that answer by themselves are separate from memory systems with a reader, and contexts that no model
    has read are separate from answers. The baseline's table comes first; it includes systems of unknown kind.
    """
    reports, returns = result.settings.reports, result.settings.returns
    default = result.settings.score_field == "score"  # otherwise all systems have one score
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


Show = Callable[[float], str]

BEST = "★"  # marks the best value of a column without colour
HEADLINES = {key for key, number in NUMBERS.items() if number.headline}
"""The most important numbers; JSON has the intervals of all other numbers."""
_INSTEAD = ("not priced", "not claimed")  # notes with these first words replace the number
_MARK = "*"


def find_best(result: EvalResult, key: str, show: Show, names: Iterable[str] | None = None) -> set[str]:
    """Find the systems with the best value of a column, among all or the named systems; equal cells share the star.

    Controls do not compete, nor do systems without measured quality and memories that stored nothing: saving without
    quality is easy. A system that is shown to fail more often than another does not compete in numbers that leave
    failures out. There is no best if all values are equal, if neither more nor less is better, if the examples do not
    need their context, if the best has too few examples for an interval, or if the intervals of times overlap.
    """
    number = get_number(key)
    sign = {"more": 1, "less": -1, "": 0}[number.better]
    if result.comparison is not None and result.comparison.context_unneeded:
        return set()
    aside = _list_aside(result, _find_dataset(key)) | (_find_unjudged(result) if number.from_scores else set())
    competing = [name for name in (result.summary if names is None else names) if name not in aside]
    if not number.counts_failures:
        competing = _leave_out_failing(result, competing)
    values = {
        name: result.summary[name][key] for name in competing if math.isfinite(result.summary[name].get(key, math.nan))
    }
    written = {name: show(value) for name, value in values.items()}
    if not sign or len(set(written.values())) < 2:
        return set()
    top = max(values, key=lambda name: sign * values[name])
    if values[top] <= number.star_above:
        return set()
    known = {name: each for name in values if (each := result.intervals.get(name, {}).get(key)) is not None}
    few = {name for name, each in known.items() if not each.known or each.mark == TOO_FEW}
    others = [each for name, each in known.items() if name != top]
    if number.unit == "seconds" and top in known and any(known[top].high >= each.low for each in others):
        return set()
    return {name for name, text in written.items() if text == written[top] and name not in few}


def _leave_out_failing(result: EvalResult, names: Sequence[str]) -> list[str]:
    """Leave out systems that are shown to fail more often than another one."""
    rates = {name: each for name in names if (each := result.intervals.get(name, {}).get(ERROR_RATE)) is not None}
    least = min((rate.high for rate in rates.values() if rate.known), default=math.inf)
    return [name for name in names if name not in rates or not rates[name].low > least]


def _find_dataset(key: str) -> str | None:
    """Return the dataset of a number; None for a number over all datasets."""
    tag = key.partition("@")[2]
    return tag or (key.removeprefix("dataset:") if key.startswith("dataset:") else None)


def _list_aside(result: EvalResult, dataset: str | None) -> set[str]:
    """List the systems that do not compete for stars in a column over all datasets or one."""
    aside = set(result.settings.controls)
    if (comparison := result.comparison) is not None:
        places = (None, dataset)
        aside |= {name for name in result.summary if any(comparison.is_blind(name, place) for place in places)}
    for name, values in result.summary.items():
        quality = [values[key] for key in QUALITY if key in values]
        if quality and not any(map(math.isfinite, quality)):
            aside.add(name)
    if result.settings.memory:
        from context_bench.memory.findings import find_empty_stores

        aside |= find_empty_stores(result).keys()
    return aside


def _find_unjudged(result: EvalResult) -> set[str]:
    """Find the systems without a verdict in a run that compares systems."""
    comparison = result.comparison
    if comparison is None:
        return set(result.summary) if result.settings.unread else set()
    return {name for name in result.summary if comparison.explain_silence(name)}


def write_cell(result: EvalResult, name: str, key: str, show: Show, *, best: bool = False, limits: bool = False) -> str:
    """Write a number of a system, with a star if it is the best and an asterisk if a note explains it.

    With `limits`, append the interval.
    """
    values, notes = result.summary[name], result.notes.get(name, {})
    if key not in values:
        return f"–{_MARK}" if key in notes else "–"
    value = values[key]
    if math.isnan(value):
        return next((word for word in _INSTEAD if notes.get(key, "").startswith(word)), "not measured")
    if key == NUM_ERRORS and 0 < value == values.get(NUM_EXAMPLES):
        return "all failed"
    interval = result.intervals.get(name, {}).get(key) if key in HEADLINES else None
    text = show(value)
    seeds = len(result.settings.seeds.get(name, ()))
    if key == NUM_EXAMPLES and seeds > 1 and value % seeds == 0:
        text = f"{show(value / seeds)} × {seeds}"  # the seeds are repeated answers to the same examples
    if interval is not None and interval.known and show is score:
        text = f"{value:.{max(3, interval.find_decimals())}f}"  # with fewer digits, it may seem outside its interval
    marked = key in notes and key != PARETO_FRONT  # every system that is off the front has a note
    shown = (BEST if best else "") + text + (_MARK if marked else "")
    return shown if interval is None or not limits else f"{shown} {write_limits(interval, show)}"


def write_limits(interval: Interval, show: Show) -> str:
    """Write an interval as `[0.70, 0.78]`, or as `± 0.04` if it is symmetric; the unit is not repeated."""
    if not interval.known or interval.mark == TOO_FEW:
        return f"({TOO_FEW})"
    if show is score:
        show = f"{{:.{interval.find_decimals()}f}}".format
    half = interval.high - interval.value
    even = interval.symmetric and show(interval.high) != show(interval.value)  # ± 0.0 would claim certainty
    ends = [half] if even else [interval.low, interval.high]
    units = {"".join(re.findall(r"(?<=\d)\D*$", show(each))) for each in (*ends, interval.value)}
    unit = units.pop() if len(units) == 1 else ""
    texts = [show(each).removesuffix(unit) for each in ends]
    limits = f"± {texts[0]}" if even else f"[{', '.join(texts)}]"
    return f"{limits} {interval.mark}" if interval.mark else limits


def has_intervals(result: EvalResult) -> bool:
    """Whether any of the most important numbers has an interval."""
    return any(
        HEADLINES & known.keys() & result.summary.get(name, {}).keys() for name, known in result.intervals.items()
    )
