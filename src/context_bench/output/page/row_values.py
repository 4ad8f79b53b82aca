"""Rows as a page takes them: their values, the runs of a store, and the questions to the list of examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from context_bench.output.elements import clean_text
from context_bench.results import EvalRow
from context_bench.store import RunInfo
from context_bench.store.backend import RunRecord
from context_bench.text.evidence_state import read_state

__all__ = [
    "EVIDENCE",
    "OUTCOMES",
    "PLACES",
    "SORTED",
    "RowQuery",
    "RowValues",
    "Source",
    "clean_id",
    "clean_name",
    "name_error_kind",
    "read_values",
    "to_source",
    "write_time",
]


EVIDENCE = ("lost", "recoverable", "verbatim")
OUTCOMES = ("right", "wrong", "error", "unscored")
_SNIPPET, _ID, _NAME = 140, 120, 300
_DIGITS = re.compile(r"\d+")


class Source(NamedTuple):
    """A row with the example and the answer that it came from, where they are known."""

    row: EvalRow
    example: Mapping[str, Any] | None = None
    processed: Mapping[str, Any] | None = None


class RowValues(NamedTuple):
    """A row of the list.

    `natural` sorts numbers within a name as numbers; `outcome` is a place in `OUTCOMES`; `evidence` is one in
    `EVIDENCE`, and None where that was not measured.
    """

    id: int
    run: int
    system: str
    dataset: str
    name: str
    natural: str
    repeat: int
    score: float | None
    outcome: int
    evidence: int | None
    error: str | None
    input: int
    output: int | None
    latency: float
    question: str
    response: str


def clean_name(name: object) -> str:
    """Return a name as the list has it."""
    return clean_text(str(name)[:_NAME])


def clean_id(identity: object) -> str:
    """Return the id of an example as the list has it."""
    return clean_text(str(identity)[:_ID])


def name_error_kind(error: str) -> str:
    """Name the kind of an error: the type before its message."""
    return clean_text(error.partition(":")[0].strip()[:80]) or "error"


def read_values(identity: int, run: int, source: Source, score: float | None, threshold: float) -> RowValues:
    """Read the values of a row; a score of at least `threshold` is right."""
    row, example = source.row, source.example or {}
    state = read_state(row.scores)
    passed_on = row.upstream_tokens
    if passed_on is None and row.metadata.get("output") == "context":
        passed_on = row.output_tokens
    name = clean_id(row.example_id)
    return RowValues(
        identity,
        run,
        clean_name(row.system),
        clean_name(row.dataset),
        name,
        _DIGITS.sub(_pad, name.lower()),
        row.repeat,
        None if score is None else round(score, 4),
        OUTCOMES.index(_name_outcome(row, score, threshold)),
        None if state is None else EVIDENCE.index(state),
        None if row.error is None else name_error_kind(row.error),
        row.input_tokens,
        passed_on,
        round(row.latency, 6),
        _shorten(example.get("question") or example.get("prompt") or ""),
        _shorten(row.response),
    )


def _pad(digits: re.Match[str]) -> str:
    return digits[0].zfill(12)


def _name_outcome(row: EvalRow, score: float | None, threshold: float) -> str:
    if row.error is not None:
        return "error"
    return "unscored" if score is None else "right" if score >= threshold else "wrong"


def _shorten(text: Any) -> str:
    return " ".join(clean_text(str(text)[: 4 * _SNIPPET]).split())[:_SNIPPET]


def write_time(run: RunInfo) -> str:
    """Write when a run began."""
    return " ".join((run.created[:10], run.created[11:16], run.created[19:])).strip()


def to_source(record: RunRecord) -> Source:
    """Return a record of a run as the page takes it."""
    return Source(record.row, record.example, None if record.answer is None else record.answer.processed)


PLACES = 32
"""Bits for the place of a row in its run, in its id."""

SORTED = ("id", "run", "system", "dataset", "outcome", "score", "evidence", "input", "output", "latency", "question")
"""Columns that a list can be sorted by, as the page calls them."""

_LIKE_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\%_"})

Names = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class RowQuery:
    """Conditions that all must hold, and an order.

    Attributes:
        runs: The numbers of the runs that rows are from; all where there is none.
        equal: The value of a column; None asks for rows in which it was not measured.
        low: The lowest score.
        high: The highest score.
        words: Each must stand in the id, system, dataset, question, answer or error kind.
        sort: One of `SORTED`; None keeps the order of the run.
        down: From the highest to the lowest.
    """

    runs: tuple[int, ...] = ()
    equal: tuple[tuple[str, int | None], ...] = ()
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    sort: str | None = None
    down: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it asks for all rows of its runs."""
        return not (self.equal or self.words) and self.low is None and self.high is None

    def write_condition(self, names: Names) -> tuple[str, list[Any]]:
        """Write the condition as SQL, with its values."""
        parts, values = ["1"], list[Any]()
        if self.runs:
            # Rows are stored by run: the plus keeps SQLite from another index, which it would have to sort after.
            parts.append(f"id >= ? AND id < ? AND +run IN ({','.join('?' * len(self.runs))})")
            values += [min(self.runs) << PLACES, (max(self.runs) + 1) << PLACES, *self.runs]
        for column, value in self.equal:
            parts.append(f"{column} IS ?")
            values.append(value)
        for sign, limit in ((">=", self.low), ("<=", self.high)):
            if limit is not None:
                parts.append(f"score {sign} ?")
                values.append(limit)
        for word in self.words:
            condition, found = _write_search(word.lower(), names)
            parts.append(condition)
            values += found
        return " AND ".join(parts), values

    def write_order(self, names: Names) -> str:
        """Write the order as SQL: what was not measured comes last, and equals stay in the order of the run."""
        if self.sort not in SORTED:
            return "id"
        key: str = self.sort
        if key in names:
            ranks = {names[key][name]: rank for rank, name in enumerate(sorted(names[key], key=str.lower))}
            key = (
                f"CASE {key} {' '.join(f'WHEN {number} THEN {rank}' for number, rank in ranks.items())} END"
                if ranks
                else "1"
            )
        elif key == "id":
            key = "natural"
        elif key == "question":
            key = "fold(question)"
        return f"{key} IS NULL, {key}{' DESC' if self.down else ''}, id"


def _write_search(word: str, names: Names) -> tuple[str, list[Any]]:
    """Write the condition that a word stands in a row; the letters of ASCII are compared by SQLite itself, fast."""
    if word.isascii():
        text, value = "{} LIKE ? ESCAPE '\\'", f"%{word.translate(_LIKE_SIGNS)}%"
    else:
        text, value = "instr(fold({}), ?)", word
    parts = [text.format(column) for column in ("name", "question", "response")]
    values: list[Any] = [value] * len(parts)
    for kind, known in names.items():
        numbers = [str(number) for name, number in known.items() if word in name.lower()]
        if numbers:
            parts.append(f"{kind} IN ({','.join(numbers)})")
    return f"({' OR '.join(parts)})", values
