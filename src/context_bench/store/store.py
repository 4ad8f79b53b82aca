"""The built-in store: one SQLite file for many processes; `StoreBackend` documents each method."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from context_bench.errors import StoreError, UsageError
from context_bench.registry import import_object
from context_bench.results import EvalResult, EvalRow
from context_bench.store.backend import Answer, FoundRow, Keys, RunInfo, StoredAnswer
from context_bench.store.database import (
    RunningMark,
    connect,
    insert_run,
    is_running,
    remove_run,
    run_id,
    shrink,
    update_run,
)
from context_bench.store.reader import ANSWER, Reader
from context_bench.store.records import (
    PLACES,
    Damaged,
    about_keys,
    about_one,
    about_row,
    find_response,
    identity_of,
    load,
    pack_answer,
    pack_row,
    seal,
    to_bytes,
    unpack_answer,
    unpack_keys,
    unpack_row,
    unseal,
)
from context_bench.store.writer import LONG_CONTENT, Copy, WriteBatch, Writer

T = TypeVar("T")

_MANY = 200  # rows that one statement reads or copies

_PAUSE = 0.005  # seconds between two checks of the unwritten records

_ASKED_AGAIN = "it is requested again"


class Store(Reader):
    """A folder with one database, for any number of threads and processes.

    A damaged record causes a warning and counts as missing. `failure` says why the store can no longer write, if
    so.

    Args:
        directory: The folder of the store; created if missing.
        readonly: Creates and changes nothing.
        create: False requires an existing store.
    """

    def __init__(self, directory: str | Path, *, readonly: bool = False, create: bool = True) -> None:
        super().__init__(Path(directory), readonly=readonly, create=create)
        self.failure: StoreError | None = None
        try:
            self._writer = None if readonly else Writer(self.directory, partial(setattr, self, "failure"))
        except StoreError:
            self._reader.close()
            raise
        self._put = _refuse if self._writer is None else self._writer.put
        self._seal = _refuse if self._writer is None else self._writer.seal
        self._marks: dict[int, RunningMark] = {}
        self._row_counts: Counter[int] = Counter()
        self._example_ids: dict[bytes, int] = {}
        self._row_ids: dict[bytes, int] = {}
        self._answer_ids: dict[bytes, int] = {}
        self._found: dict[int, tuple[Any, ...]] = {}
        self._copied: list[Copy] = []
        self._shift = 0

    def close(self) -> None:
        """Write the remaining records, and close."""
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            self._reader.close()
            for mark in self._marks.values():
                mark.release()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_behind(self) -> bool:
        """Whether writing has fallen behind; callers that continue use more and more memory."""
        return self._writer is not None and self._writer.is_behind

    async def catch_up(self) -> None:
        """Wait while writing is behind, because results that are made faster than they are written would fill the
        memory."""
        while self.is_behind and self.failure is None:
            await asyncio.sleep(_PAUSE)

    # -- looking up

    def has_keys(self) -> bool:
        return self._one("SELECT 1 FROM keys WHERE kind != 'example' LIMIT 1") is not None

    def index_rows(self) -> None:
        """Read the keys of rows into memory, as for answers and examples: a miss then costs nothing.

        Later additions of other processes are not seen; at worst, something is requested or stored twice.
        """
        self._row_ids = self._ids("row")

    def index_answers(self) -> None:
        self._answer_ids = self._ids("answer")

    def index_examples(self) -> None:
        self._example_ids = self._ids("example")

    def _ids(self, kind: str) -> dict[bytes, int]:
        """Map each key to its id; for equal keys, the later run's."""
        known: dict[bytes, int] = {}
        query = "SELECT id, run, body FROM keys WHERE kind = ? ORDER BY run, id"
        with self._explain_failures():
            for identity, run, body in self._reader.execute(query, (kind,)):
                try:
                    known.update(unpack_keys(unseal(body, about_keys(run, kind))))
                except Damaged:
                    self._damage.tell(f"list {identity} of the keys of {kind}s", "its contents are requested again")
        return known

    def find_answer(self, key: bytes, example: Mapping[str, Any]) -> tuple[int, StoredAnswer, bytes] | None:
        identity = self._answer_ids.get(key)
        if identity is None:
            return None
        query = (
            "SELECT body FROM responses WHERE id = ? "
            "UNION ALL SELECT answer FROM rows WHERE id = ? AND answer IS NOT NULL"
        )
        found = self._one(query, identity, identity)
        if found is None:
            return None
        try:
            return identity, unpack_answer(found[0], identity, example), found[0]
        except Damaged:
            self._damage.tell(self._name("answer", identity), _ASKED_AGAIN)
            return None

    def find_rows(self, wanted: Sequence[tuple[bytes | None, Mapping[str, Any]]]) -> list[FoundRow | None]:
        ids = [self._row_ids.get(key) if key else None for key, _ in wanted]
        known = self._read_rows([identity for identity in ids if identity is not None])
        self._found = {}
        rows: list[FoundRow | None] = []
        for identity, (_, example) in zip(ids, wanted):
            found = None if identity is None else known.get(identity)
            rows.append(None if found is None else self._unpack(found, example))
        return rows

    def _unpack(self, found: tuple[Any, ...], example: Mapping[str, Any]) -> FoundRow | None:
        identity, original, response, body, record, again = found
        try:
            text = find_response(load(record, about_one(response)), example)
            row = unpack_row(load(body, about_row(original, response)), text)
        except (Damaged, KeyError, TypeError, AttributeError):
            again = None
        if again != identity:
            self._damage.tell(self._name("row", identity), _ASKED_AGAIN)
            return None
        self._found[identity] = found
        return response, row, record

    def _read_rows(self, ids: list[int]) -> dict[int, tuple[Any, ...]]:
        """Read the columns of each row, and its answer; rows whose answer is gone are left out."""
        rows: dict[int, tuple[Any, ...]] = {}
        for start in range(0, len(ids), _MANY):
            some = ids[start : start + _MANY]
            marks = ",".join("?" * len(some))
            query = f"SELECT id, example, response, body, {ANSWER}, again FROM rows WHERE id IN ({marks})"
            with self._explain_failures():
                rows.update((row[0], row) for row in self._reader.execute(query, some) if row[4] is not None)
        return rows

    def find_scores(self, key: bytes) -> dict[str, Any] | None:
        found = self._one("SELECT body FROM scores WHERE key = ?", key)
        if found is None:
            return None
        try:
            scores: dict[str, Any] = load(found[0], key)
            return scores
        except Damaged:
            self._damage.tell(f"score {key.hex()}", "the evaluator is called again")
            return None

    # -- putting down

    def example_id(self, run: RunInfo, place: int, key: bytes) -> int:
        """Return the id of an example: the one in the store, or a new one."""
        return self._example_ids.get(key) or identity_of(run.number, place)

    def put_example(self, identity: int, key: bytes, example: Mapping[str, Any]) -> None:
        self._put(
            WriteBatch.example, identity, key, self._seal(to_bytes(example), identity, key), key in self._example_ids
        )

    def put_answer(
        self, run: RunInfo, place: int, key: bytes | None, example: Mapping[str, Any], answer: Answer
    ) -> int:
        body = pack_answer(answer.processed, answer.metadata, answer.latency, answer.returns, example)
        identity = identity_of(run.number, place)
        self._put(WriteBatch.answer, identity, key, self._seal(body, identity))
        return identity

    def put_result(
        self,
        run: RunInfo,
        place: int,
        keys: Keys,
        example: Mapping[str, Any],
        example_id: int | None,
        answer: Answer | None,
        row: EvalRow,
        key: bytes | None,
    ) -> int:
        identity, packed, said, new = run.number << PLACES | place, pack_row(row), None, None
        if answer is not None:
            body = pack_answer(answer.processed, answer.metadata, answer.latency, answer.returns, example)
            said = body if len(body) < LONG_CONTENT else self._seal(body, identity)
        if example_id is None:
            known = self._example_ids.get(keys.whole)
            example_id, content = known or identity, to_bytes(example)
            kept = content if len(content) < LONG_CONTENT else self._seal(content, example_id, keys.whole)
            new = keys.whole, kept, known is not None
        if said is not None:
            keys.response = identity
        self._row_counts[run.number] += 1
        self._put(
            WriteBatch.result, identity, keys.answer, said, key, example_id, keys.response, packed, keys.record, new
        )
        return example_id

    def put_scores(self, key: bytes, scores: Mapping[str, Any]) -> None:
        self._put(WriteBatch.other, "scores", key, seal(to_bytes(scores), key))

    def put_row(
        self,
        run: RunInfo,
        place: int,
        key: bytes | None,
        example: int,
        response: int | None,
        row: EvalRow,
        record: bytes | None = None,
    ) -> None:
        self._row_counts[run.number] += 1
        self._put(WriteBatch.row, identity_of(run.number, place), key, example, response, pack_row(row), record)

    def copy_row(self, run: RunInfo, place: int, key: bytes, example_key: bytes, example: Mapping[str, Any]) -> None:
        old = self._row_ids[key]
        shift = identity_of(run.number, place) - old
        if shift != self._shift or len(self._copied) == _MANY:
            self.flush_copies()
        self._shift = shift
        self._copied.append(Copy(self._found[old], example_key, example))
        self._row_counts[run.number] += 1

    def flush_copies(self) -> None:
        if self._copied:
            copies, self._copied = self._copied, []
            self._put(WriteBatch.copy, self._shift, copies)

    def put_request(self, run: RunInfo, place: int, record: Mapping[str, Any]) -> None:
        identity = identity_of(run.number, place)
        self._put(WriteBatch.request, identity, self._seal(to_bytes(record), identity))

    # -- runs

    def load(self, run: str | RunInfo = "last", *, rows: bool = True) -> EvalResult:
        """Load a run as a result; of an unfinished run, the recorded part.

        Args:
            run: One of `runs()`, or a run's id, the start of its id, `last`, or `last~1` for the one before that.
            rows: False leaves the rows of a finished run in the store, so that only its summary is read.
        """
        info = self.run(run) if isinstance(run, str) else run
        # It is above this module in the import order: it scores and sums up an unfinished run.
        result: EvalResult = import_object("context_bench.core.record:load_result")(self, info, rows=rows)
        result.config["run"] = info.id
        return result

    def start_run(self, config: Mapping[str, Any]) -> RunInfo:
        created = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        number = self._at_once(partial(insert_run, created=created, config=to_bytes(config)))
        self._marks[number] = RunningMark(self.directory, number)
        return RunInfo(number, run_id(created, number), created, "running", dict(config), {}, {})

    def end_run(self, run: RunInfo, status: str, result: EvalResult) -> None:
        self.flush_copies()
        statement, values = update_run(run, status, result, self._row_counts[run.number])
        self._put(WriteBatch.change, statement, *values)

    def remove_run(self, run: RunInfo) -> None:
        """Remove a run and the records that only it uses; refuse while another process works on it."""
        if run.number in self._marks:
            self._marks.pop(run.number).release()
        if is_running(self.directory, run.number):
            raise UsageError(f"run {run.id} is still running: stop it first (Ctrl-C), then remove it")
        self._at_once(partial(remove_run, run=run.number))

    def shrink(self) -> None:
        """Return the space of removed runs to the disk, unless another process is using the store.

        This briefly needs as much free space as the shrunk store; without it the file keeps its size.
        """
        connection = connect(self.directory)
        try:
            with self._explain_failures():
                shrink(connection)
        finally:
            connection.close()

    def _at_once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a separate transaction, and wait until it is committed."""
        connection = connect(self.directory)
        try:
            with self._explain_failures():
                connection.execute("BEGIN IMMEDIATE")
                with connection:
                    return work(connection)
        finally:
            connection.close()


def _refuse(*_: Any) -> None:
    raise AssertionError("this store was opened read-only")
