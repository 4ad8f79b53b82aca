"""Reads a store that other processes write: in short pieces, so that nobody waits for it, and without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from context_bench.store.reader import Reader
from context_bench.store.run_records import RunInfo, RunRecord, read_run

__all__ = ["LiveReader"]

_PATIENCE = 2_000
"""Milliseconds to wait for a program that keeps readers out."""


class LiveReader(Reader):
    """A store that is looked at while it is written; for one thread at a time.

    Args:
        directory: Where it lives.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, readonly=True, create=False)
        self._reader.execute(f"PRAGMA busy_timeout = {_PATIENCE}")

    def close(self) -> None:
        """Close it."""
        self._reader.close()

    def read_checksums(self) -> dict[int, int]:
        """Read the number of each run with a checksum, which changes whenever what is known of the run does."""
        with self._explain_failures():
            return dict(self._reader.execute("SELECT number, checksum FROM runs"))

    def read_run(self, number: int) -> RunInfo | None:
        """Read one run by its number."""
        found = self._one("SELECT * FROM runs WHERE number = ?", number)
        return None if found is None else read_run(*found)

    def list_rows(self, first: int, last: int, most: int) -> list[int]:
        """List the ids of up to `most` rows from one id up to another."""
        query = "SELECT id FROM rows WHERE id >= ? AND id < ? ORDER BY id LIMIT ?"
        with self._explain_failures():
            return [identity for (identity,) in self._reader.execute(query, (first, last, most))]

    def read_records(self, ids: Sequence[int]) -> list[tuple[int, RunRecord]]:
        """Read rows by their ids, which are in order; those that are damaged are left out."""
        found: list[tuple[int, RunRecord]] = []
        first = 0
        for place, identity in enumerate(ids):
            if place + 1 == len(ids) or ids[place + 1] != identity + 1:
                records = self._read_records(ids[first], identity + 1)
                found += [(number, record) for number, record in records if record is not None]
                first = place + 1
        return found
