"""The cells of the table of systems: a number with its interval, and a star at the best of its column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from context_bench.numbers import ERROR_RATE, NUM_ERRORS, NUM_EXAMPLES, NUMBERS, QUALITY, get_number, score
from context_bench.results import EvalResult
from context_bench.stats import TOO_FEW, Interval

__all__ = ["BEST", "HEADLINES", "find_best", "has_intervals", "write_cell", "write_limits"]

Show = Callable[[float], str]

BEST = "★"
"""Stands before the best value of a column; it needs no colour."""
HEADLINES = {key for key, number in NUMBERS.items() if number.headline}
"""The numbers that are read first; the others have their intervals in JSON."""
_NOT_MEASURED = "not measured"
_INSTEAD = ("not priced", "not claimed")
"""Words that stand for a number whose note begins with them."""
_MARK = "*"


def find_best(result: EvalResult, key: str, show: Show, names: Iterable[str] | None = None) -> set[str]:
    """Find the systems with the best value of a column, among all or among those named; equal texts share it.

    Floors, ceilings and controls do not compete, nor do systems whose quality was not measured and memories that stored
    nothing: to save at no quality is easy. A system that is shown to fail more often than another does not compete by
    numbers that leave failures out. There is none where nothing is told apart, where neither more nor less is better,
    where the examples do not need their context,
    where the best has too few examples for an interval, or where the intervals of times overlap.
    """
    number = get_number(key)
    sign = {"more": 1, "less": -1, "": 0}[number.better]
    if result.comparison is not None and result.comparison.context_unneeded:
        return set()
    aside = _list_aside(result) | (_find_unjudged(result) if number.from_scores else set())
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
    if (
        number.unit == "seconds"
        and top in known
        and any(known[top].high >= known[name].low for name in known if name != top)
    ):
        return set()
    return {name for name, text in written.items() if text == written[top] and name not in few}


def _is_judged(values: Mapping[str, float]) -> bool:
    """Whether the quality of a system was measured, where any was to be."""
    found = [values[key] for key in QUALITY if key in values]
    return not found or any(map(math.isfinite, found))


def _leave_out_failing(result: EvalResult, names: Sequence[str]) -> list[str]:
    """Leave out systems whose share of failures is shown to be above that of another one."""
    rates = {name: each for name in names if (each := result.intervals.get(name, {}).get(ERROR_RATE)) is not None}
    least = min((rate.high for rate in rates.values() if rate.known), default=math.inf)
    return [name for name in names if name not in rates or not rates[name].low > least]


def _list_aside(result: EvalResult) -> set[str]:
    """List the systems that do not compete for stars."""
    aside = set(result.settings.controls)
    aside |= {name for name, values in result.summary.items() if not _is_judged(values)}
    if result.comparison is not None:
        aside |= {name for name in result.summary if result.comparison.is_blind(name)}
    if result.settings.memory:
        from context_bench.memory.findings import find_empty_stores

        aside |= find_empty_stores(result).keys()
    return aside


def _find_unjudged(result: EvalResult) -> set[str]:
    """Find the systems on whose score no verdict is given, though systems are compared."""
    comparison = result.comparison
    if comparison is None:
        return set(result.summary) if result.settings.unread else set()
    return {name for name in result.summary if comparison.explain_silence(name)}


def write_cell(result: EvalResult, name: str, key: str, show: Show, *, best: bool = False, limits: bool = False) -> str:
    """Write a number of a system, with a star where it is the best, an asterisk where a note explains it.

    Args:
        result: The run.
        name: The system.
        key: The number of its summary.
        show: How it is written.
        best: Whether it is the best of its column.
        limits: Whether its interval stands beside it.
    """
    values, notes = result.summary[name], result.notes.get(name, {})
    if key not in values:
        return f"–{_MARK}" if key in notes else "–"
    value = values[key]
    if math.isnan(value):
        return next((word for word in _INSTEAD if notes.get(key, "").startswith(word)), _NOT_MEASURED)
    if key == NUM_ERRORS and 0 < value == values.get(NUM_EXAMPLES):
        return "all failed"
    interval = result.intervals.get(name, {}).get(key) if key in HEADLINES else None
    text = show(value)
    if interval is not None and interval.known and show is score:
        text = f"{value:.{max(3, interval.find_decimals())}f}"  # with fewer digits than its limits it may seem outside
    shown = (BEST if best else "") + text + (_MARK if key in notes else "")
    return shown if interval is None or not limits else f"{shown} {write_limits(interval, show)}"


def write_limits(interval: Interval, show: Show) -> str:
    """Write an interval as in `[0.70, 0.78]`, or as in `± 0.04` where it is symmetric; a unit is not repeated."""
    if not interval.known or interval.mark == TOO_FEW:
        return f"({TOO_FEW})"
    if show is score:
        show = f"{{:.{interval.find_decimals()}f}}".format
    half = interval.high - interval.value
    even = interval.symmetric and show(interval.high) != show(interval.value)  # ± 0.0 would say too much
    ends = [half] if even else [interval.low, interval.high]
    units = {_find_unit(show(each)) for each in (*ends, interval.value)}
    unit = units.pop() if len(units) == 1 else ""
    texts = [show(each).removesuffix(unit) for each in ends]
    limits = f"± {texts[0]}" if even else f"[{', '.join(texts)}]"
    return f"{limits} {interval.mark}" if interval.mark else limits


def _find_unit(text: str) -> str:
    """Find what follows the digits of a number."""
    found = re.search(r"[^\d]*$", text)
    return found[0] if found and found[0] != text else ""


def has_intervals(result: EvalResult) -> bool:
    """Whether any number that is read first has an interval."""
    return any(
        HEADLINES & known.keys() & result.summary.get(name, {}).keys() for name, known in result.intervals.items()
    )
