"""Reading recorded runs from a store; damaged records are reported and left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from context_bench.errors import StoreError, UsageError, warn
from context_bench.results import EvalRow
from context_bench.store.backend import FIRST_FAILED, RunInfo, RunRecord
from context_bench.store.database import DAMAGED, FAILURES, FILE_NAME, connect, explain, is_running, read_run
from context_bench.store.records import (
    PLACES,
    Damaged,
    about_one,
    about_row,
    identity_of,
    load,
    place_of,
    places_of,
    run_of,
    unpack_record,
    unpack_row,
)

ANSWER = (
    "coalesce(rows.answer, (SELECT body FROM responses WHERE id = rows.response), "
    "(SELECT answer FROM rows AS first WHERE first.id = rows.response))"
)
"""The answer of a row: stored in it, stored before it, or stored in a row of an earlier run."""

_LENGTHS = {"rows": "length(body) + coalesce(length(answer), 0)"} | dict.fromkeys(
    ("responses", "examples", "requests"), "length(body)"
)

_LIVE_BUSY_TIMEOUT_MS = 2_000  # how long a viewer waits for a program that keeps readers out

_LAST = re.compile(r"last(?:~(\d{1,9}))?")

_LEFT_OUT = "it is left out; --resume requests it again"

_MOST_WARNINGS = 10  # damaged records that are named one by one


class Damage:
    """Reports damaged records of a store, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._told: set[str] = set()

    def tell(self, what: str, then: str) -> None:
        """Warn of a damaged record and its consequence; after a few, only say that there are more."""
        if what in self._told or len(self._told) > _MOST_WARNINGS:
            return
        self._told.add(what)
        text = f"{what} in {self._path} is damaged: {then}"
        if len(self._told) > _MOST_WARNINGS:
            text = f"{self._path} has more damaged records than are listed here: use another --cache-dir"
        warn(text)


class Reader:
    """Reads runs, rows and requests from a store.

    Args:
        directory: The folder of the store.
        readonly: Create and change nothing.
        create: False requires an existing store.
    """

    def __init__(self, directory: Path, *, readonly: bool, create: bool) -> None:
        self.directory = directory
        self._damage = Damage(directory / FILE_NAME)
        self._reader = connect(directory, readonly=readonly, create=create)

    @contextmanager
    def _explain_failures(self) -> Iterator[None]:
        try:
            yield
        except FAILURES as error:
            raise explain(error, self.directory / FILE_NAME) from error

    def _one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        with self._explain_failures():
            found: tuple[Any, ...] | None = self._reader.execute(query, values).fetchone()
        return found

    def _name(self, kind: str, identity: int) -> str:
        """Name a record for a warning."""
        found = self._one("SELECT id FROM runs WHERE number = ?", run_of(identity))
        return f"{kind} {place_of(identity)} of run {found[0] if found else run_of(identity)}"

    def runs(self) -> list[RunInfo]:
        with self._explain_failures():
            found = [read_run(*run) for run in self._reader.execute("SELECT * FROM runs ORDER BY number DESC")]
        for run in found:
            if run.status == DAMAGED:
                self._damage.tell(f"the record of run {run.id}", "it cannot be shown, but its answers are still reused")
        return found

    def run(self, name: str) -> RunInfo:
        """Find a run by its id, the start of its id, `last`, or `last~1` for the one before that."""
        runs = self.runs()
        if (back := _LAST.fullmatch(name)) and int(back[1] or 0) < len(runs):
            return runs[int(back[1] or 0)]
        matching = [run for run in runs if run.id == name] or [run for run in runs if name and run.id.startswith(name)]
        if len(matching) > 1:
            raise UsageError(f"{len(matching)} runs start with {name!r}: {', '.join(run.id for run in matching[:5])}")
        if not matching:
            raise UsageError(f"there is no run {name!r} in {self.directory}: `context-bench runs list` shows them")
        return matching[0]

    def is_under_way(self, run: RunInfo) -> bool:
        """Whether a process is working on a run."""
        return run.status == "running" and is_running(self.directory, run.number, clear=False)

    def find_status(self, run: RunInfo) -> str:
        """Return how a run ended: "interrupted" if its process was killed, "running" while it works."""
        return "interrupted" if run.status == "running" and not self.is_under_way(run) else run.status

    def count_rows(self, run: RunInfo) -> int:
        found = self._one("SELECT count(*) FROM rows WHERE id >= ? AND id < ?", *places_of(run.number))
        return int(found[0]) if found else 0

    def measure_runs(self) -> dict[int, int]:
        """Sum the bytes that each run wrote, by its number; reused records count for the run that wrote them."""
        sizes: dict[int, int] = {}
        for table, length in _LENGTHS.items():
            query = f"SELECT id >> {PLACES}, sum({length}) FROM {table} GROUP BY 1"
            with self._explain_failures():
                for number, size in self._reader.execute(query):
                    sizes[number] = sizes.get(number, 0) + size
        return sizes

    def run_rows(self, run: RunInfo) -> Iterator[EvalRow]:
        """Yield the rows of a run, in order."""
        for record in self.run_records(run):
            yield record.row

    def run_records(self, run: RunInfo) -> Iterator[RunRecord]:
        """Yield the rows of a run with their example and answer, in order; warn of damaged or missing records."""
        _refuse_damaged(run, self.directory / FILE_NAME)
        seen = 0
        for _, record in self._read_records(*places_of(run.number)):
            seen += 1
            if record is not None:
                record.row.meta = record.example.get("meta")
                yield record
        if run.row_count is not None and seen != run.row_count:
            then = f"{run.row_count} rows were written, {seen} are found"
            self._damage.tell(f"the list of rows of run {run.id}", then)

    def _read_records(self, first: int, last: int) -> Iterator[tuple[int, RunRecord | None]]:
        """Read the rows from one id up to another; None for a damaged one, which is reported."""
        query = (
            f"SELECT rows.id, rows.again, rows.body, rows.response, {ANSWER}, rows.example, "
            "examples.key, examples.body FROM rows LEFT JOIN examples ON examples.id = rows.example "
            "WHERE rows.id >= ? AND rows.id < ? ORDER BY rows.id"
        )
        with self._explain_failures():
            for identity, again, body, response, record, *example in self._reader.execute(query, (first, last)):
                try:
                    if again != identity:
                        raise Damaged
                    original = self._read_example(identity, *example)
                    found = unpack_record(body, response, record, example[0], example[1], original)
                except Damaged:
                    self._damage.tell(self._name("row", identity), _LEFT_OUT)
                    yield identity, None
                else:
                    yield identity, found

    def run_outcomes(self, run: RunInfo) -> Iterator[tuple[EvalRow, bytes | None]]:
        """Read the rows of a run without their responses, each with the key of its example: fast, in little memory."""
        _refuse_damaged(run, self.directory / FILE_NAME)
        query = (
            "SELECT rows.id, rows.again, rows.body, rows.response, rows.example, examples.key "
            "FROM rows LEFT JOIN examples ON examples.id = rows.example "
            "WHERE rows.id >= ? AND rows.id < ? ORDER BY rows.id"
        )
        with self._explain_failures():
            for identity, again, body, response, example, key in self._reader.execute(query, places_of(run.number)):
                try:
                    if again != identity:
                        raise Damaged
                    yield unpack_row(load(body, about_row(example, response)), ""), key
                except Damaged:
                    self._damage.tell(self._name("row", identity), _LEFT_OUT)

    def _read_example(self, row: int, identity: int, key: Any, body: Any) -> dict[str, Any] | None:
        """Read the example of a row; None if it is lost or damaged."""
        try:
            example: dict[str, Any] = load(body, about_one(identity, key))
            return example
        except Damaged:
            self._damage.tell(f"the example of {self._name('row', row)}", "the row is shown without it")
            return None

    def run_requests(self, run: RunInfo) -> Iterator[dict[str, Any]]:
        """Yield the requests that belong to no row, in order."""
        return self._read_requests(identity_of(run.number, 0), identity_of(run.number, FIRST_FAILED))

    def failed_requests(self, run: RunInfo) -> Iterator[dict[str, Any]]:
        """Yield the requests of each row that failed (`identify_row`, `tapped`), in the order of the rows."""
        return self._read_requests(identity_of(run.number, FIRST_FAILED), identity_of(run.number + 1, 0))

    def _read_requests(self, first: int, last: int) -> Iterator[dict[str, Any]]:
        query = "SELECT id, body FROM requests WHERE id >= ? AND id < ? ORDER BY id"
        with self._explain_failures():
            for identity, body in self._reader.execute(query, (first, last)):
                try:
                    yield load(body, about_one(identity))
                except Damaged:
                    self._damage.tell(self._name("request", identity), "it is left out")


def _refuse_damaged(run: RunInfo, path: Path) -> None:
    if run.status == DAMAGED:
        raise StoreError(f"the record of run {run.id} in {path} is damaged: it cannot be shown, only removed")


class LiveReader(Reader):
    """A store that other processes write, read in short pieces so that they need not wait; for one thread at a time."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, readonly=True, create=False)
        self._reader.execute(f"PRAGMA busy_timeout = {_LIVE_BUSY_TIMEOUT_MS}")

    def close(self) -> None:
        self._reader.close()

    def read_checksums(self) -> dict[int, int]:
        """Read the number of each run, with a checksum that changes with the run's record."""
        with self._explain_failures():
            return dict(self._reader.execute("SELECT number, checksum FROM runs"))

    def read_run(self, number: int) -> RunInfo | None:
        found = self._one("SELECT * FROM runs WHERE number = ?", number)
        return None if found is None else read_run(*found)

    def list_rows(self, first: int, last: int, most: int) -> list[int]:
        """List the ids of up to `most` rows from one id up to another."""
        query = "SELECT id FROM rows WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        with self._explain_failures():
            return [identity for (identity,) in self._reader.execute(query, (first, last, most))]

    def read_records(self, ids: Sequence[int]) -> list[tuple[int, RunRecord]]:
        """Read rows by their ids, which are in order; damaged ones are left out."""
        found: list[tuple[int, RunRecord]] = []
        first = 0
        for place, identity in enumerate(ids):
            if place + 1 == len(ids) or ids[place + 1] != identity + 1:
                records = self._read_records(ids[first], identity + 1)
                found += [(number, record) for number, record in records if record is not None]
                first = place + 1
        return found
