"""Writes go through one thread, many at a time: an answer is on disk within 50 ms, and nobody waits for it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from itertools import chain
from pathlib import Path
from typing import Any

from context_bench.errors import StoreError
from context_bench.store.database import FILE_NAME, connect, explain, transaction

__all__ = ["Writer"]

_PAUSE = 0.02
_ROWS = 100


class Writer:
    """Collects rows for tables and commits them in batches.

    The first failure (a full disk, say) is kept in `failure`; what was committed before it stays.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._connection = connect(directory)
        self._pending: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._wake = threading.Event()
        self._closing = False
        self.failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="context-bench-store", daemon=True)
        self._thread.start()

    def add(self, statement: str, values: tuple[Any, ...]) -> None:
        """Queue one row for a statement that ends in VALUES, or the values of any other statement."""
        self._pending.append((statement, values))
        if not self._wake.is_set():
            self._wake.set()

    def _work(self) -> None:
        while not self._closing:
            self._wake.wait()
            if not self._closing:
                time.sleep(_PAUSE)  # let a batch gather; well within the 50 ms
            self._wake.clear()
            self._commit()

    def _commit(self) -> None:
        batch: dict[str, list[tuple[Any, ...]]] = {}
        for _ in range(len(self._pending)):
            statement, values = self._pending.popleft()
            batch.setdefault(statement, []).append(values)
        if not batch or self.failure:
            return

        def write() -> None:
            for statement, rows in batch.items():
                _execute(self._connection, statement, rows)

        try:
            transaction(self._connection, write)
        except sqlite3.Error as error:
            self.failure = explain(error, self._path)

    def close(self) -> None:
        """Write what is left and close; raises the failure if there was one."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._commit()
        self._connection.close()
        if self.failure:
            raise self.failure


def _execute(connection: sqlite3.Connection, statement: str, rows: list[tuple[Any, ...]]) -> None:
    """Many rows in one statement: each statement hands the interpreter's lock over and back, each row need not."""
    if not statement.endswith("VALUES"):
        connection.executemany(statement, rows)
        return
    row = "(" + ",".join("?" * len(rows[0])) + ")"
    for start in range(0, len(rows), _ROWS):
        part = rows[start : start + _ROWS]
        connection.execute(f"{statement} {','.join([row] * len(part))}", list(chain.from_iterable(part)))
