"""The store: look up what is known, put down what is new, and list what was run."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from context_bench.errors import StoreError, UnknownName
from context_bench.results import EvalRow, dump_json
from context_bench.store.database import connect, explain
from context_bench.store.records import pack_processed, pack_row, to_bytes, unpack_processed, unpack_row
from context_bench.store.writer import Writer, transaction

__all__ = ["RunInfo", "Store", "StoredAnswer"]


@dataclass(frozen=True)
class RunInfo:
    """One run: when, how it ended, with what, and what came out."""

    id: str
    created: str
    status: str
    config: dict[str, Any]
    summary: dict[str, dict[str, float]]


@dataclass(frozen=True)
class StoredAnswer:
    """What a system returned, as it was the first time."""

    processed: dict[str, Any]
    metadata: dict[str, Any]
    latency: float
    returns: str


@dataclass(frozen=True)
class RunRecord:
    """A row of a run, with the example and the answer that it came from."""

    row: EvalRow
    example: dict[str, Any]
    answer: StoredAnswer | None
    response_key: bytes | None


class Store:
    """One directory with one database; any number of threads and processes.

    Args:
        directory: Where it lives; made when it does not exist.
        readonly: Only look: nothing is made or changed.
    """

    def __init__(self, directory: str | Path, *, readonly: bool = False) -> None:
        self.directory = Path(directory)
        self._reader = connect(self.directory, readonly=readonly)
        self._writer = None if readonly else Writer(self.directory)
        self._rows_known: set[bytes] = set()
        self._answers_known: set[bytes] = set()

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
        except sqlite3.Error as error:
            raise explain(error, self.directory) from error

    def _one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        with self._explained():
            found: tuple[Any, ...] | None = self._reader.execute(query, values).fetchone()
        return found

    def index(self) -> None:
        """Read all keys into memory: asking for one that is not there then costs nothing.

        What other processes add afterwards is not seen; at worst something is asked twice.
        """
        for table, keys in (("rows", self._rows_known), ("responses", self._answers_known)):
            with self._explained():
                keys.update(key for (key,) in self._reader.execute(f"SELECT key FROM {table}"))

    def find_answer(self, key: bytes, example: Mapping[str, Any]) -> StoredAnswer | None:
        """The answer under a response key."""
        if key not in self._answers_known:
            return None
        found = self._one("SELECT body FROM responses WHERE key = ?", key)
        return None if found is None else _answer(found[0], example)

    def find_row(self, key: bytes, example: Mapping[str, Any]) -> EvalRow | None:
        """The finished row under a row key, with its response."""
        if key not in self._rows_known:
            return None
        found = self._one(
            "SELECT rows.body, responses.body FROM rows JOIN responses ON responses.key = rows.response "
            "WHERE rows.key = ?",
            key,
        )
        if found is None:
            return None
        packed = orjson.loads(found[1])["processed"]
        response = packed["changed"].get("response")
        return unpack_row(found[0], unpack_processed(packed, example)["response"] if response is None else response)

    def find_scores(self, key: bytes) -> dict[str, Any] | None:
        """What an evaluator said, under a score key."""
        found = self._one("SELECT body FROM scores WHERE key = ?", key)
        return None if found is None else orjson.loads(found[0])

    # -- putting down

    def _put(self, statement: str, *values: Any) -> None:
        assert self._writer is not None, "this store was opened to be read"
        self._writer.add(statement, values)

    def put_example(self, key: bytes, body: bytes) -> None:
        """Keep an example, as JSON."""
        self._put("INSERT OR IGNORE INTO examples VALUES (?, ?)", key, body)

    def put_answer(
        self, key: bytes, example_key: bytes, system: str, example: Mapping[str, Any], answer: StoredAnswer
    ) -> None:
        """Keep an answer; a newer one replaces it."""
        body = to_bytes(
            {
                "processed": pack_processed(answer.processed, example),
                "metadata": answer.metadata,
                "latency": answer.latency,
                "returns": answer.returns,
            }
        )
        self._put("INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)", key, example_key, system, body)

    def put_scores(self, key: bytes, scores: Mapping[str, Any]) -> None:
        """Keep what an evaluator said."""
        self._put("INSERT OR REPLACE INTO scores VALUES (?, ?)", key, to_bytes(scores))

    def put_row(self, key: bytes, response_key: bytes | None, row: EvalRow) -> None:
        """Keep a finished row."""
        self._put("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", key, response_key, pack_row(row))

    def put_place(self, run: str, place: int, key: bytes) -> None:
        """Note that a row belongs to a run, and where it stands in it."""
        self._put("INSERT OR REPLACE INTO run_rows VALUES (?, ?, ?)", run, place, key)

    # -- runs

    def start_run(self, config: Mapping[str, Any]) -> str:
        """Record that a run has begun; its id."""
        run = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        created = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        self._put("INSERT INTO runs VALUES (?, ?, 'running', ?, '{}')", run, created, dump_json(config).encode())
        return run

    def end_run(self, run: str, status: str, config: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
        """Record how a run ended."""
        self._put(
            "UPDATE runs SET status = ?, config = ?, summary = ? WHERE id = ?",
            status,
            dump_json(config).encode(),
            dump_json(summary).encode(),
            run,
        )

    def runs(self) -> list[RunInfo]:
        """All runs, the newest first."""
        with self._explained():
            found = self._reader.execute("SELECT * FROM runs ORDER BY rowid DESC").fetchall()
        return [
            RunInfo(run, created, status, orjson.loads(config), orjson.loads(summary))
            for run, created, status, config, summary in found
        ]

    def run(self, name: str) -> RunInfo:
        """A run by its id, the start of one, or `last`."""
        runs = self.runs()
        if name == "last" and runs:
            return runs[0]
        matching = [run for run in runs if run.id == name] or [run for run in runs if run.id.startswith(name)]
        if len(matching) != 1:
            raise UnknownName("run", name, [run.id for run in runs])
        return matching[0]

    def run_rows(self, run: str) -> Iterator[EvalRow]:
        """The rows of a run, in order."""
        for record in self.run_records(run):
            yield record.row

    def run_records(self, run: str) -> Iterator[RunRecord]:
        """The rows of a run with their example and answer, in order."""
        cursor = self._reader.execute(
            "SELECT rows.body, rows.response, responses.body, examples.body FROM run_rows "
            "JOIN rows ON rows.key = run_rows.row "
            "LEFT JOIN responses ON responses.key = rows.response "
            "LEFT JOIN examples ON examples.key = responses.example "
            "WHERE run_rows.run = ? ORDER BY run_rows.place",
            (run,),
        )
        for row_body, response_key, answer_body, example_body in cursor:
            example = orjson.loads(example_body) if example_body else {}
            answer = _answer(answer_body, example) if answer_body else None
            row = unpack_row(row_body, answer.processed["response"] if answer else "")
            yield RunRecord(row, example, answer, response_key)

    def remove_run(self, run: str) -> None:
        """Forget a run and the answers that no other run uses."""
        connection = connect(self.directory)
        try:
            with self._explained():
                transaction(connection, lambda: _remove(connection, run))
        finally:
            connection.close()


def _remove(connection: sqlite3.Connection, run: str) -> None:
    connection.execute("DELETE FROM run_rows WHERE run = ?", (run,))
    connection.execute("DELETE FROM runs WHERE id = ?", (run,))
    connection.execute("DELETE FROM rows WHERE key NOT IN (SELECT row FROM run_rows)")
    connection.execute("DELETE FROM responses WHERE key NOT IN (SELECT response FROM rows WHERE response IS NOT NULL)")
    connection.execute("DELETE FROM examples WHERE key NOT IN (SELECT example FROM responses)")


def _answer(body: bytes, example: Mapping[str, Any]) -> StoredAnswer:
    record = orjson.loads(body)
    processed = unpack_processed(record["processed"], example)
    return StoredAnswer(processed, record["metadata"], record["latency"], record["returns"])
