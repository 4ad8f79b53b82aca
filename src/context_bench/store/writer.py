"""Writes go through one thread, many at a time: an answer is on disk within 50 ms, and nobody waits for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from context_bench.errors import StoreError
from context_bench.store.batch import Batch
from context_bench.store.database import FILE_NAME, connect, explain, transaction

__all__ = ["Writer"]

_PAUSE = 0.02


class Writer:
    """Gathers what is put down and commits it in batches.

    The first failure (a full disk, say) is kept in `failure`, and `on_failure` is told; what was committed before it
    stays.
    """

    def __init__(self, directory: Path, on_failure: Callable[[StoreError], None] = lambda _: None) -> None:
        self._on_failure = on_failure
        self._path = directory / FILE_NAME
        self._connection = connect(directory)
        self._pending: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._wake = threading.Event()
        self._awake = self._closing = False
        self.failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="context-bench-store", daemon=True)
        self._thread.start()

    def put(self, what: Callable[..., None], *values: Any) -> None:
        """Queue something for the next batch: a method of Batch, and its values."""
        self._pending.append((what, values))
        if not self._awake:
            self._awake = True
            self._wake.set()

    def _work(self) -> None:
        while not self._closing:
            self._wake.wait()
            if not self._closing:
                time.sleep(_PAUSE)  # let a batch gather; well within the 50 ms
            self._wake.clear()
            self._awake = False
            self._commit()

    def _commit(self) -> None:
        if self.failure:
            self._pending.clear()
        if not self._pending:
            return
        try:
            batch, take = Batch(), self._pending.popleft
            for _ in range(len(self._pending)):
                what, values = take()
                what(batch, *values)
            transaction(self._connection, partial(batch.write, self._connection))
        except Exception as error:  # noqa: BLE001 - a thread that dies would say nothing
            self.failure = explain(error, self._path)
            self._on_failure(self.failure)

    def close(self) -> None:
        """Write what is left and close; raises the failure if there was one."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._commit()
        self._connection.close()
        if self.failure:
            raise self.failure
