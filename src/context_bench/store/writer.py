"""Batched writes through one thread: an answer is on disk within 50 ms, and callers do not wait for it.

A `Batch` holds the writes between two commits; the `Writer` fills one after the other and commits them. Long contents
are compressed in separate threads, on all cores, because one thread would fall behind a run over long contexts.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from context_bench.errors import StoreError
from context_bench.store.database import FILE_NAME, checkpoint, connect, explain
from context_bench.store.records import PLACES, seal_keys, seal_one, seal_row, to_bytes

Content = bytes | Future[bytes]  # a content to be kept; or, of a long one, the record that a thread makes of it

LONG_CONTENT = 16_384  # bytes from which compressing a content in a thread takes longer than handing it over

_PAUSE, _LONGER_PAUSE, _MANY = 0.004, 0.016, 8
"""Seconds for which a batch collects writes, and the extra seconds when many results came: large batches are cheaper,
and small ones reach the disk soon, so a killed run repeats hardly more than its requests in flight."""

_MAX_QUEUED = 2_000
_MAX_LONG_BYTES = 64 * 2**20
"""Limits of the backlog: queued results, and bytes of unwritten long contents."""

_ROWS = 100
_BYTES = 262_144
"""Limits of one statement, in rows and approximate bytes: Python keeps the last values of each statement."""

_CHECKPOINT_BYTES = 4 * 2**20
"""Bytes of contents after which the log is moved to the file: by a thread, so that the writer does not wait for the
disk, and often, so that little is left to do at the end."""

KeyIds = list[tuple[bytes, int]]
Sealed = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]], list[tuple[Any, ...]], int]
"""The records of examples, answers and rows, and the bytes of their contents."""

_KEEP_ANSWER = (
    "INSERT OR IGNORE INTO responses SELECT ?, ? "
    "WHERE NOT EXISTS (SELECT 1 FROM rows WHERE id = ? AND answer IS NOT NULL)"
)
_MENDED = "ON CONFLICT (id) DO UPDATE SET key = excluded.key, body = excluded.body WHERE body != excluded.body"
"""Keep an existing example unless it is damaged: an id never belongs to two examples."""


class Copy(NamedTuple):
    """A row of an earlier run that a later run will have too; the earlier run may be removed before that. `found`
    has its columns: id, example, response, body, the record of its answer, and the id again.
    """

    found: tuple[Any, ...]
    example_key: bytes
    example: Mapping[str, Any]


class WriteBatch:
    """The writes between two commits, gathered so that one statement inserts many rows.

    An answer waits here for its row, which usually follows at once, so that both are written together. Records
    without a key are never found again.
    """

    def __init__(self) -> None:
        self._examples: list[tuple[int, bytes, Content]] = []
        self._rows: list[tuple[int, int, int | None, bytes, Content | None]] = []
        self._answers: dict[int, Content] = {}
        self._used: list[tuple[int, bytes, int]] = []
        self._copies: list[tuple[int, Sequence[Copy]]] = []
        self._others: dict[str, list[tuple[Any, ...]]] = {}
        self._keys: dict[str, KeyIds] = {"example": [], "answer": [], "row": []}
        self._changes: list[tuple[str, Sequence[Any]]] = []

    def example(self, identity: int, key: bytes, body: Content, known: bool) -> None:
        """Add an example unless it is stored; `known` means that the look-up found it."""
        self._examples.append((identity, key, body))
        if not known:
            self._keys["example"].append((key, identity))

    def answer(self, identity: int, key: bytes | None, body: Content) -> None:
        """Add an answer, whose row may follow."""
        self._answers[identity] = body
        if key is not None:
            self._keys["answer"].append((key, identity))

    def row(
        self,
        identity: int,
        key: bytes | None,
        example: int,
        response: int | None,
        body: bytes,
        record: bytes | None = None,
    ) -> None:
        """Add a row, together with its answer if that was added just before.

        `record` is an answer that was found in the store: it is kept if it has been removed since.
        """
        answer = self._answers.pop(identity, None) if response == identity else None
        self._rows.append((identity, example, response, body, answer))
        if response is not None and record is not None:
            self._used.append((response, record, response))
        if key is not None:
            self._keys["row"].append((key, identity))

    def result(
        self,
        identity: int,
        answer_key: bytes | None,
        answer: Content | None,
        key: bytes | None,
        example: int,
        response: int | None,
        body: bytes,
        record: bytes | None,
        new_example: tuple[bytes, Content, bool] | None,
    ) -> None:
        """Add a row with its answer and its example; `new_example` has its key, content and `known`, or is None if
        stored.

        The example comes after the row, so that a concurrent removal of runs sees that it is used.
        """
        if answer is not None and answer_key is not None:
            self._keys["answer"].append((answer_key, identity))
        if answer is None and response == identity:
            answer = self._answers.pop(identity, None)
        self._rows.append((identity, example, response, body, answer))
        if response is not None and record is not None:
            self._used.append((response, record, response))
        if key is not None:
            self._keys["row"].append((key, identity))
        if new_example is not None:
            self.example(example, *new_example)

    def copy(self, shift: int, copies: Sequence[Copy]) -> None:
        """Add rows of earlier runs as rows of this one, with ids increased by `shift`."""
        self._copies.append((shift, copies))

    def request(self, identity: int, body: Content) -> None:
        """Add a request at the tap that belongs to no answer."""
        self.other("requests", identity, _make_record(body, identity))

    def other(self, table: str, *values: Any) -> None:
        """Add a row of any other table; it replaces one with the same key."""
        self._others.setdefault(table, []).append(values)

    def change(self, statement: str, *values: Any) -> None:
        """Add any other statement, which is executed first."""
        self._changes.append((statement, values))

    def seal(self) -> Sealed:
        """Make the records of all contents; wait for the threads that handle long ones."""
        examples = [(identity, key, _make_record(body, identity, key)) for identity, key, body in self._examples]
        answers = [(identity, _make_record(body, identity)) for identity, body in self._answers.items()]
        rows = [
            (place, example, response, seal_row(body, example, response), answer and _make_record(answer, place), place)
            for place, example, response, body, answer in self._rows
        ]
        size = sum([len(each[2]) for each in examples]) + sum([len(each[1]) for each in answers])
        size += sum([len(each[4]) for each in rows if each[4]])
        return examples, answers, rows, size

    def write(self, connection: sqlite3.Connection) -> int:
        """Write everything as one transaction: all of it, or nothing. Returns the bytes of the contents."""
        examples, answers, rows, size = self.seal()
        together = max(1, min(_ROWS, _BYTES * (len(examples) + len(answers) + len(rows)) // max(1, size)))
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            for statement, values in self._changes:
                connection.execute(statement, values)
            for shift, copies in self._copies:
                _copy_rows(connection, shift, copies)
            _insert(connection, "examples", examples, "INSERT", _MENDED, together)
            _insert(connection, "responses", answers, together=together)
            connection.executemany(_KEEP_ANSWER, self._used)
            _insert(connection, "rows", rows, together=together)
            for table, rows in self._others.items():
                _insert(connection, table, rows)
            _insert(connection, "keys", [part for kind, keys in self._keys.items() for part in _parts(kind, keys)])
        return size


def _make_record(body: Content, identity: int, key: bytes = b"") -> bytes:
    """Return the record of a content, waiting for the thread that makes it if there is one."""
    return seal_one(body, identity, key) if type(body) is bytes else body.result()  # type: ignore[union-attr]


def _copy_rows(connection: sqlite3.Connection, shift: int, copies: Sequence[Copy]) -> None:
    """Copy rows by one statement; rewrite rows removed since then, with their answers and examples."""
    marks = ",".join("?" * len(copies))
    old = [each.found[0] for each in copies]
    statement = (
        "INSERT OR REPLACE INTO rows SELECT id + ?, example, response, body, NULL, again + ? "
        f"FROM rows WHERE id IN ({marks})"
    )
    if connection.execute(statement, (shift, shift, *old)).rowcount == len(copies):
        return
    there = {identity for (identity,) in connection.execute(f"SELECT id FROM rows WHERE id IN ({marks})", old)}
    rows, answers, examples = [], [], []
    for (identity, original, response, body, record, _), key, example in copies:
        if identity not in there:
            rows.append((identity + shift, original, response, body, None, identity + shift))
            answers.append((response, record, response))
            examples.append((original, key, seal_one(to_bytes(example), original, key)))
    _insert(connection, "rows", rows)
    connection.executemany(_KEEP_ANSWER, answers)
    _insert(connection, "examples", examples, "INSERT", _MENDED)


def _parts(kind: str, keys: KeyIds) -> list[tuple[Any, ...]]:
    """Make the rows of the table of keys: one block for each run, of which there is usually one."""
    runs = dict.fromkeys([identity >> PLACES for _, identity in keys])
    if len(runs) == 1:
        return [(None, run, kind, seal_keys(keys, run, kind)) for run in runs]
    own = {run: [each for each in keys if each[1] >> PLACES == run] for run in runs}
    return [(None, run, kind, seal_keys(own[run], run, kind)) for run in runs]


def _insert(
    connection: sqlite3.Connection,
    table: str,
    rows: Sequence[tuple[Any, ...]],
    verb: str = "INSERT OR REPLACE",
    otherwise: str = "",
    together: int = _ROWS,
) -> None:
    """Insert many rows by one statement, since each statement releases and retakes the interpreter lock."""
    for start in range(0, len(rows), together):
        part = rows[start : start + together]
        row = "(" + ",".join("?" * len(part[0])) + ")"
        values = tuple(chain.from_iterable(part))
        connection.execute(f"{verb} INTO {table} VALUES {','.join([row] * len(part))} {otherwise}", values)


class Writer:
    """Gathers writes and commits them in batches, in a separate thread. The first failure (such as a full disk) is kept
    in `failure`, and passed to `on_failure`; earlier commits stay. `put` never blocks: callers check `is_behind` before
    they produce more.
    """

    def __init__(self, directory: Path, on_failure: Callable[[StoreError], None] = lambda _: None) -> None:
        self._on_failure = on_failure
        self._path = directory / FILE_NAME
        self._connection = connect(directory)
        self._inode = self._path.stat().st_ino
        self._pending: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._wake = threading.Event()
        self._awake = self._closing = False
        self._long_bytes, self._lock = 0, threading.Lock()
        self._logged = 0
        self._checkpoint: Future[None] | None = None
        self.failure: StoreError | None = None
        self._compressing = ThreadPoolExecutor(os.cpu_count() or 1, "context-bench-compress")
        self._thread = threading.Thread(target=self._work, name="context-bench-store", daemon=True)
        self._thread.start()

    @property
    def is_behind(self) -> bool:
        """Whether the backlog is so large that callers should wait, since memory would grow."""
        return len(self._pending) > _MAX_QUEUED or self._long_bytes > _MAX_LONG_BYTES

    def put(self, what: Callable[..., None], *values: Any) -> None:
        """Queue a call for the next batch: a method of WriteBatch, and its arguments."""
        self._pending.append((what, values))
        if not self._awake:
            self._awake = True
            self._wake.set()

    def seal(self, content: bytes, identity: int, key: bytes = b"") -> Content:
        """Start making the record of a long content in a thread; the batch itself makes short ones."""
        if len(content) < LONG_CONTENT:
            return content
        with self._lock:
            self._long_bytes += len(content)
        return self._compressing.submit(seal_one, content, identity, key)

    def _work(self) -> None:
        while not self._closing:
            self._wake.wait()
            if not self._closing and not self.is_behind:
                time.sleep(_PAUSE)
                if len(self._pending) >= _MANY:
                    time.sleep(_LONGER_PAUSE)
            self._wake.clear()
            self._awake = False
            self._commit()

    def _commit(self) -> None:
        if self.failure:
            self._pending.clear()
        if not self._pending:
            return
        written = self._long_bytes
        try:
            batch, take = WriteBatch(), self._pending.popleft
            for _ in range(len(self._pending)):
                what, values = take()
                what(batch, *values)
            self._logged += batch.write(self._connection)
            self._check_file()
            if self._logged >= _CHECKPOINT_BYTES and (self._checkpoint is None or self._checkpoint.done()):
                self._logged, self._checkpoint = 0, self._compressing.submit(checkpoint, self._path.parent)
        except Exception as error:  # noqa: BLE001 - a thread that dies would say nothing
            self.failure = error if isinstance(error, StoreError) else explain(error, self._path)
            self._on_failure(self.failure)
        with self._lock:
            self._long_bytes -= written

    def _check_file(self) -> None:
        """Check that the file still exists: SQLite keeps writing into a deleted one."""
        try:
            found = self._path.stat().st_ino
        except OSError:
            found = None
        if found != self._inode:
            raise StoreError(f"the store {self._path} was deleted during the run: its records are lost")

    def close(self) -> None:
        """Write the remaining records, and close; raise the failure if there was one."""
        self._closing = True
        self._wake.set()
        self._thread.join()
        self._commit()
        self._compressing.shutdown()
        self._connection.close()
        if self.failure:
            raise self.failure
