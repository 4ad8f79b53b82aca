"""The SQLite file: how it is opened, and what is said when it cannot be used.

Whatever a run makes has the number of that run and the place in it for an id, so that a later run adds
and never overwrites; what may be used again is found by its key, the newest first.
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
from context_bench.store.schemas import SCHEMA, check_version, is_up_to_date, migrate

__all__ = ["FAILURES", "FILE_NAME", "SCHEMA", "connect", "explain", "transaction"]

FILE_NAME = "store.db"

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""Errors of SQLite; the second is raised where the damaged name of a table is part of its message."""

_PAGE = 16_384
"""Bytes: examples are a few kilobytes each, and with larger pages than usual fewer have to be written."""

_PATIENCE = 30_000
"""Milliseconds to wait for another process that writes."""

T = TypeVar("T")


def connect(directory: Path, *, readonly: bool = False, create: bool = True) -> sqlite3.Connection:
    """Open the store in a directory, made when it is new; StoreError says why it cannot be.

    An old store is brought up to date; one that is only looked at stays as it is, and what is read is a copy of it.
    """
    path = directory / FILE_NAME
    connection = None
    try:
        if (readonly or not create) and not path.exists():
            raise StoreError(f"there is no store in {directory}: nothing was recorded there yet")
        if not readonly:
            directory.mkdir(parents=True, exist_ok=True)
        connection = _open(_address(path, readonly))
        if not _is_up_to_date(connection, path):
            if readonly:
                connection = _copy(connection)
            else:
                _make_shareable(connection)
            transaction(connection, partial(migrate, connection, path))
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection
    except (*FAILURES, OSError, StoreError) as error:
        if connection is not None:
            connection.close()
        raise (error if isinstance(error, StoreError) else explain(error, path)) from error


def _is_up_to_date(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the tables need no migration; read in one transaction, as another process may be migrating them."""
    connection.execute("BEGIN")
    try:
        check_version(connection, path)
        return is_up_to_date(connection)
    finally:
        connection.execute("COMMIT")


def _open(address: str) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
    connection.text_factory = _decode
    connection.execute(f"PRAGMA busy_timeout = {_PATIENCE}")
    connection.execute(f"PRAGMA page_size = {_PAGE}")  # of a file that is made now
    return connection


def _decode(text: bytes) -> str:
    """Decode a column as text, also one that is damaged: it must not end the reading of others."""
    return text.decode("utf-8", "replace")


def _copy(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Copy a database into a temporary one, which is gone when its connection is closed."""
    copy = _open("")
    try:
        connection.backup(copy)
    except BaseException:
        copy.close()
        raise
    connection.close()
    return copy


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
