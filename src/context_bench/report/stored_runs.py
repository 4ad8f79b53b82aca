"""Runs of a store as a page takes them: when they began, and their rows with examples and answers."""

from __future__ import annotations

from context_bench.report.row_values import Source
from context_bench.store import RunInfo
from context_bench.store.run_records import RunRecord

__all__ = ["to_source", "write_time"]


def write_time(run: RunInfo) -> str:
    """Write when a run began."""
    return " ".join((run.created[:10], run.created[11:16], run.created[19:])).strip()


def to_source(record: RunRecord) -> Source:
    """Return a record of a run as the page takes it."""
    return Source(record.row, record.example, None if record.answer is None else record.answer.processed)
