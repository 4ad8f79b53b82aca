"""The viewer's access to the store, and the runs that are open in it.

Whatever happens to the file, a request gets its current content or a one-sentence error. The rows of a run are read
once, in short pieces, even while more are written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from context_bench.compare.verdicts import choose_baseline
from context_bench.errors import ContextBenchError, StoreError, UsageError
from context_bench.output.page.row_index import RowIndex
from context_bench.output.page.run_facts import RunFacts, clean_name, read_values, to_source, write_time
from context_bench.results import EvalResult
from context_bench.settings import RunSettings
from context_bench.store import RunInfo
from context_bench.store.backend import RunRecord, restore_result
from context_bench.store.database import FAILURES, FILE_NAME
from context_bench.store.reader import LiveReader
from context_bench.store.records import places_of

_FRESH_SECONDS = 1.0
"""Seconds for which all viewers share one list of runs, so ten viewers cause no more reads than one viewer."""


class LiveStore:
    """A store that is read by the threads of a server, one at a time."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.generation = 0  # changes when another file has replaced the one that was read
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
        """Close the store."""
        with self._lock:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    @contextmanager
    def open(self) -> Iterator[LiveReader]:
        """Return a reader of the current file, for this thread only."""
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
                raise StoreError(f"{where} no longer exists: it was moved or removed") from error
            if self._reader is None or self._file != (found.st_dev, found.st_ino):
                self.close()
                self._reader = LiveReader(self.directory)
                self._file = found.st_dev, found.st_ino
                self.generation += 1
                self._runs, self._checksums, self._counts, self._listed = {}, {}, {}, 0.0
            yield self._reader

    def list_runs(self) -> list[tuple[RunInfo, int]]:
        """List the runs, the newest first, each with a checksum of its known data."""
        with self.open() as reader:
            if time.monotonic() - self._listed > _FRESH_SECONDS:
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
        """Count the rows of a run; for a running one, the count may be slightly old."""
        if run.row_count is not None:
            return run.row_count
        with self.open() as reader:
            when, count = self._counts.get(run.number, (-1e9, 0))
            if time.monotonic() - when > _FRESH_SECONDS + count / 20_000:  # the time grows with the rows
                count = reader.count_rows(run)
                self._counts[run.number] = time.monotonic(), count
            return count

    def is_under_way(self, run: RunInfo) -> bool:
        """Whether a process is working on a run."""
        with self.open() as reader:
            return reader.is_under_way(run)


_ROWS_AT_ONCE = 200  # rows read at once, while other threads wait
_IDS_AT_ONCE = 2_000  # ids searched for new rows at once


class FollowedRun:
    """A run whose rows go into an index, and whose facts are gathered."""

    def __init__(self, info: RunInfo, checksum: int, index: RowIndex) -> None:
        self._index = index
        self.info, self.checksum = info, checksum
        self.under_way = self.complete = False
        self._begin()

    def _begin(self) -> None:
        self.facts = RunFacts(_make_result(self.info), self.info.id, write_time(self.info))
        self._next = self._missing = places_of(self.info.number)[0]
        self._baseline = self.facts.baseline or _choose_baseline(self.info.settings)
        self._index.remove(self.info.number)
        self._index.set_baseline(self.info.number, None if self._baseline is None else clean_name(self._baseline))

    @property
    def version(self) -> str:
        """A version that changes whenever there is something new to show."""
        return f"{self.info.number}.{self.checksum & 0xFFFFFFFF:x}.{self.facts.seen}.{int(self.complete)}"

    def update(self, info: RunInfo, checksum: int, *, under_way: bool) -> None:
        """Update the known data of the run."""
        self.under_way = under_way
        if checksum == self.checksum:
            return
        self.info, self.checksum, self.complete = info, checksum, False
        result = _make_result(info)
        baseline = RunFacts(result, info.id).baseline
        if info.summary and baseline != self._baseline:
            self._begin()  # changes against the baseline must be found again
        else:
            self.facts.result = result

    def read_on(self, store: LiveStore) -> bool:
        """Read the next piece of rows; return False if there is none yet. Rows are not written in the order of
        their ids, so each pass looks for new rows from the first missing id on.
        """
        was_under_way = self.under_way
        end = places_of(self.info.number)[1]
        with store.open() as reader:
            ids = reader.list_rows(self._next, end, _IDS_AT_ONCE)
            if not ids:
                self._next = self._missing
                if not was_under_way and not self.complete:
                    self._index.find_flips()
                    self.complete = True
                return False
            known = self._index.list_ids(ids[0], ids[-1] + 1)
            new = [identity for identity in ids if identity not in known]
            found = reader.read_records(new[:_ROWS_AT_ONCE])
        self._add(found)
        self._next = new[_ROWS_AT_ONCE] if len(new) > _ROWS_AT_ONCE else ids[-1] + 1
        for identity in ids:
            if identity == self._missing and identity < self._next:
                self._missing += 1
        return True

    def _add(self, found: Sequence[tuple[int, RunRecord]]) -> None:
        facts, values = self.facts, []
        for identity, record in found:
            source = to_source(record)
            facts.add(source)
            score = facts.read_score(record.row)
            values.append(read_values(identity, self.info.number, source, score, facts.threshold))
        self._index.add(values)

    def describe(self, expected: int) -> RunFacts:
        """Return the current facts, with a sentence on a run that is unfinished or not fully read."""
        facts = self.facts
        seen = f"{facts.seen:,} rows"
        if not self.info.summary:
            self.facts.result = _make_result(self.info, self._index.sum_up(self.info.number))
            ended = "is in progress" if self.under_way else f"did not finish ({self.info.status})"
            facts.state = f"The run {ended}: {seen} so far; there are no intervals and no verdicts before its end."
        else:
            facts.state = ""
        read = f"Being read: {facts.seen:,} of {expected:,} rows so far."
        facts.unread = "" if self.complete or self.under_way else read
        facts.counts = self._index.count_kinds(self.info.number) if self.complete else {}
        return facts


def _make_result(info: RunInfo, summary: Mapping[str, dict[str, float]] | None = None) -> EvalResult:
    if info.summary:
        return restore_result(info, [])
    systems = [name for name in info.settings.systems if summary is None or name in summary]
    numbers = {name: dict((summary or {}).get(name, {})) for name in systems}
    return EvalResult([], {**numbers, **(summary or {})}, config=dict(info.config))


def _choose_baseline(settings: RunSettings) -> str | None:
    systems = list(settings.systems)
    wanted = settings.baseline
    if len(systems) < 2:
        return None
    return choose_baseline(systems, wanted if wanted in systems else None, settings.controls)


_PAUSE_SECONDS = 1.0  # seconds between two checks of a running run
_WATCHED_SECONDS = 15.0
"""Seconds for which a run is followed after a request; an open page sends a request every two seconds."""
_REST_SHARE = 0.2  # share of time that the thread leaves to requests and to a run


class Follower:
    """The followed runs, and the index of their rows."""

    def __init__(self, store: LiveStore) -> None:
        self.store = store
        self.index = RowIndex()
        self._runs: dict[int, FollowedRun] = {}
        self._asked: dict[int, float] = {}
        self._generation = store.generation
        self.lock = threading.RLock()  # locked while the facts of a run change or are read
        self._wake, self._ended = threading.Event(), False
        self._failure: StoreError | None = None
        self._thread = threading.Thread(target=self._work, name="context-bench-view", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and forget all followed runs."""
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
            if self.store.generation != self._generation:
                self._generation = self.store.generation
                for number in self._runs:
                    self.index.remove(number)
                self._runs = {}
            found = [self._take(*known[name]) for name in dict.fromkeys(names)]
        self._wake.set()
        return found

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
            except ContextBenchError:  # the next request gets the error; the file may come back later
                more = False
            except FAILURES as error:
                self._failure = StoreError(f"the index of rows, a temporary file, cannot be written ({error})")
                return
            took = time.monotonic() - began
            self._wake.clear()
            self._wake.wait(min(_PAUSE_SECONDS, took * _REST_SHARE) if more else _PAUSE_SECONDS)

    def _read_on(self) -> bool:
        """Read a piece of each followed run; return whether there is more."""
        more = False
        with self.lock:
            watched = [
                run
                for number, run in self._runs.items()
                if not run.complete and time.monotonic() - self._asked[number] < _WATCHED_SECONDS
            ]
        for run in watched:
            with self.lock:
                more = run.read_on(self.store) or more
        return more
