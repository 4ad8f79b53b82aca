"""Opens what can be compared: a run in a store, a JSON file, or a result at hand, each as a stream of scored rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from context_bench.compare.comparison import find_floors, read_group, read_intervals
from context_bench.config import RunSettings, read_settings
from context_bench.errors import DataError, UnknownName, UsageError
from context_bench.results import EvalResult, EvalRow
from context_bench.stats import ScoredRow
from context_bench.store import RunInfo, Store
from context_bench.summary import Intervals, Numbers

__all__ = ["RunInput", "Selection", "open_file", "open_result", "open_run", "select"]

SystemRows: TypeAlias = Iterator[tuple[str, ScoredRow]]
"""Rows with the system that each is of."""


@dataclass(frozen=True)
class RunInput:
    """A run that is compared.

    Attributes:
        label: What the user calls it.
        systems: Their names, in the order of the run.
        config: How it was made.
        read_rows: Reads the rows, from the beginning each time.
        summary: Its numbers, by system.
        intervals: How sure they are, where that is known.
        run: Its id, where it is in a store: `context-bench diff` can show its rows.
        finished: Whether it came to its end.
        context_unneeded: Why its examples cannot show that a system lost nothing, where it has found that.
    """

    label: str
    systems: tuple[str, ...]
    config: Mapping[str, Any]
    read_rows: Callable[[], SystemRows]
    summary: Numbers = field(default_factory=dict)
    intervals: Intervals = field(default_factory=dict)
    run: str | None = None
    finished: bool = True
    context_unneeded: str = ""

    @property
    def settings(self) -> RunSettings:
        """The record of the run as typed values."""
        return read_settings(self.config)

    @property
    def floors(self) -> frozenset[str]:
        """Systems that read no context."""
        return find_floors(self.config)

    @property
    def threshold(self) -> float | None:
        """The lowest score that passes, where the run has one."""
        return self.settings.threshold

    @property
    def controls(self) -> frozenset[str]:
        """Systems that are not in the competition: floors, ceilings, and the model that got everything."""
        return frozenset(self.settings.controls)

    @property
    def repeats(self) -> int:
        """How often it answered each example."""
        return self.settings.repeats


@dataclass(frozen=True)
class Selection:
    """A run, and those of its systems that are compared; `label` is what was typed."""

    source: RunInput
    systems: tuple[str, ...]
    label: str


def open_run(store: Store, name: str) -> RunInput:
    """Open a run of a store; its rows are read when they are asked for."""
    info = store.run(name)
    settings = info.settings
    return RunInput(
        info.id,
        tuple(info.summary or settings.systems),
        info.config,
        partial(_read_stored, store, info, settings.score_field),
        info.summary,
        read_intervals(settings.intervals),
        run=info.id,
        finished=info.status == "done",
        context_unneeded=settings.comparison.get("context_unneeded") or "",
    )


def open_file(path: Path) -> RunInput:
    """Open a result that `--output json` wrote."""
    try:
        result = EvalResult.from_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if not result.rows:
        raise DataError(f"{path} has a summary and no rows, so that nothing can be compared: leave --no-rows out")
    return open_result(result, str(path))


def open_result(result: EvalResult, label: str = "") -> RunInput:
    """Open a result that is at hand."""
    return RunInput(
        label,
        tuple(result.summary),
        result.config,
        partial(_read_rows, result.rows, result.settings.score_field),
        result.summary,
        result.intervals,
        finished=not result.settings.stopped,
        context_unneeded="" if result.comparison is None else result.comparison.context_unneeded,
    )


def _read_stored(store: Store, info: RunInfo, score_field: str) -> SystemRows:
    for row, key in store.run_outcomes(info):
        yield row.system, _score_row(row, score_field, key)


def _read_rows(rows: Iterable[EvalRow], score_field: str) -> SystemRows:
    for row in rows:
        yield row.system, _score_row(row, score_field, None)


def _score_row(row: EvalRow, score_field: str, content: bytes | None) -> ScoredRow:
    """Take of a row what a comparison needs."""
    return ScoredRow(
        str(row.example_id),
        row.dataset,
        row.scores.get(score_field),
        read_group(row),
        row.error is not None,
        row.repeat,
        content,
    )


def select(text: str, find_run: Callable[[str], RunInput]) -> Selection:
    """Read one argument of `compare`: a JSON file or a run, with `@SYSTEM` behind it for one of its systems.

    Args:
        text: What was typed.
        find_run: Opens a run of the store by its name.
    """
    path, system = text, ""
    if not Path(text).is_file() and "@" in text:
        path, _, system = text.partition("@")
    source = open_file(Path(path)) if Path(path).is_file() or path.endswith(".json") else find_run(path)
    if not source.systems:
        raise UsageError(f"{source.label} has no rows to compare")
    if system and system not in source.systems:
        raise UnknownName(f"system of {source.label}", system, source.systems)
    return Selection(source, (system,) if system else source.systems, text)
