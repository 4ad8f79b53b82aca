"""What is put down between two commits, and how it gets into the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from context_bench.store.records import pack_keys, run_of

__all__ = ["Batch"]

_ROWS = 100

KeyIds = list[tuple[bytes, int]]


class Batch:
    """Gathers rows of tables, so that one statement takes many of them.

    An answer waits here for its row, which mostly follows at once: both are then written as one. Without a key
    nothing is looked for again.
    """

    def __init__(self) -> None:
        self._examples: list[tuple[Any, ...]] = []
        self._rows: list[tuple[Any, ...]] = []
        self._answers: dict[int, bytes] = {}
        self._others: dict[str, list[tuple[Any, ...]]] = {}
        self._keys: dict[str, KeyIds] = {"example": [], "answer": [], "row": []}
        self._changes: list[tuple[str, Sequence[Any]]] = []

    def example(self, identity: int, key: bytes, body: bytes, known: bool) -> None:
        """An example, unless it is there; one that is known was when it was looked for."""
        self._examples.append((identity, key, body))
        if not known:
            self._keys["example"].append((key, identity))

    def answer(self, identity: int, key: bytes | None, body: bytes) -> None:
        """An answer, for which there may be a row soon."""
        self._answers[identity] = body
        if key is not None:
            self._keys["answer"].append((key, identity))

    def row(self, identity: int, key: bytes | None, example: int, response: int | None, body: bytes) -> None:
        """A row, together with its answer if that came just before it."""
        answer = self._answers.pop(identity, None) if response == identity else None
        self._rows.append((identity, example, response, body, answer))
        if key is not None:
            self._keys["row"].append((key, identity))

    def other(self, table: str, *values: Any) -> None:
        """A row of any other table, in place of one with the same key."""
        self._others.setdefault(table, []).append(values)

    def change(self, statement: str, *values: Any) -> None:
        """Any other statement."""
        self._changes.append((statement, values))

    def write(self, connection: sqlite3.Connection) -> None:
        """Everything, within the transaction that is open."""
        for statement, values in self._changes:
            connection.execute(statement, values)
        _insert(connection, "examples", self._examples, otherwise="IGNORE")
        _insert(connection, "responses", list(self._answers.items()))
        _insert(connection, "rows", self._rows)
        for table, rows in self._others.items():
            _insert(connection, table, rows)
        _insert(connection, "keys", [part for kind, keys in self._keys.items() for part in _parts(kind, keys)])


def _parts(kind: str, keys: KeyIds) -> list[tuple[Any, ...]]:
    """The keys of each run as one piece."""
    runs = {run_of(identity) for _, identity in keys}
    return [(None, run, kind, pack_keys([each for each in keys if run_of(each[1]) == run])) for run in runs]


def _insert(
    connection: sqlite3.Connection, table: str, rows: Sequence[tuple[Any, ...]], otherwise: str = "REPLACE"
) -> None:
    """Many rows in one statement: each statement hands the interpreter's lock over and back, each row need not."""
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        row = "(" + ",".join("?" * len(part[0])) + ")"
        values = [value for each in part for value in each]
        connection.execute(f"INSERT OR {otherwise} INTO {table} VALUES {','.join([row] * len(part))}", values)
