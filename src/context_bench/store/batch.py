"""What is put down between two commits, and how it gets into the database."""

from __future__ import annotations

import sqlite3
from typing import Any

from context_bench.store.records import pack_keys, run_of

__all__ = ["Batch"]

_ROWS = 100


class Batch:
    """Rows for tables, gathered so that one statement takes many of them.

    An answer waits here for its row, which mostly follows at once: both are then written as one. `changes` are
    other statements, with the values of each time.
    """

    def __init__(self) -> None:
        self.answers: dict[int, bytes] = {}
        self.changes: list[tuple[str, tuple[Any, ...]]] = []
        self._tables: dict[str, list[tuple[Any, ...]]] = {}
        self._keys: dict[str, list[tuple[bytes, int]]] = {}

    def __bool__(self) -> bool:
        return bool(self.answers or self.changes or self._tables or self._keys)

    def add(self, table: str, *values: Any) -> None:
        """A row of a table, in place of one with the same key."""
        rows = self._tables.get(table)
        if rows is None:
            self._tables[table] = [values]
        else:
            rows.append(values)

    def add_key(self, kind: str, key: bytes, identity: int) -> None:
        """Where something is found again."""
        keys = self._keys.get(kind)
        if keys is None:
            self._keys[kind] = [(key, identity)]
        else:
            keys.append((key, identity))

    def write(self, connection: sqlite3.Connection) -> None:
        """Everything, within the transaction that is open."""
        for statement, values in self.changes:
            connection.execute(statement, values)
        for identity, body in self.answers.items():
            self.add("responses", identity, body)
        for kind, known in self._keys.items():
            for run in {run_of(identity) for _, identity in known}:
                body = pack_keys([each for each in known if run_of(each[1]) == run])
                self.add("keys", None, run, kind, body)
        for table, rows in self._tables.items():
            _insert(connection, table, rows)


def _insert(connection: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    """Many rows in one statement: each statement hands the interpreter's lock over and back, each row need not."""
    row = "(" + ",".join("?" * len(rows[0])) + ")"
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        values = [value for each in part for value in each]
        connection.execute(f"INSERT OR REPLACE INTO {table} VALUES {','.join([row] * len(part))}", values)
