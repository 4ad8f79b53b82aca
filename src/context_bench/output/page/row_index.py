"""The rows of runs as columns to filter, sort and search, in a temporary SQLite file.

The page and the viewer list examples from this index. Memory use does not grow with the rows; the file is deleted
with the connection.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from context_bench.numbers import MEAN_SCORE, NUM_ERRORS, NUM_EXAMPLES, NUM_UNSCORED, PASS_RATE
from context_bench.output.page.run_facts import OUTCOMES, RowValues
from context_bench.store.database import open_temporary

PLACES = 32  # bits of an id for the position of the row in its run

SORTED = ("id", "run", "system", "dataset", "outcome", "score", "evidence", "input", "output", "latency", "question")
"""Columns to sort a list by, with the page's names."""

_LIKE_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\%_"})

Names = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class RowQuery:
    """Conditions that all must hold, and an order."""

    runs: tuple[int, ...] = ()  # the numbers of the runs; empty for all
    # required value of a column; None selects rows without a measurement
    equal: tuple[tuple[str, int | None], ...] = ()
    low: float | None = None  # the lowest score
    high: float | None = None  # the highest score
    words: tuple[str, ...] = ()  # words that must occur in the id, system, dataset, question, answer or error kind
    sort: str | None = None  # one of `SORTED`; None keeps the order of the run
    down: bool = False  # in descending order

    @property
    def is_plain(self) -> bool:
        """Whether the query selects all rows of its runs."""
        return not (self.equal or self.words) and self.low is None and self.high is None

    def write_condition(self, names: Names) -> tuple[str, list[Any]]:
        """Write the condition as SQL, with its values."""
        parts, values = ["1"], list[Any]()
        if self.runs:
            # rows are stored by run; the plus keeps SQLite from using another index, which would need a sort
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
        """Write the order as SQL: unmeasured values come last, and ties keep the order of the run."""
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
    """Write the condition that a row contains a word; SQLite itself compares ASCII letters, which is fast."""
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


NAMED = ("system", "dataset", "error")  # columns that store the number of a name, as few names occur in many rows

_MAX_NAMES = 2_000  # distinct names of a kind; later ones share the last number
_CACHE_KILOBYTES = 8_000  # kilobytes of SQLite's cache
_FLIPS_AT_ONCE = 20_000  # rows whose change against the baseline is found by one statement

_TABLE = """
CREATE TABLE rows (
    id INTEGER PRIMARY KEY, run INTEGER, system INTEGER, dataset INTEGER, name TEXT, natural TEXT, repeat INTEGER,
    score REAL, outcome INTEGER, evidence INTEGER, untouched INTEGER, flip INTEGER, error INTEGER,
    input INTEGER, output INTEGER, latency REAL, question TEXT, response TEXT, base INTEGER);
CREATE INDEX bases ON rows (run, dataset, name, repeat) WHERE base = 1;
CREATE INDEX names ON rows (run, name);
CREATE INDEX pending ON rows (id) WHERE flip IS NULL;
CREATE INDEX flipped ON rows (run) WHERE flip != 0
"""
_COLUMNS = (
    *("id", "run", "system", "dataset", "name", "repeat", "score", "outcome", "evidence", "untouched", "flip", "error"),
    *("input", "output", "latency", "question", "response"),
)
KINDS = {
    "lost": "evidence = 0",
    "broken": "flip = -1",
    "fixed": "flip = 1",
    "failed": f"outcome = {OUTCOMES.index('error')}",
    "untouched": "untouched = 1",
}
"""The conditions of the kinds of rows that the page's numbers link to."""
_RIGHT, _UNSCORED = OUTCOMES.index("right"), OUTCOMES.index("unscored")
_FIND_FLIPS = f"""
UPDATE rows SET flip = coalesce((
    SELECT CASE WHEN base.outcome = {_UNSCORED} THEN 0 ELSE (rows.outcome = {_RIGHT}) - (base.outcome = {_RIGHT}) END
    FROM rows AS base WHERE base.base = 1 AND base.run = rows.run AND base.dataset = rows.dataset
    AND base.name = rows.name AND base.repeat = rows.repeat), {{otherwise}})
WHERE flip IS NULL AND id >= ? AND id < ?
"""


class Found(NamedTuple):
    """One page of a query's rows, and the total count."""

    rows: list[dict[str, Any]]
    total: int


class RowIndex:
    """Takes rows in and answers queries, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database = open_temporary(_CACHE_KILOBYTES)
        for statement in _TABLE.split(";"):
            self._database.execute(statement)
        self._database.create_function("fold", 1, _fold, deterministic=True)
        self._names: dict[str, dict[str, int]] = {kind: {} for kind in NAMED}
        self._baselines: dict[int, str] = {}
        self._totals: dict[int, int] = {}
        self._used: dict[int, dict[str, set[int]]] = {}
        self._with_evidence: set[int] = set()

    def close(self) -> None:
        """Close the index and delete its file."""
        with self._lock:
            self._database.close()

    def set_baseline(self, run: int, name: str | None) -> None:
        """Set the baseline of a run, before its rows are added."""
        if name is not None:
            self._baselines[run] = name

    def add(self, rows: Iterable[RowValues]) -> None:
        """Add rows of one run; existing rows stay unchanged."""
        with self._lock:
            given = list(rows)
            if not given:
                return
            made = [self._to_columns(row) for row in given]
            self._with_evidence.update(row.run for row in given if row.evidence is not None)
            marks = ",".join("?" * len(made[0]))
            self._database.execute("BEGIN")
            done = self._database.executemany(f"INSERT OR IGNORE INTO rows VALUES ({marks})", made).rowcount
            self._totals[given[0].run] = self._totals.get(given[0].run, 0) + done
            self._database.execute(
                _FIND_FLIPS.format(otherwise="NULL"), (min(row[0] for row in made), max(row[0] for row in made) + 1)
            )
            self._database.execute("COMMIT")

    def _to_columns(self, row: RowValues) -> tuple[Any, ...]:
        baseline = self._baselines.get(row.run)
        is_base = row.system == baseline
        compared = baseline is not None and not is_base and row.outcome != _UNSCORED
        system, dataset = self._number(row.run, "system", row.system), self._number(row.run, "dataset", row.dataset)
        error = None if row.error is None else self._number(row.run, "error", row.error)
        return (
            *(row.id, row.run, system, dataset, row.name, row.natural, row.repeat, row.score, row.outcome),
            *(row.evidence, row.untouched, None if compared else 0, error, row.input, row.output),
            *(row.latency, row.question, row.response, int(is_base)),
        )

    def _number(self, run: int, kind: str, name: str) -> int:
        known = self._names[kind]
        if name not in known and len(known) >= _MAX_NAMES:
            name = "(others)"
        number = known.setdefault(name, len(known))
        self._used.setdefault(run, {each: set() for each in NAMED})[kind].add(number)
        return number

    def find_flips(self) -> None:
        """Find changes against the baseline for rows added before the baseline's rows; release the lock in between."""
        while True:
            with self._lock:
                (first,) = self._database.execute("SELECT min(id) FROM rows WHERE flip IS NULL").fetchone()
                if first is None:
                    return
                query = "SELECT max(id) FROM (SELECT id FROM rows WHERE flip IS NULL ORDER BY id LIMIT ?)"
                (last,) = self._database.execute(query, (_FLIPS_AT_ONCE,)).fetchone()
                self._database.execute(_FIND_FLIPS.format(otherwise="0"), (first, last + 1))

    def list_names(self, runs: Iterable[int]) -> dict[str, dict[int, str]]:
        """List the names of each kind in these runs, by number."""
        with self._lock:
            used: dict[str, set[int]] = {kind: set() for kind in NAMED}
            for run in runs:
                for kind, numbers in self._used.get(run, {}).items():
                    used[kind] |= numbers
            return {
                kind: {number: name for name, number in known.items() if number in used[kind]}
                for kind, known in self._names.items()
            }

    def count(self, runs: Iterable[int]) -> int:
        """Count the rows of runs."""
        return sum(self._totals.get(run, 0) for run in runs)

    def list_ids(self, first: int, last: int) -> set[int]:
        """List the existing ids in a range."""
        with self._lock:
            found = self._database.execute("SELECT id FROM rows WHERE id >= ? AND id < ?", (first, last))
            return {identity for (identity,) in found}

    def has_evidence(self, runs: Iterable[int]) -> bool:
        """Whether any row of these runs has a measured state of the evidence."""
        return not self._with_evidence.isdisjoint(runs)

    def has_flips(self, runs: Iterable[int]) -> bool:
        """Whether any row of these runs differs from the baseline in being right."""
        query = "SELECT 1 FROM rows WHERE flip != 0 AND run = ? LIMIT 1"
        with self._lock:
            return any(self._database.execute(query, (run,)).fetchone() for run in runs)

    def remove(self, run: int) -> None:
        """Forget the rows of a run."""
        with self._lock:
            self._database.execute("DELETE FROM rows WHERE run = ?", (run,))
            self._totals.pop(run, None)
            self._used.pop(run, None)
            self._baselines.pop(run, None)

    def find(self, query: RowQuery, offset: int, limit: int) -> Found:
        """Find one page of a query's rows."""
        with self._lock:
            where, values = query.write_condition(self._names)
            order = query.write_order(self._names)
            if query.is_plain:
                total = self.count(query.runs)
            else:
                (total,) = self._database.execute(f"SELECT count(*) FROM rows WHERE {where}", values).fetchone()
            if not limit:
                return Found([], total)
            statement = f"SELECT {', '.join(_COLUMNS)} FROM rows WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?"
            rows = self._database.execute(statement, (*values, limit, offset)).fetchall()
        return Found([dict(zip(_COLUMNS, row)) for row in rows], total)

    def find_place(self, query: RowQuery, row: int) -> int | None:
        """Find the position of a row, by id, among the results of a query in their natural order."""
        with self._lock:
            where, values = query.write_condition(self._names)
            found = self._database.execute(f"SELECT 1 FROM rows WHERE id = ? AND {where}", (row, *values)).fetchone()
            if found is None:
                return None
            statement = f"SELECT count(*) FROM rows WHERE id < ? AND {where}"
            (place,) = self._database.execute(statement, (row, *values)).fetchone()
            return int(place)

    def locate(self, run: int, system: str, dataset: str, name: str, repeat: int) -> int | None:
        """Find the id of the row with these names."""
        numbers = self._names["system"].get(system), self._names["dataset"].get(dataset)
        with self._lock:
            found = self._database.execute(
                "SELECT id FROM rows WHERE run = ? AND name = ? AND system = ? AND dataset = ? AND repeat = ?",
                (run, name, *numbers, repeat),
            ).fetchone()
        return None if found is None else int(found[0])

    def sum_up(self, run: int) -> dict[str, dict[str, float]]:
        """Summarize the rows of an unfinished run by system. An error counts as a score of 0."""
        counted = "sum(outcome != 3)"
        statement = (
            "SELECT system, count(*), sum(outcome = 2), sum(outcome = 3), "
            f"sum(CASE outcome WHEN 2 THEN 0 ELSE score END) * 1.0 / {counted}, "
            f"sum(outcome = 0) * 1.0 / {counted} FROM rows WHERE run = ? GROUP BY system"
        )
        keys = (NUM_EXAMPLES, NUM_ERRORS, NUM_UNSCORED, MEAN_SCORE, PASS_RATE)
        with self._lock:
            names = list(self._names["system"])
            found = self._database.execute(statement, (run,)).fetchall()
        nan = float("nan")
        return {
            names[system]: {key: nan if value is None else float(value) for key, value in zip(keys, values)}
            for system, *values in found
        }

    def count_kinds(self, run: int) -> dict[str, dict[str, int]]:
        """Count by system the rows that lost their evidence, were broken or fixed, failed, or were left untouched."""
        conditions = ", ".join(f"total({condition})" for condition in KINDS.values())
        statement = f"SELECT system, {conditions} FROM rows WHERE run = ? GROUP BY system"
        with self._lock:
            names = list(self._names["system"])
            found = self._database.execute(statement, (run,)).fetchall()
        return {names[system]: {kind: int(count) for kind, count in zip(KINDS, counts)} for system, *counts in found}

    def read_parts(self, size: int) -> Iterator[Mapping[str, list[Any]]]:
        """Read all rows in order as columns, `size` rows at a time; `question` has places in the part's `questions`."""
        last = -1
        while True:
            with self._lock:
                statement = f"SELECT {', '.join(_COLUMNS)} FROM rows WHERE id > ? ORDER BY id LIMIT ?"
                rows = self._database.execute(statement, (last, size)).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            columns: dict[str, list[Any]] = {
                name: list(values) for name, values in zip(_COLUMNS[1:], list(zip(*rows))[1:])
            }
            questions = dict.fromkeys(columns["question"])
            numbers = {text: number for number, text in enumerate(questions)}
            columns["question"] = [numbers[text] for text in columns["question"]]
            yield {**columns, "questions": list(questions)}


def _fold(text: str | None) -> str:
    return (text or "").lower()
