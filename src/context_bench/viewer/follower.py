"""Follows the runs that somebody looks at, in one thread, however many look."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence

from context_bench.errors import ContextBenchError, StoreError, UsageError
from context_bench.report.row_index import RowIndex
from context_bench.store import RunInfo
from context_bench.viewer.followed_run import FollowedRun
from context_bench.viewer.live_store import LiveStore

__all__ = ["Follower"]

_PAUSE = 1.0
"""Seconds between two looks at a run that is under way."""
_WATCHED = 15.0
"""Seconds for which a run is followed after somebody asked for it; a page that is open asks every two."""
_REST = 0.2
"""The share of its time for which the thread leaves the processor to requests, and to a run."""


class Follower:
    """The runs that are followed, and the index of their rows.

    Args:
        store: That they are in.

    Attributes:
        lock: Held while the facts of a run change: whoever reads them holds it too.
    """

    def __init__(self, store: LiveStore) -> None:
        self.store = store
        self.index = RowIndex()
        self._runs: dict[int, FollowedRun] = {}
        self._asked: dict[int, float] = {}
        self._generation = store.generation
        self.lock = threading.RLock()
        self._wake, self._ended = threading.Event(), False
        self._failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="context-bench-view", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and forget everything."""
        self._ended = True
        self._wake.set()
        self._thread.join()
        self.index.close()

    def follow(self, names: Sequence[str]) -> list[FollowedRun]:
        """Follow runs by their ids from now on.

        Raises:
            UsageError: There is no such run.
            StoreError: The store, or the index of its rows, cannot be used.
        """
        if self._failure is not None:
            raise self._failure
        known = {run.id: (run, checksum) for run, checksum in self.store.list_runs()}
        for name in names:
            if name not in known:
                raise UsageError(f"there is no run {name!r} in {self.store.directory}")
        with self.lock:
            self._forget_other_store()
            found = [self._take(*known[name]) for name in dict.fromkeys(names)]
        self._wake.set()
        return found

    def _forget_other_store(self) -> None:
        if self.store.generation != self._generation:
            self._generation = self.store.generation
            for number in self._runs:
                self.index.remove(number)
            self._runs = {}

    def _take(self, info: RunInfo, checksum: int) -> FollowedRun:
        self._asked[info.number] = time.monotonic()
        followed = self._runs.get(info.number)
        if followed is None:
            followed = self._runs[info.number] = FollowedRun(info, checksum, self.index)
        followed.update(info, checksum, under_way=self.store.is_under_way(info))
        return followed

    def _work(self) -> None:
        while not self._ended:
            began = time.monotonic()
            try:
                more = self._read_on()
            except ContextBenchError:  # whoever asks next is told; it may be there again later
                more = False
            except sqlite3.Error as error:
                self._failure = StoreError(f"the index of rows, a temporary file, cannot be written ({error})")
                return
            took = time.monotonic() - began
            self._wake.clear()
            self._wake.wait(min(_PAUSE, took * _REST) if more else _PAUSE)

    def _read_on(self) -> bool:
        """Read a piece of each run that is looked at; whether there is more."""
        more = False
        with self.lock:
            watched = [
                run
                for number, run in self._runs.items()
                if not run.complete and time.monotonic() - self._asked[number] < _WATCHED
            ]
        for run in watched:
            with self.lock:
                more = run.read_on(self.store) or more
        return more
