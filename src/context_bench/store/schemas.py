"""The tables of a store, and how those of earlier versions are brought up to date.

What tables there are tells how old a store is; `user_version` must agree. Each step works within the transaction that
is open, so that a store is either as it was or up to date, whenever the process dies.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from context_bench.errors import StoreError
from context_bench.store.records import (
    about_keys,
    about_one,
    about_row,
    identity_of,
    pack_keys,
    run_of,
    seal,
    sum_values,
)

__all__ = ["SCHEMA", "check_version", "is_up_to_date", "migrate"]

SCHEMA = 4

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
Keys stand apart, many in one piece: they are read at the start of a run that reuses, and an index would be written at
random places for each of them. `again` is a row's id once more: rows are copied, so their checksum cannot hold it."""


def _find_layout(connection: sqlite3.Connection) -> str:
    """Find the version that made the tables, "" for none; two of them changed within one schema."""
    query = "SELECT m.name, c.name FROM sqlite_master AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
    columns: dict[str, set[str]] = {}
    for table, column in connection.execute(query):
        columns.setdefault(table, set()).add(column)
    rows = columns.get("rows", set())
    if not columns:
        return ""
    if "run_rows" in columns:
        return "1a"
    if "key" in rows:
        return "1b"
    if "row_keys" in columns:
        return "2"
    if "keys" not in columns:
        return "?"
    return "4" if "again" in rows else "3b" if "id" in columns.get("examples", ()) else "3a"


def check_version(connection: sqlite3.Connection, path: Any) -> None:
    """Raise StoreError for a store that this version cannot read."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA:
        raise StoreError(
            f"{path} was written by a newer context-bench (schema {version}; this one knows {SCHEMA}): "
            "upgrade, or use another --cache-dir"
        )
    layout = _find_layout(connection)
    if layout == "?" or (layout and not version):
        raise StoreError(f"{path} is not a store of context-bench: use another --cache-dir")
    if layout[:1] != (str(version) if version else ""):
        raise StoreError(
            f"{path} is damaged (its schema is said to be {version}, its tables are those of {layout or 'none'}): "
            "move it away, or use another --cache-dir"
        )


def is_up_to_date(connection: sqlite3.Connection) -> bool:
    """Whether a store has the tables of this version."""
    return _find_layout(connection) == str(SCHEMA)


def migrate(connection: sqlite3.Connection, path: Any) -> None:
    """Make the tables, or turn those of an earlier version into them."""
    check_version(connection, path)  # somebody else may have been faster
    for name, count, function in _SEALS:
        connection.create_function(name, count, function, deterministic=True)
    layout = _find_layout(connection)
    if not layout:
        _execute_all(connection, _TABLES)
    while (layout := _find_layout(connection)) != str(SCHEMA):
        _UPGRADES[layout](connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _encode(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value


_SEALS: tuple[tuple[str, int, Callable[..., bytes]], ...] = (
    ("seal_one", 2, lambda body, identity: seal(_encode(body), about_one(identity))),
    ("seal_example", 3, lambda body, identity, key: seal(_encode(body), about_one(identity, key))),
    ("seal_row", 3, lambda body, example, response: seal(_encode(body), about_row(example, response))),
    ("seal_keys", 3, lambda body, run, kind: seal(_encode(body), about_keys(run, kind), compress=False)),
    ("seal_score", 2, lambda body, key: seal(_encode(body), key)),
)
"""SQL functions that make records."""


def _execute_all(connection: sqlite3.Connection, script: str) -> None:
    """Execute statements one by one, as `executescript` would end the transaction."""
    for statement in script.split(";"):
        connection.execute(statement)


# --- from the first tables, in which a row was one record for all runs


_FROM_1A = """
ALTER TABLE rows RENAME TO old_rows;
ALTER TABLE responses RENAME TO old_responses;
ALTER TABLE runs RENAME TO old_runs;
CREATE TABLE runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, created TEXT NOT NULL, status TEXT NOT NULL,
    config BLOB NOT NULL, summary BLOB NOT NULL, timing BLOB NOT NULL);
CREATE TABLE rows (id INTEGER PRIMARY KEY, key BLOB, example BLOB NOT NULL, response INTEGER, body BLOB NOT NULL);
CREATE TABLE responses (id INTEGER PRIMARY KEY, key BLOB, body BLOB NOT NULL);
INSERT INTO runs SELECT rowid, id, created, status, config, summary, '{}' FROM old_runs ORDER BY rowid
"""


def _from_1a(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _FROM_1A)
    for number, summary in connection.execute("SELECT number, summary FROM runs").fetchall():
        connection.execute("UPDATE runs SET summary = ? WHERE number = ?", (_rewrite_summary(summary), number))
    ids: dict[bytes, int] = {}
    query = (
        "SELECT runs.number, run_rows.place, old_rows.key, old_rows.response, old_rows.body, old_responses.example "
        "FROM run_rows JOIN runs ON runs.id = run_rows.run JOIN old_rows ON old_rows.key = run_rows.row "
        "LEFT JOIN old_responses ON old_responses.key = old_rows.response ORDER BY runs.number, run_rows.place"
    )
    for number, place, key, response, body, example in connection.execute(query):
        identity = identity_of(number, place)
        answer = None if response is None else ids.setdefault(response, identity)
        connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?)", (identity, key, example or b"", answer, body))
    query = (
        "SELECT old_responses.rowid, old_responses.key, old_responses.body, examples.body FROM old_responses "
        "LEFT JOIN examples ON examples.key = old_responses.example"
    )
    for number, key, body, example in connection.execute(query):
        identity = ids.get(key, number)  # one whose row was never written belongs to no run
        connection.execute("INSERT INTO responses VALUES (?, ?, ?)", (identity, key, _rewrite_answer(body, example)))
    _execute_all(connection, "DROP TABLE run_rows; DROP TABLE old_rows; DROP TABLE old_responses; DROP TABLE old_runs")


def _rewrite_summary(summary: bytes) -> bytes:
    """Rewrite a summary of an old store, where infinity and NaN were both written as null."""
    try:
        systems = orjson.loads(summary)
        for numbers in systems.values():
            missing = {name: math.inf if "cost" in name else math.nan for name in numbers if numbers[name] is None}
            numbers.update(missing)
        return json.dumps(systems).encode()
    except (ValueError, AttributeError):  # damaged already
        return summary


def _rewrite_answer(body: bytes, example: bytes | None) -> bytes:
    """Rewrite an answer of an old store, where a response equal to the context was listed as unchanged."""
    try:
        record = orjson.loads(body)
        packed = record["processed"]
        if "response" in packed["same"] and "response" not in orjson.loads(example or b"{}"):
            packed["same"].remove("response")
            packed["response"] = "context"
            return orjson.dumps(record)
    except (ValueError, KeyError, TypeError):  # damaged already
        pass
    return body


# --- from the others


_FROM_1B = """
ALTER TABLE rows RENAME TO old_rows;
ALTER TABLE responses RENAME TO old_responses;
CREATE TABLE rows (id INTEGER PRIMARY KEY, example BLOB NOT NULL, response INTEGER, body BLOB NOT NULL);
CREATE TABLE row_keys (id INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE responses (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE response_keys (id INTEGER PRIMARY KEY, key BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS requests (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
INSERT INTO rows SELECT id, example, response, body FROM old_rows ORDER BY id;
INSERT INTO row_keys SELECT id, key FROM old_rows WHERE key IS NOT NULL ORDER BY id;
INSERT INTO responses SELECT id, body FROM old_responses ORDER BY id;
INSERT INTO response_keys SELECT id, key FROM old_responses WHERE key IS NOT NULL ORDER BY id;
DROP TABLE old_rows;
DROP TABLE old_responses
"""

_EXAMPLES_BY_NUMBER = """
ALTER TABLE rows RENAME TO old_rows;
ALTER TABLE examples RENAME TO old_examples;
CREATE TABLE rows (
    id INTEGER PRIMARY KEY, example INTEGER NOT NULL, response INTEGER, body BLOB NOT NULL, answer BLOB);
CREATE TABLE examples (id INTEGER PRIMARY KEY, key BLOB NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    id INTEGER PRIMARY KEY, run INTEGER NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL);
INSERT INTO examples SELECT rowid, key, body FROM old_examples ORDER BY rowid;
INSERT INTO rows SELECT id, coalesce((SELECT rowid FROM old_examples WHERE key = old_rows.example), 0),
    response, body, {answer} FROM old_rows ORDER BY id;
DROP TABLE old_rows;
DROP TABLE old_examples
"""


def _from_1b(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _FROM_1B)


def _from_2(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _EXAMPLES_BY_NUMBER.format(answer="NULL"))
    for kind, table in (("row", "row_keys"), ("answer", "response_keys"), ("example", "examples")):
        _gather_keys(connection, kind, connection.execute(f"SELECT key, id FROM {table} ORDER BY id"))
    _execute_all(connection, "DROP TABLE row_keys; DROP TABLE response_keys")


def _from_3a(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _EXAMPLES_BY_NUMBER.format(answer="answer"))
    _gather_keys(connection, "example", connection.execute("SELECT key, id FROM examples ORDER BY id"))


def _gather_keys(connection: sqlite3.Connection, kind: str, found: Iterator[tuple[bytes, int]]) -> None:
    runs: dict[int, list[tuple[bytes, int]]] = {}
    for key, identity in found:
        runs.setdefault(run_of(identity), []).append((key, identity))
    for run, known in runs.items():
        connection.execute("INSERT INTO keys VALUES (NULL, ?, ?, ?)", (run, kind, pack_keys(known)))


_FROM_3B = """
ALTER TABLE rows ADD COLUMN again INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN row_count INTEGER;
ALTER TABLE runs ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE rows SET again = id, body = seal_row(body, example, response),
    answer = CASE WHEN answer IS NULL THEN NULL ELSE seal_one(answer, id) END;
UPDATE responses SET body = seal_one(body, id);
UPDATE examples SET body = seal_example(body, id, key);
UPDATE scores SET body = seal_score(body, key);
UPDATE requests SET body = seal_one(body, id);
UPDATE keys SET body = seal_keys(body, run, kind)
"""


def _from_3b(connection: sqlite3.Connection) -> None:
    _execute_all(connection, _FROM_3B)
    for number, *values in connection.execute("SELECT * FROM runs").fetchall():
        texts, records = values[:3], [_encode(each) for each in values[3:6]]
        connection.execute(
            "UPDATE runs SET config = ?, summary = ?, timing = ?, checksum = ? WHERE number = ?",
            (*records, sum_values(number, *texts, *records, None), number),
        )


_UPGRADES: dict[str, Callable[[sqlite3.Connection], None]] = {
    "1a": _from_1a,
    "1b": _from_1b,
    "2": _from_2,
    "3a": _from_3a,
    "3b": _from_3b,
}
"""From each kind of tables to a later one."""
