"""Writes go through one thread, many at a time: an answer is on disk within 50 ms, and nobody waits for it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from context_bench.errors import StoreError
from context_bench.store.database import connect, explain

__all__ = ["Writer"]

_PAUSE = 0.02


class Writer:
    """Collects rows for tables and commits them in batches.

    The first failure (a full disk, say) is kept in `failure`; what was committed before it stays.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._connection = connect(directory)
        self._pending: deque[tuple[str, tuple[Any, ...]]] = deque()
        self._wake = threading.Event()
        self._closing = False
        self.failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="context-bench-store", daemon=True)
        self._thread.start()

    def add(self, statement: str, values: tuple[Any, ...]) -> None:
        """Queue one row for an INSERT statement."""
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
                self._connection.executemany(statement, rows)

        try:
            transaction(self._connection, write)
        except sqlite3.Error as error:
            self.failure = explain(error, self._directory)

    def close(self) -> None:
        """Write what is left and close; raises the failure if there was one."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._commit()
        self._connection.close()
        if self.failure:
            raise self.failure


def transaction(connection: sqlite3.Connection, work: Callable[[], None]) -> None:
    """Run `work` as one transaction: all of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        work()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
