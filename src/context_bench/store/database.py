"""The SQLite file: its tables, its version, and what is said when it cannot be used."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from context_bench.errors import StoreError

__all__ = ["FILE_NAME", "SCHEMA", "connect", "explain"]

FILE_NAME = "store.db"
SCHEMA = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS examples (key BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS responses (
    key BLOB PRIMARY KEY, example BLOB NOT NULL, system TEXT NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS scores (key BLOB PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, response BLOB, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, created TEXT NOT NULL, status TEXT NOT NULL, config BLOB NOT NULL, summary BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS run_rows (
    run TEXT NOT NULL, place INTEGER NOT NULL, row BLOB NOT NULL, PRIMARY KEY (run, place)) WITHOUT ROWID;
"""


def connect(directory: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """Open the store in a directory, made when it is new; StoreError says why it cannot be."""
    path = directory / FILE_NAME
    try:
        if readonly:
            if not path.is_file():
                raise StoreError(f"there is no store in {directory}: nothing was recorded there yet")
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        else:
            directory.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA busy_timeout = 30000")
        _check_version(connection, path)
        if not readonly:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(_TABLES)
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        return connection
    except (sqlite3.Error, OSError) as error:
        raise explain(error, path) from error


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA:
        raise StoreError(
            f"{path} was written by a newer context-bench (schema {version}; this one knows {SCHEMA}): "
            "upgrade, or use another --cache-dir"
        )


def explain(error: BaseException, path: Path) -> StoreError:
    """One sentence for whatever SQLite or the file system says."""
    text = str(error)
    if "disk is full" in text or getattr(error, "errno", None) == 28:
        return StoreError(f"the disk with {path} is full: free some space, then go on with --resume")
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return StoreError(f"{path} is damaged ({text}): move it away, or use another --cache-dir")
    if "readonly" in text or "unable to open" in text or isinstance(error, PermissionError):
        return StoreError(f"{path} cannot be written: use another --cache-dir, or --no-store")
    if "locked" in text:
        return StoreError(f"{path} is locked by another program for too long")
    return StoreError(f"{path} cannot be used: {text}")
