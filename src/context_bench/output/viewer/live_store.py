"""The store as the viewer sees it: whatever happens to the file, a request gets what is there now, or one sentence."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from context_bench.errors import StoreError
from context_bench.store import RunInfo
from context_bench.store.database import FILE_NAME
from context_bench.store.reader import LiveReader

__all__ = ["LiveStore"]

_FRESH = 1.0
"""Seconds for which all viewers are told the same of the runs: ten of them ask the store no more often than one."""


class LiveStore:
    """A store that is read by the threads of a server, one at a time.

    Args:
        directory: Where it lives.

    Attributes:
        generation: Changes when another file has come in place of the one that was read.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.generation = 0
        self._lock = threading.RLock()
        self._reader: LiveReader | None = None
        self._file: tuple[int, int] | None = None
        self._runs: dict[int, RunInfo] = {}
        self._checksums: dict[int, int] = {}
        self._counts: dict[int, tuple[float, int]] = {}
        self._listed = 0.0
        with self.open():
            pass

    def close(self) -> None:
        """Close it."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    @contextmanager
    def open(self) -> Iterator[LiveReader]:
        """Give the reader of the file that is there now, to this thread alone."""
        with self._lock:
            path = self.directory / FILE_NAME
            try:
                found = path.stat()
            except OSError as error:
                if self._reader is None and not self.generation:
                    raise StoreError(
                        f"there is no store in {self.directory}: nothing was recorded there yet"
                    ) from error
                where = f"the store in {self.directory}"
                raise StoreError(f"{where} is not there any more: it was moved or removed") from error
            if self._reader is None or self._file != (found.st_dev, found.st_ino):
                self.close()
                self._reader = LiveReader(self.directory)
                self._file = found.st_dev, found.st_ino
                self.generation += 1
                self._runs, self._checksums, self._counts, self._listed = {}, {}, {}, 0.0
            yield self._reader

    def list_runs(self) -> list[tuple[RunInfo, int]]:
        """List the runs, the newest first, each with a checksum of what is known of it."""
        with self.open() as reader:
            if time.monotonic() - self._listed > _FRESH:
                found = reader.read_checksums()
                for number, checksum in found.items():
                    if self._checksums.get(number) != checksum:
                        run = reader.read_run(number)
                        if run is not None:
                            self._runs[number] = run
                self._runs = {number: run for number, run in self._runs.items() if number in found}
                self._checksums, self._listed = found, time.monotonic()
            return [(self._runs[number], self._checksums[number]) for number in sorted(self._runs, reverse=True)]

    def count_rows(self, run: RunInfo) -> int:
        """Count the rows of a run; of one that is under way, as they were a moment ago."""
        if run.row_count is not None:
            return run.row_count
        with self.open() as reader:
            when, count = self._counts.get(run.number, (-1e9, 0))
            if time.monotonic() - when > _FRESH + count / 20_000:  # it takes longer the more there are
                count = reader.count_rows(run)
                self._counts[run.number] = time.monotonic(), count
            return count

    def is_under_way(self, run: RunInfo) -> bool:
        """Whether a process is at work on a run."""
        with self.open() as reader:
            return reader.is_under_way(run)
