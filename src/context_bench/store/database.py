"""The SQLite file: its tables and runs, how it is opened, and the errors when it cannot be used.

Each record has the number of its run and the place in that run as its id, so a later run adds and never overwrites.
Look-ups by key return the newest record.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sqlite3
import time
from pathlib import Path
from typing import IO, Any, TypeVar

from context_bench.errors import StoreError
from context_bench.results import EvalResult
from context_bench.store.backend import RunInfo
from context_bench.store.records import (
    PLACES,
    Damaged,
    about_keys,
    pack_keys,
    places_of,
    seal,
    sum_values,
    to_bytes,
    unpack_keys,
    unseal,
)

try:
    import fcntl
except ImportError:  # Windows: a running run is not protected from removal
    fcntl = None  # type: ignore[assignment]

FILE_NAME = "store.db"

SCHEMA = 4  # version of the tables below. A store of another version is refused.

_TABLES = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, created TEXT NOT NULL, status TEXT NOT NULL,
    config BLOB NOT NULL, summary BLOB NOT NULL, timing BLOB NOT NULL,
    row_count INTEGER, checksum INTEGER NOT NULL DEFAULT 0);
CREATE TABLE rows (
    id INTEGER PRIMARY KEY, example INTEGER NOT NULL, response INTEGER, body BLOB NOT NULL, answer BLOB,
    again INTEGER NOT NULL DEFAULT 0);
CREATE TABLE responses (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE keys (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE examples (id INTEGER PRIMARY KEY, key BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE scores (key BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE requests (id INTEGER PRIMARY KEY, body BLOB NOT NULL)
"""
"""An answer is stored in its row if both came together, else in `responses` under the number that the row names.
Keys are stored separately, many in a block: a run that reuses reads them all at its start, and an index would cost a
write at a random place for each. `again` repeats a row's id: rows are copied, so their checksum cannot cover the id."""

_TABLE_NAMES = {"runs", "rows", "responses", "keys", "examples", "scores", "requests"}

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; the second is raised if a message contains the damaged name of a table."""

_PAGE = 16_384  # bytes; examples are a few kilobytes each, so pages larger than the default mean fewer writes

_LOG_PAGES = 4_000  # pages in the log at which the writer itself moves them to the file, if `checkpoint` fell behind

_BUSY_TIMEOUT_MS = 30_000  # how long to wait for another process that writes

DAMAGED = "damaged"  # the status of a run of which only the number can be trusted

T = TypeVar("T")


def connect(directory: Path, *, readonly: bool = False, create: bool = True) -> sqlite3.Connection:
    """Open the store in a directory, or create it; StoreError says why it cannot be opened."""
    path = directory / FILE_NAME
    connection = None
    try:
        if (readonly or not create) and not path.exists():
            raise StoreError(f"there is no store in {directory}: nothing was recorded there yet")
        if not readonly:
            directory.mkdir(parents=True, exist_ok=True)
        connection = _open(_address(path, readonly))
        if not _has_tables(connection, path):
            if readonly:
                raise StoreError(f"there is no store in {directory}: nothing was recorded there yet")
            _make_shareable(connection)
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                _make_tables(connection, path)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA cache_spill = OFF")  # else a large batch is written twice more
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        return connection
    except (*FAILURES, OSError, StoreError) as error:
        if connection is not None:
            connection.close()
        raise (error if isinstance(error, StoreError) else explain(error, path)) from error


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return False for a new file; raise StoreError if this version cannot read it. A single statement reads version
    and tables, because another process may be creating them.
    """
    listed = "SELECT group_concat(name) FROM sqlite_master WHERE type = 'table'"
    version, names = connection.execute(f"SELECT user_version, ({listed}) FROM pragma_user_version").fetchone()
    if not version and not names:
        return False
    if not version:
        raise StoreError(f"{path} is not a store of context-bench: use another --cache-dir")
    if version != SCHEMA:
        written, remedy = ("a newer", "upgrade") if version > SCHEMA else ("an older", "move it away")
        raise StoreError(
            f"{path} was written by {written} context-bench (schema {version}; this one knows {SCHEMA}): "
            f"{remedy}, or use another --cache-dir"
        )
    if missing := _TABLE_NAMES.difference((names or "").split(",")):
        raise StoreError(
            f"{path} is damaged (it has no table {min(missing)!r}): move it away, or use another --cache-dir"
        )
    return True


def _make_tables(connection: sqlite3.Connection, path: Path) -> None:
    if _has_tables(connection, path):
        return  # another process was faster
    for statement in _TABLES.split(";"):  # `executescript` would end the transaction
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _open(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
    # A damaged column must not stop the reading of others.
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    connection.execute(f"PRAGMA page_size = {_PAGE}")  # only takes effect on a new file
    return connection


def _address(path: Path, readonly: bool) -> str:
    """Return the address of the file for SQLite; a read-only one creates no files next to it."""
    address = path.absolute().as_uri()
    if not readonly:
        return address
    untouched = not path.with_name(f"{FILE_NAME}-wal").exists() and not os.access(path.parent, os.W_OK)
    return f"{address}?mode=ro{'&immutable=1' if untouched else ''}"


def _make_shareable(connection: sqlite3.Connection) -> None:
    """Switch to WAL, so that many can read while one writes. SQLite's busy timeout does not cover this, so we retry."""
    give_up = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def open_temporary(cache_kilobytes: int) -> sqlite3.Connection:
    """Open a database in a temporary file that is deleted with the connection; threads take turns."""
    connection = sqlite3.connect("", check_same_thread=False, isolation_level=None)
    for setting in (f"cache_size = -{cache_kilobytes}", "journal_mode = OFF", "synchronous = OFF", "temp_store = FILE"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def checkpoint(directory: Path) -> None:
    """Move committed changes from the log to the file; others may write at the same time."""
    with contextlib.closing(connect(directory, create=False)) as connection:
        connection.execute("PRAGMA wal_checkpoint")


def explain(error: BaseException, path: Path) -> StoreError:
    """Turn an error of SQLite or of the file system into one sentence."""
    text, number = " ".join(str(error).split()), getattr(error, "errno", None)
    if "is full" in text or number == errno.ENOSPC:
        return StoreError(f"the disk with {path} is full: free some space, then continue with --resume")
    if isinstance(error, UnicodeDecodeError) or "not a database" in text or "malformed" in text or "corrupt" in text:
        return StoreError(f"{path} is damaged ({text}): move it away, or use another --cache-dir")
    if "locked" in text:
        return StoreError(f"{path} was locked by another program for too long")
    if isinstance(error, OSError):
        text = os.strerror(number) if number else text
    elif "readonly" not in text and "unable to open" not in text:
        return StoreError(f"{path} cannot be used: {text}")
    return StoreError(f"{path} cannot be written ({text}): use another --cache-dir, or --no-store")


# --- runs


def run_id(created: str, number: int) -> str:
    """Make the readable id of a run: its start time, and a number that is unique in the store."""
    moment = "".join(char for char in created[:19] if char.isdigit())
    return f"{moment[:8]}-{moment[8:]}-{number}"


def insert_run(connection: sqlite3.Connection, created: str, config: bytes) -> int:
    """Insert a run that has begun, and return its number."""
    values = (created, "running", config, b"{}", b"{}", None)
    number = connection.execute("INSERT INTO runs VALUES (NULL, '', ?, ?, ?, ?, ?, ?, 0)", values).lastrowid or 0
    name = run_id(created, number)
    checksum = sum_values(number, name, *values)
    connection.execute("UPDATE runs SET id = ?, checksum = ? WHERE number = ?", (name, checksum, number))
    return number


def update_run(run: RunInfo, status: str, result: EvalResult, row_count: int) -> tuple[str, list[Any]]:
    """Make the SQL statement, with its values, that records how a run ended."""
    accuracy = {name: value for name, value in result.describe_accuracy().items() if value}
    config = to_bytes({**result.config, "notes": result.notes, **accuracy})
    # Not strict JSON: a cost may be infinite.
    numbers = [json.dumps(each, default=float).encode() for each in (result.summary, result.timing)]
    values: list[Any] = [status, config, *numbers, row_count]
    checksum = sum_values(run.number, run.id, run.created, *values)
    columns = "status = ?, config = ?, summary = ?, timing = ?, row_count = ?, checksum = ?"
    return f"UPDATE runs SET {columns} WHERE number = ?", [*values, checksum, run.number]


def read_run(number: int, *values: Any) -> RunInfo:
    """Read a run from its columns; its status is DAMAGED if their checksum is wrong."""
    *columns, checksum = values
    try:
        if sum_values(number, *columns) != checksum:
            raise Damaged
        name, created, status, *records, row_count = columns
        config, summary, timing = map(json.loads, records)
        return RunInfo(number, name, created, status, config, summary, timing, row_count)
    except (Damaged, ValueError, TypeError):
        return RunInfo(number, run_id(str(columns[1]), number), str(columns[1]), DAMAGED, {}, {}, {})


def remove_run(connection: sqlite3.Connection, run: int) -> None:
    """Remove a run by its number, with all its records that no other run uses."""
    own, places = "id >= ? AND id < ?", places_of(run)
    # Records of a running or killed run may have no row yet.
    orphaned = f"id >> {PLACES} NOT IN (SELECT number FROM runs)"
    connection.execute("DELETE FROM runs WHERE number = ?", (run,))
    # Rows of later runs may have their answer in a row of this one.
    connection.execute(
        f"INSERT OR IGNORE INTO responses SELECT id, answer FROM rows WHERE {own} AND answer IS NOT NULL "
        f"AND id IN (SELECT response FROM rows WHERE NOT ({own}))",
        (*places, *places),
    )
    for table in ("rows", "requests"):
        connection.execute(f"DELETE FROM {table} WHERE {own}", places)
    connection.execute(
        f"DELETE FROM responses WHERE {orphaned} AND id NOT IN (SELECT response FROM rows WHERE response IS NOT NULL)"
    )
    connection.execute(f"DELETE FROM examples WHERE {orphaned} AND id NOT IN (SELECT example FROM rows)")
    _remove_keys(connection)


def shrink(connection: sqlite3.Connection) -> None:
    """Rewrite the file without empty pages; does nothing if others use the store or the disk is full."""
    if not connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone():
        connection.execute("DELETE FROM scores")  # they belong to no run
    try:
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        if not any(word in str(error) for word in ("locked", "full")):
            raise


def _remove_keys(connection: sqlite3.Connection) -> None:
    """Remove the keys of removed runs, except those of answers and examples that stay."""
    gone = "run NOT IN (SELECT number FROM runs)"
    found = connection.execute(f"SELECT run, kind, body FROM keys WHERE {gone} ORDER BY id").fetchall()
    connection.execute(f"DELETE FROM keys WHERE {gone}")
    staying = {"row": set[int]()}
    for kind, table in (("answer", "responses"), ("example", "examples")):
        staying[kind] = {identity for (identity,) in connection.execute(f"SELECT id FROM {table}")}
    for run, kind, body in found:
        try:
            known = unpack_keys(unseal(body, about_keys(run, kind)))
            kept = pack_keys([each for each in known if each[1] in staying[kind]])
        except (Damaged, KeyError):
            continue
        if kept:
            sealed = seal(kept, about_keys(run, kind))
            connection.execute("INSERT INTO keys VALUES (NULL, ?, ?, ?)", (run, kind, sealed))


# --- locks of runs in progress: each ends with its process, however that ends


class RunningMark:
    """Shows other processes that a run is in progress, until it is released."""

    def __init__(self, directory: Path, number: int) -> None:
        self._path = directory / f"run-{number}.lock"
        self._file: IO[bytes] | None = None
        if fcntl is not None:
            with contextlib.suppress(OSError):  # the file system has no locks or no room: go on without a mark
                self._file = self._path.open("wb")
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        """Release the lock at the end of the run."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._file.close()
            self._file = None


def is_running(directory: Path, number: int, *, clear: bool = True) -> bool:
    """Whether a process is working on a run. Clears the mark of a killed process, unless `clear` is false."""
    path = directory / f"run-{number}.lock"
    if fcntl is None or not path.exists():
        return False
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            if clear:
                path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
