"""The SQLite file: its tables, its version, and what is said when it cannot be used.

Whatever a run makes has the number of that run and the place in it for an id, so that a later run adds
and never overwrites; what may be used again is found by its key, the newest first.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from context_bench.errors import StoreError
from context_bench.store.records import pack_keys, run_of

__all__ = ["FILE_NAME", "SCHEMA", "UNREADABLE", "connect", "explain", "transaction"]

FILE_NAME = "store.db"
SCHEMA = 3

UNREADABLE = (json.JSONDecodeError, UnicodeDecodeError, struct.error)
"""What is raised for records that are not as they were written."""

_PAGE = 16_384
"""Bytes: examples are a few kilobytes each, and with larger pages than usual fewer have to be written."""

_PATIENCE = 30_000
"""Milliseconds to wait for another process that writes."""

_TABLES = """
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, created TEXT NOT NULL, status TEXT NOT NULL,
    config BLOB NOT NULL, summary BLOB NOT NULL, timing BLOB NOT NULL);
CREATE TABLE rows (
    id INTEGER PRIMARY KEY, example INTEGER NOT NULL, response INTEGER, body BLOB NOT NULL, answer BLOB);
CREATE TABLE responses (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE keys (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE examples (id INTEGER PRIMARY KEY, key BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE scores (key BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE requests (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
"""
"""An answer stands in its row where both came together, else in `responses` under the number that the row names.
Keys stand apart, many in one piece: they are read at the start of a run that reuses, and an index would be written at
random places for each of them."""

_SECOND = """
ALTER TABLE rows RENAME TO old_rows;
ALTER TABLE responses RENAME TO old_responses;
CREATE TABLE rows (id INTEGER PRIMARY KEY, example BLOB NOT NULL, response INTEGER, body BLOB NOT NULL);
CREATE TABLE row_keys (id INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE responses (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE response_keys (id INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE requests (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
INSERT INTO rows SELECT id, example, response, body FROM old_rows ORDER BY id;
INSERT INTO row_keys SELECT id, key FROM old_rows WHERE key IS NOT NULL ORDER BY id;
INSERT INTO responses SELECT id, body FROM old_responses ORDER BY id;
INSERT INTO response_keys SELECT id, key FROM old_responses WHERE key IS NOT NULL ORDER BY id;
DROP TABLE old_rows;
DROP TABLE old_responses
"""


def _to_second(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _SECOND)


_THIRD = """
ALTER TABLE rows RENAME TO old_rows;
ALTER TABLE examples RENAME TO old_examples;
CREATE TABLE rows (
    id INTEGER PRIMARY KEY, example INTEGER NOT NULL, response INTEGER, body BLOB NOT NULL, answer BLOB);
CREATE TABLE examples (id INTEGER PRIMARY KEY, key BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE keys (id INTEGER PRIMARY KEY, run INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO examples SELECT rowid, key, body FROM old_examples ORDER BY rowid;
INSERT INTO rows SELECT id, coalesce((SELECT rowid FROM old_examples WHERE key = old_rows.example), 0),
    response, body, NULL FROM old_rows ORDER BY id;
DROP TABLE old_rows;
DROP TABLE old_examples
"""


def _to_third(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _THIRD)
    for kind, table in (("row", "row_keys"), ("answer", "response_keys"), ("example", "examples")):
        runs: dict[int, list[tuple[bytes, int]]] = {}
        for key, identity in connection.execute(f"SELECT key, id FROM {table} ORDER BY id"):
            runs.setdefault(run_of(identity), []).append((key, identity))
        for run, known in runs.items():
            connection.execute("INSERT INTO keys VALUES (NULL, ?, ?, ?)", (run, kind, pack_keys(known)))
    _execute_all(connection, "DROP TABLE row_keys; DROP TABLE response_keys")


_UPGRADES = {1: _to_second, 2: _to_third}
"""From each schema to the next."""

T = TypeVar("T")


def connect(directory: Path, *, readonly: bool = False, create: bool = True) -> sqlite3.Connection:
    """Open the store in a directory, made when it is new; StoreError says why it cannot be."""
    path = directory / FILE_NAME
    connection = None
    try:
        if (readonly or not create) and not path.exists():
            raise StoreError(f"there is no store in {directory}: nothing was recorded there yet")
        if not readonly:
            directory.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(_address(path, readonly), uri=True, check_same_thread=False, isolation_level=None)
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
        connection.execute(f"PRAGMA page_size = {_PAGE}")  # of a file that is made now
        if _version(connection, path) < SCHEMA and not readonly:
            _make_shareable(connection)
            transaction(connection, lambda: _make_tables(connection))
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection
    except (sqlite3.Error, OSError, StoreError) as error:
        if connection is not None:
            connection.close()
        raise (error if isinstance(error, StoreError) else explain(error, path)) from error


def _address(path: Path, readonly: bool) -> str:
    """The file as SQLite is told it: to look at a store, nothing has to be written beside it."""
    address = path.absolute().as_uri()
    if not readonly:
        return address
    untouched = not path.with_name(f"{FILE_NAME}-wal").exists() and not os.access(path.parent, os.W_OK)
    return f"{address}?mode=ro{'&immutable=1' if untouched else ''}"


def _version(connection: sqlite3.Connection, path: Path) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA:
        raise StoreError(
            f"{path} was written by a newer context-bench (schema {version}; this one knows {SCHEMA}): "
            "upgrade, or use another --cache-dir"
        )
    return int(version)


def _make_shareable(connection: sqlite3.Connection) -> None:
    """Readers and a writer at once. SQLite itself does not wait here for others who do the same."""
    give_up = time.monotonic() + _PATIENCE / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _make_tables(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()  # somebody else may have been faster
    if not version:
        _execute_all(connection, _TABLES)
    else:
        for old in range(version, SCHEMA):
            _UPGRADES[old](connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _execute_all(connection: sqlite3.Connection, script: str) -> None:
    """Statement by statement: `executescript` would end the transaction."""
    for statement in script.split(";"):
        connection.execute(statement)


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
    """One sentence for whatever SQLite or the file system says."""
    text, number = str(error), getattr(error, "errno", None)
    if "is full" in text or number == errno.ENOSPC:
        return StoreError(f"the disk with {path} is full: free some space, then go on with --resume")
    if isinstance(error, UNREADABLE) or "not a database" in text or "malformed" in text or "corrupt" in text:
        return StoreError(f"{path} is damaged ({text}): move it away, or use another --cache-dir")
    if "locked" in text:
        return StoreError(f"{path} is locked by another program for too long")
    if isinstance(error, OSError):
        text = os.strerror(number) if number else text
    elif "readonly" not in text and "unable to open" not in text:
        return StoreError(f"{path} cannot be used: {text}")
    return StoreError(f"{path} cannot be written ({text}): use another --cache-dir, or --no-store")
