"""The store: look up what is known, put down what is new, and list what was run."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson

from context_bench.errors import StoreError, UsageError
from context_bench.results import EvalResult, EvalRow
from context_bench.store.batch import Batch
from context_bench.store.database import FILE_NAME, UNREADABLE, connect, explain, transaction
from context_bench.store.records import (
    identity_of,
    pack_processed,
    pack_row,
    places_of,
    to_bytes,
    unpack_keys,
    unpack_processed,
    unpack_row,
)
from context_bench.store.removal import remove_run
from context_bench.store.writer import Writer

__all__ = ["RunInfo", "Store", "StoredAnswer"]

T = TypeVar("T")

_MANY = 200
"""Rows that one statement reads or copies."""


_BESIDE = "(SELECT body FROM responses WHERE id = rows.response)"
_ANSWER = f"coalesce(rows.answer, {_BESIDE}, (SELECT answer FROM rows AS first WHERE first.id = rows.response))"
"""The answer of a row: its own, one that came before its row, or that of an earlier run's row."""


@dataclass(frozen=True)
class RunInfo:
    """One run: when, how it ended, with what, and what came out. A run that was killed stays "running"."""

    number: int
    id: str
    created: str
    status: str
    config: dict[str, Any]
    summary: dict[str, dict[str, float]]
    timing: dict[str, float]


@dataclass(slots=True)
class StoredAnswer:
    """What a system returned, as it was the first time."""

    processed: dict[str, Any]
    metadata: dict[str, Any]
    latency: float
    returns: str


@dataclass(frozen=True)
class RunRecord:
    """A row of a run, with the example and the answer that it came from, and their ids."""

    row: EvalRow
    example: dict[str, Any]
    example_key: bytes
    example_id: int
    answer: StoredAnswer | None
    response: int | None


class Store:
    """One directory with one database; any number of threads and processes.

    Args:
        directory: Where it lives; made when it does not exist.
        readonly: Only look: nothing is made or changed.
        create: False asks for a store that is there already.
    """

    def __init__(self, directory: str | Path, *, readonly: bool = False, create: bool = True) -> None:
        self.directory = Path(directory)
        self._reader = connect(self.directory, readonly=readonly, create=create)
        try:
            # A store that is only looked at may be an old one.
            self._answer = _ANSWER if self._has("rows", "answer") else _BESIDE
            self._example = "id" if self._has("examples") else "key"
            self._writer = None if readonly else Writer(self.directory)
        except StoreError:
            self._reader.close()
            raise
        self._example_ids: dict[bytes, int] = {}
        self._put = _refuse if self._writer is None else self._writer.put
        self._row_ids: dict[bytes, int] = {}
        self._answer_ids: dict[bytes, int] = {}
        self._copied: list[int] = []
        self._shift = 0

    @property
    def failure(self) -> StoreError | None:
        """Why nothing more can be written, if so."""
        return self._writer.failure if self._writer else None

    def close(self) -> None:
        """Write what is left and close."""
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._reader.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- looking up

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, *UNREADABLE) as error:
            raise explain(error, self.directory / FILE_NAME) from error

    def _one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        with self._explained():
            found: tuple[Any, ...] | None = self._reader.execute(query, values).fetchone()
        return found

    def _has(self, table: str, column: str = "id") -> bool:
        return self._one("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", table, column) is not None

    def index_rows(self) -> None:
        """Read the keys of rows into memory: asking for one that is not there then costs nothing.

        What other processes add afterwards is not seen; at worst something is asked or kept twice.
        """
        self._row_ids = self._ids("row")

    def index_answers(self) -> None:
        """The same for answers."""
        self._answer_ids = self._ids("answer")

    def index_examples(self) -> None:
        """The same for examples."""
        self._example_ids = self._ids("example")

    def _ids(self, kind: str) -> dict[bytes, int]:
        """What is found under which key; of two with the same key the later run's counts."""
        known: dict[bytes, int] = {}
        with self._explained():
            for (body,) in self._reader.execute("SELECT body FROM keys WHERE kind = ? ORDER BY run, id", (kind,)):
                known.update(unpack_keys(body))
        return known

    def find_answer(self, key: bytes, example: Mapping[str, Any]) -> tuple[int, StoredAnswer] | None:
        """The newest answer under a response key, and its id."""
        identity = self._answer_ids.get(key)
        if identity is None:
            return None
        query = (
            "SELECT body FROM responses WHERE id = ? "
            "UNION ALL SELECT answer FROM rows WHERE id = ? AND answer IS NOT NULL"
        )
        with self._explained():
            found = self._one(query, identity, identity)
            return None if found is None else (identity, _answer(found[0], example))

    def find_rows(self, wanted: Sequence[tuple[bytes | None, Mapping[str, Any]]]) -> list[tuple[int, EvalRow] | None]:
        """For each row key and example the newest finished row, and the id of the answer in it."""
        ids = [self._row_ids.get(key) if key else None for key, _ in wanted]
        known = self._read_rows([identity for identity in ids if identity is not None])
        rows: list[tuple[int, EvalRow] | None] = []
        for identity, (_, example) in zip(ids, wanted):
            found = None if identity is None else known.get(identity)
            if found is None:
                rows.append(None)
            else:
                response, parts, packed = found
                rows.append((response, unpack_row(parts, _response(packed, example))))
        return rows

    def _read_rows(self, ids: list[int]) -> dict[int, tuple[int, list[Any], dict[str, Any]]]:
        """Of each row the id of its answer, its parts and what the system returned; not of one whose answer is gone."""
        rows: dict[int, tuple[int, list[Any], dict[str, Any]]] = {}
        for start in range(0, len(ids), _MANY):
            some = ids[start : start + _MANY]
            query = f"SELECT id, response, body, {self._answer} FROM rows WHERE id IN ({_marks(some)})"
            with self._explained():
                for identity, response, body, answer in self._reader.execute(query, some):
                    if answer is not None:
                        rows[identity] = (response, orjson.loads(body), orjson.loads(answer)["processed"])
        return rows

    def find_scores(self, key: bytes) -> dict[str, Any] | None:
        """What an evaluator said, under a score key."""
        with self._explained():
            found = self._one("SELECT body FROM scores WHERE key = ?", key)
            return None if found is None else orjson.loads(found[0])

    # -- putting down

    def example_id(self, run: RunInfo, place: int, key: bytes) -> int:
        """The id of an example: that under which it was found, or a new one."""
        return self._example_ids.get(key) or identity_of(run.number, place)

    def put_example(self, identity: int, key: bytes, example: Mapping[str, Any]) -> None:
        """Keep an example under its id, after its row: who removes runs meanwhile sees that it is used."""
        self._put(Batch.example, identity, key, to_bytes(example), key in self._example_ids)

    def put_answer(
        self, run: RunInfo, place: int, key: bytes | None, example: Mapping[str, Any], answer: StoredAnswer
    ) -> int:
        """Keep the answer of a run at a place; without a key it is not looked for again. Its id."""
        body = to_bytes(
            {
                "processed": pack_processed(answer.processed, example),
                "metadata": answer.metadata,
                "latency": answer.latency,
                "returns": answer.returns,
            }
        )
        identity = identity_of(run.number, place)
        self._put(Batch.answer, identity, key, body)
        return identity

    def put_scores(self, key: bytes, scores: Mapping[str, Any]) -> None:
        """Keep what an evaluator said."""
        self._put(Batch.other, "scores", key, to_bytes(scores))

    def put_row(
        self, run: RunInfo, place: int, key: bytes | None, example: int, response: int | None, row: EvalRow
    ) -> None:
        """Keep the row of a run at a place; without a key it is not looked for again."""
        self._put(Batch.row, identity_of(run.number, place), key, example, response, pack_row(row))

    def copy_row(self, run: RunInfo, place: int, key: bytes) -> None:
        """Keep a finished row, found under its key, as a row of this run too; many are copied by one statement."""
        old = self._row_ids[key]
        shift = identity_of(run.number, place) - old
        if shift != self._shift or len(self._copied) == _MANY:
            self.settle_copies()
        self._shift = shift
        self._copied.append(old)

    def settle_copies(self) -> None:
        """Write down what `copy_row` has gathered."""
        if self._copied:
            ids, self._copied = self._copied, []
            statement = (
                "INSERT OR REPLACE INTO rows "
                f"SELECT id + ?, example, response, body, NULL FROM rows WHERE id IN ({_marks(ids)})"
            )
            self._put(Batch.change, statement, self._shift, *ids)

    def put_request(self, run: RunInfo, place: int, record: Mapping[str, Any]) -> None:
        """Keep a request that a tap saw and that is no part of an answer."""
        self._put(Batch.other, "requests", identity_of(run.number, place), to_bytes(record))

    # -- runs

    def start_run(self, config: Mapping[str, Any]) -> RunInfo:
        """Record that a run has begun."""
        created = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        number = self._at_once(partial(_start, created=created, config=to_bytes(config)))
        return RunInfo(number, _run_id(created, number), created, "running", dict(config), {}, {})

    def end_run(self, run: RunInfo, status: str, result: EvalResult) -> None:
        """Record how a run ended, and with what."""
        self.settle_copies()
        # Not strict JSON: a cost may be infinite.
        numbers = [json.dumps(each, default=float).encode() for each in (result.summary, result.timing)]
        statement = "UPDATE runs SET status = ?, config = ?, summary = ?, timing = ? WHERE number = ?"
        self._put(
            Batch.change, statement, status, to_bytes({**result.config, "notes": result.notes}), *numbers, run.number
        )

    def runs(self) -> list[RunInfo]:
        """All runs, the newest first."""
        with self._explained():
            found = self._reader.execute("SELECT * FROM runs ORDER BY number DESC").fetchall()
            return [RunInfo(*run[:4], *map(json.loads, run[4:])) for run in found]

    def run(self, name: str) -> RunInfo:
        """A run by its id, the start of one, or `last`."""
        runs = self.runs()
        if name == "last" and runs:
            return runs[0]
        matching = [run for run in runs if run.id == name] or [run for run in runs if name and run.id.startswith(name)]
        if len(matching) > 1:
            raise UsageError(f"{len(matching)} runs start with {name!r}: {', '.join(run.id for run in matching[:5])}")
        if not matching:
            raise UsageError(f"there is no run {name!r} in {self.directory}: `context-bench runs list` shows them")
        return matching[0]

    def run_rows(self, run: RunInfo) -> Iterator[EvalRow]:
        """The rows of a run, in order."""
        for record in self.run_records(run):
            yield record.row

    def run_records(self, run: RunInfo) -> Iterator[RunRecord]:
        """The rows of a run with their example and answer, in order."""
        with self._explained():
            yield from (
                _record(*found)
                for found in self._reader.execute(
                    f"SELECT rows.body, rows.response, {self._answer}, rows.example, examples.key, examples.body "
                    f"FROM rows LEFT JOIN examples ON examples.{self._example} = rows.example "
                    "WHERE rows.id >= ? AND rows.id < ? ORDER BY rows.id",
                    places_of(run.number),
                )
            )

    def run_requests(self, run: RunInfo) -> Iterator[dict[str, Any]]:
        """The requests that were kept with `put_request`, in order; none in a store of before there was a tap."""
        if not self._has("requests"):
            return
        with self._explained():
            query = "SELECT body FROM requests WHERE id >= ? AND id < ? ORDER BY id"
            yield from (orjson.loads(body) for (body,) in self._reader.execute(query, places_of(run.number)))

    def remove_run(self, run: RunInfo) -> None:
        """Forget a run, and what it made and no other run uses."""
        self._at_once(partial(remove_run, run=run.number))

    def _at_once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Change something and wait until it is done."""
        connection = connect(self.directory)
        try:
            with self._explained():
                return transaction(connection, partial(work, connection))
        finally:
            connection.close()


def _refuse(*_: Any) -> None:
    raise AssertionError("this store was opened to be read")


def _start(connection: sqlite3.Connection, created: str, config: bytes) -> int:
    values = ("", created, "running", config, b"{}", b"{}")
    number = connection.execute("INSERT INTO runs VALUES (NULL, ?, ?, ?, ?, ?, ?)", values).lastrowid or 0
    connection.execute("UPDATE runs SET id = ? WHERE number = ?", (_run_id(created, number), number))
    return number


def _run_id(created: str, number: int) -> str:
    """What people call a run: the moment of its start, and a number that no other run of the store has."""
    moment = "".join(char for char in created[:19] if char.isdigit())
    return f"{moment[:8]}-{moment[8:]}-{number}"


def _record(
    row: bytes, response: int | None, answer: bytes | None, identity: int, key: bytes | None, example: bytes | None
) -> RunRecord:
    original = orjson.loads(example) if example else {}
    found = _answer(answer, original) if answer else None
    unpacked = unpack_row(orjson.loads(row), found.processed["response"] if found else "")
    return RunRecord(unpacked, original, key or b"", identity, found, response)


def _answer(body: bytes, example: Mapping[str, Any]) -> StoredAnswer:
    record = orjson.loads(body)
    processed = unpack_processed(record["processed"], example)
    return StoredAnswer(processed, record["metadata"], record["latency"], record["returns"])


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def _response(packed: Mapping[str, Any], example: Mapping[str, Any]) -> str:
    response: str | None = packed["changed"].get("response")
    return unpack_processed(packed, example)["response"] if response is None else response
