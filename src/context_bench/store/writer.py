"""Writes go through one thread, many at a time: an answer is on disk within 50 ms, and nobody waits for it."""

from __future__ import annotations

import sqlite3
import threading
import time
from functools import partial
from pathlib import Path

from context_bench.errors import StoreError
from context_bench.store.batch import Batch
from context_bench.store.database import FILE_NAME, connect, explain, transaction

__all__ = ["Writer"]

_PAUSE = 0.02


class Writer:
    """Gathers what is put down and commits it in batches: `with writer as batch: batch.add(...)`.

    The first failure (a full disk, say) is kept in `failure`; what was committed before it stays.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._connection = connect(directory)
        self._batch = Batch()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = False
        self.failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="context-bench-store", daemon=True)
        self._thread.start()

    def __enter__(self) -> Batch:
        self._lock.acquire()
        return self._batch

    def __exit__(self, *_: object) -> None:
        self._lock.release()
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
        with self._lock:
            batch, self._batch = self._batch, Batch()
        if not batch or self.failure:
            return
        try:
            transaction(self._connection, partial(batch.write, self._connection))
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
