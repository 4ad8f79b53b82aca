"""The tally of one metric (guarded for a user's metric), and all tallies of one system.

A user's metric may raise, or return something other than numbers: it then has no value, a note says why, and all other
numbers and rows are kept.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from context_bench.caveats import Census
from context_bench.errors import UsageError, describe
from context_bench.numbers import ERROR_RATE
from context_bench.numbers import list_keys as list_declared_keys
from context_bench.stats import Interval, share_interval
from context_bench.traits import (
    can_start,
    find_columns,
    find_keys,
    list_by_dataset,
    read_intervals,
    read_notes,
    read_unmeasured,
)
from context_bench.types import Metric, Tally

if TYPE_CHECKING:
    from context_bench.results import EvalRow


class FunctionMetric:
    """A plain function as a metric: it gets the rows of a system and returns a number, or numbers by name."""

    __slots__ = ("_function", "name")  # without __dict__, so that the record of a run contains no function

    def __init__(self, function: Callable[[Sequence[EvalRow]], Any]) -> None:
        self._function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))

    def compute(self, rows: Sequence[EvalRow]) -> dict[str, float]:
        found = self._function(rows)
        return found if isinstance(found, dict) else {self.name: found}


def is_built_in(metric: Metric) -> bool:
    """Whether a metric ships with the package; a user's class that extends one of ours does not."""
    return type(metric).__module__.startswith("context_bench.") and not isinstance(metric, FunctionMetric)


def list_keys(metric: Metric) -> tuple[str, ...] | None:
    """List the keys that a metric may give, with `{tag}` for a dataset; None if it does not declare them."""
    return (list_declared_keys(metric.name) or None) if is_built_in(metric) else find_keys(metric)


def start_tally(metric: Metric) -> Tally:
    if is_built_in(metric):
        tally: Tally = metric.start()  # type: ignore[attr-defined]
        return tally
    return GuardedTally(metric)


class _ListTally:
    """Keeps all rows, for a metric that takes them as a list."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._rows: list[EvalRow] = []

    def add(self, row: EvalRow) -> None:
        self._rows.append(row)

    def result(self) -> dict[str, float]:
        return self._metric.compute(self._rows)


class GuardedTally:
    """The tally of a user's metric; `failure` is its exception, or how it broke its contract."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self.failure: str | None = None
        self._tally: Any = None
        try:
            self._tally = metric.start() if can_start(metric) else _ListTally(metric)  # type: ignore[attr-defined]
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is its own
            self.failure = describe(error)

    def __deepcopy__(self, memo: dict[int, Any]) -> GuardedTally:
        same = object.__new__(type(self))
        same._metric, same.failure, same._tally = self._metric, self.failure, None
        try:
            same._tally = copy.deepcopy(self._tally, memo)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            same.failure = f"its tally cannot be copied ({describe(error)})"
        return same

    def add(self, row: EvalRow) -> None:
        """Add a row unless the metric failed. An exception ends the run, before more is paid for a missing number."""
        if self.failure is None:
            try:
                self._tally.add(row)
            except (Exception, SystemExit) as error:
                self.failure = describe(error)
                raise

    def result(self) -> dict[str, float]:
        """Return the metric's numbers; NaN for each declared number if the metric failed."""
        return self.read()[0]

    def read(self) -> tuple[dict[str, float], dict[str, str]]:
        values: dict[str, float] = {}
        notes: dict[str, str] = {}
        if self.failure is None:
            try:
                values, notes = _check_numbers(self._tally.result())
                notes |= {str(key): str(note) for key, note in read_notes(self._tally).items()}
                _add_unmeasured(values, notes, read_unmeasured(self._tally))
            except (Exception, SystemExit) as error:  # noqa: BLE001
                self.failure = describe(error)
        if self.failure is not None:
            keys = find_columns(self._metric) or {self._metric.name: ""}
            values = dict.fromkeys(keys, math.nan)
            notes = dict.fromkeys(keys, f"not measured: the metric {self._metric.name!r} failed: {self.failure}")
        return values, notes

    def read_intervals(self) -> dict[str, Interval]:
        """Return the metric's intervals; leave out anything else."""
        if self.failure is not None:
            return {}
        try:
            given = read_intervals(self._tally)
        except (Exception, SystemExit):  # noqa: BLE001 - the number stands without it
            return {}
        return {str(key): value for key, value in given.items() if isinstance(value, Interval)}


def _check_numbers(given: Any) -> tuple[dict[str, float], dict[str, str]]:
    """Read a metric's result as numbers; others become NaN with a note."""
    if not isinstance(given, Mapping):
        raise TypeError(f"it returned {type(given).__name__}; it must return a dict of numbers")
    values: dict[str, float] = {}
    notes: dict[str, str] = {}
    for key, value in given.items():
        try:
            values[str(key)] = float(value)
        except (TypeError, ValueError, OverflowError):
            values[str(key)] = math.nan
        if math.isnan(values[str(key)]):
            none = isinstance(value, float)
            gave = "the metric has no value for these rows" if none else f"the metric gave {repr(value)[:80]}"
            notes[str(key)] = f"not measured: {gave}"
    return values, notes


def _add_unmeasured(values: dict[str, float], notes: dict[str, str], reasons: Mapping[str, str]) -> None:
    values |= {key: math.nan for key in reasons if key in values}
    notes |= {key: f"not measured: {reason}" for key, reason in reasons.items()}


@runtime_checkable
class _BoundedTally(Protocol):
    """A built-in tally that takes a system's report at the end of the run and derives more numbers from it."""

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]: ...


def read_tally(tally: Tally, report: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Read the numbers of a tally with their notes, NaN for those without rows; `report` is the system's own."""
    if isinstance(tally, GuardedTally):
        return tally.read()
    values = tally.result()
    if report and isinstance(tally, _BoundedTally):
        values |= tally.bound(report)
    notes = read_notes(tally)
    _add_unmeasured(values, notes, read_unmeasured(tally))
    return values, notes


def read_tally_intervals(tally: Tally) -> dict[str, Interval]:
    """Read the intervals of a tally; none if a user's tally fails or returns something else."""
    if isinstance(tally, GuardedTally):
        return tally.read_intervals()
    return read_intervals(tally)


def list_columns(metric: Metric, values: Mapping[str, float]) -> dict[str, str]:
    """List the table's columns for a user's metric, each with the format of its value."""
    if is_built_in(metric):
        return {}
    declared = find_columns(metric)
    return dict.fromkeys(values, "") if declared is None else {key: declared[key] for key in declared if key in values}


def check_metric_members(metric: Metric) -> None:
    """Refuse a metric whose optional members cannot work, before anything is sent."""
    if is_built_in(metric):
        return
    if can_start(metric):
        try:
            tally = metric.start()  # type: ignore[attr-defined]
        except (Exception, SystemExit) as error:
            raise UsageError(f"metric {metric.name!r}: start() failed: {describe(error)}") from error
        if not isinstance(tally, Tally):
            raise UsageError(f"metric {metric.name!r}: start() must return an object with add(row) and result()")
    for key, form in (find_columns(metric) or {}).items():
        try:
            format(0.5, form)
        except ValueError:
            raise UsageError(
                f"metric {metric.name!r}: column {key!r} has a format that format() refuses: {form!r}"
            ) from None


# -- all of a system


class SystemTallies:
    """All tallies of one system: over all its rows and, from the second dataset on, for each dataset too."""

    def __init__(self, metrics: Sequence[Metric], score_field: str) -> None:
        self._metrics, self._score_field = metrics, score_field
        self.tallies: list[Tally] = [start_tally(metric) for metric in metrics]
        self.census = Census(score_field)
        self.columns: dict[str, str] = {}
        self.intervals: dict[str, Interval] = {}
        self._first: str | None = None
        self._by_dataset: dict[str, tuple[Census, list[Tally]]] = {}
        self._broken_down = [place for place, metric in enumerate(metrics) if list_by_dataset(metric)]

    def add(self, rows: Sequence[EvalRow]) -> None:
        tags = {row.dataset for row in rows}
        if self._first is None:
            self._first = rows[0].dataset
        elif not self._by_dataset and tags != {self._first}:
            # All rows so far are of the first dataset, whose tallies continue from their sums.
            self._by_dataset[self._first] = copy.deepcopy(
                (self.census, [self.tallies[place] for place in self._broken_down])
            )
        for tally in self.tallies:
            if (add_all := getattr(type(tally), "add_all", None)) is not None:
                add_all(tally, rows)
            else:
                for row in rows:
                    tally.add(row)
        for row in rows:
            self.census.add(row)
        if self._by_dataset or len(tags) > 1:
            self._add_by_dataset(rows)

    def _add_by_dataset(self, rows: Sequence[EvalRow]) -> None:
        for row in rows:
            if row.dataset not in self._by_dataset:
                tallies = [start_tally(self._metrics[place]) for place in self._broken_down]
                self._by_dataset[row.dataset] = (Census(self._score_field), tallies)
            census, tallies = self._by_dataset[row.dataset]
            census.add(row)
            for tally in tallies:
                tally.add(row)

    def read(
        self, suffixes: Sequence[str | None], report: Mapping[str, Any]
    ) -> tuple[dict[str, float], dict[str, str]]:
        """Read the numbers so far with their notes; a repeated key gets the suffix of its metric."""
        values: dict[str, float] = {}
        notes: dict[str, str] = {}
        for metric, tally, suffix in zip(self._metrics, self.tallies, suffixes):
            if suffix is None:
                continue
            own, said = read_tally(tally, report)
            taken = {key: f"{key}:{suffix}" for key in own if key in values}
            known = read_tally_intervals(tally)
            self.intervals |= {taken.get(key, key): known[key] for key in own if key in known}
            values |= {taken.get(key, key): value for key, value in own.items()}
            notes |= {taken.get(key, key): note for key, note in said.items()}
            self.columns |= {taken.get(key, key): form for key, form in list_columns(metric, own).items()}
        values |= self.census.counts()
        self.intervals[ERROR_RATE] = share_interval(self.census.errors, self.census.rows)
        for tag in sorted(self._by_dataset):
            more, said = self._read_dataset(tag)
            values |= {f"{key}@{tag or 'unknown'}": value for key, value in more.items()}
            notes |= {f"{key}@{tag or 'unknown'}": note for key, note in said.items()}
        return values, notes

    def _read_dataset(self, tag: str) -> tuple[dict[str, float], dict[str, str]]:
        census, tallies = self._by_dataset[tag]
        values: dict[str, float] = census.counts()
        notes: dict[str, str] = {}
        for place, tally in zip(self._broken_down, tallies):
            shown = list_by_dataset(self._metrics[place])
            own, said = read_tally(tally, {})
            known = read_tally_intervals(tally)
            self.intervals |= {f"{key}@{tag or 'unknown'}": known[key] for key in shown if key in known}
            values |= {key: own[key] for key in shown if key in own}
            notes |= {key: said[key] for key in shown if key in said}
        return values, notes

    @property
    def datasets(self) -> dict[str, Census]:
        return {tag: census for tag, (census, _) in self._by_dataset.items()}
