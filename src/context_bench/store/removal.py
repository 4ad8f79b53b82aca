"""Removes a run from the store, but keeps the answers and examples that other runs use."""

from __future__ import annotations

import sqlite3

from context_bench.store.records import PLACES, Damaged, about_keys, pack_keys, places_of, seal, unpack_keys, unseal

__all__ = ["remove_run"]


def remove_run(connection: sqlite3.Connection, run: int) -> None:
    """Remove a run by its number, with what it made and no other run uses."""
    own, places = "id >= ? AND id < ?", places_of(run)
    # What a run that is under way, or was killed, has put down may have no row yet.
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


def _remove_keys(connection: sqlite3.Connection) -> None:
    """Remove the keys of removed runs, but those of the answers and examples that stay."""
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
