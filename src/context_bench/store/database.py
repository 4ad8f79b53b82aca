"""The SQLite file: its tables, how it is opened, and which sentence explains that it cannot be used.

Each record has the number of its run and the place in that run as its id, so a later run adds and never overwrites.
Keys find what can be reused, the newest first.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from context_bench.errors import StoreError

__all__ = ["FAILURES", "FILE_NAME", "SCHEMA", "connect", "explain", "transaction"]

FILE_NAME = "store.db"

SCHEMA = 4
"""Version of the tables below. A store of another version is refused."""

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
"""An answer stands in its row where both came together, else in `responses` under the number that the row names.
Keys stand apart, many in one block: a run that reuses reads them all at its start, and an index would be written at a
random place for each of them. `again` repeats a row's id: rows are copied, so their checksum cannot cover the id."""

_TABLE_NAMES = {"runs", "rows", "responses", "keys", "examples", "scores", "requests"}

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; the second is raised where the damaged name of a table is part of its message."""

_PAGE = 16_384
"""Bytes: examples are a few kilobytes each, and with larger pages than usual fewer have to be written."""

_PATIENCE = 30_000
"""Milliseconds to wait for another process that writes."""

T = TypeVar("T")


def connect(directory: Path, *, readonly: bool = False, create: bool = True) -> sqlite3.Connection:
    """Open the store in a directory and make it if it is new; StoreError says why it cannot be opened."""
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
            transaction(connection, partial(_make_tables, connection, path))
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection
    except (*FAILURES, OSError, StoreError) as error:
        if connection is not None:
            connection.close()
        raise (error if isinstance(error, StoreError) else explain(error, path)) from error


def _has_tables(connection: sqlite3.Connection, path: Path) -> bool:
    """Return False for a new file; raise StoreError for one that this version cannot read.

    One statement reads version and tables, as another process may be making them.
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
    connection.text_factory = _decode
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    connection.execute(f"PRAGMA page_size = {_PAGE}")  # of a file that is made now
    return connection


def _decode(text: bytes) -> str:
    """Decode a column as text, also one that is damaged: it must not end the reading of others."""
    return text.decode("utf-8", "replace")


def _address(path: Path, readonly: bool) -> str:
    """Return the address of the file for SQLite; read-only, it writes nothing beside it."""
    address = path.absolute().as_uri()
    if not readonly:
        return address
    untouched = not path.with_name(f"{FILE_NAME}-wal").exists() and not os.access(path.parent, os.W_OK)
    return f"{address}?mode=ro{'&immutable=1' if untouched else ''}"


def _make_shareable(connection: sqlite3.Connection) -> None:
    """Switch to WAL, so that many can read while one writes; SQLite itself does not wait for others who do this too."""
    give_up = time.monotonic() + _PATIENCE / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def transaction(connection: sqlite3.Connection, work: Callable[[], T]) -> T:
    """Run `work` as one transaction: all of it, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work()
        connection.execute("COMMIT")
        return result
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def explain(error: BaseException, path: Path) -> StoreError:
    """Turn an error of SQLite or of the file system into one sentence."""
    text, number = " ".join(str(error).split()), getattr(error, "errno", None)
    if "is full" in text or number == errno.ENOSPC:
        return StoreError(f"the disk with {path} is full: free some space, then go on with --resume")
    if isinstance(error, UnicodeDecodeError) or "not a database" in text or "malformed" in text or "corrupt" in text:
        return StoreError(f"{path} is damaged ({text}): move it away, or use another --cache-dir")
    if "locked" in text:
        return StoreError(f"{path} is locked by another program for too long")
    if isinstance(error, OSError):
        text = os.strerror(number) if number else text
    elif "readonly" not in text and "unable to open" not in text:
        return StoreError(f"{path} cannot be used: {text}")
    return StoreError(f"{path} cannot be written ({text}): use another --cache-dir, or --no-store")
