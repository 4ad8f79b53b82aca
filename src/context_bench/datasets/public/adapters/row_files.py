"""Rows of files that a dataset reads in a way of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.datasets.formats import FORMATS
from context_bench.errors import DataError

__all__ = ["read_either", "read_rows"]


def read_rows(paths: Iterable[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of several files, each read by its suffix."""
    for path in paths:
        if path.suffix not in FORMATS:
            raise DataError(f"{path}: unknown kind of file; use {', '.join(FORMATS)}")
        with path.open("rb") as source:
            for number, row in FORMATS[path.suffix](source, str(path)):
                if not isinstance(row, Mapping):
                    raise DataError(f"{path}, line {number}: a record must be an object (got {type(row).__name__})")
                yield row


def read_either(record: Mapping[str, Any], one: str, other: str) -> Any:
    """Read a column that goes by two names."""
    for name in (one, other):
        if name in record:
            return record[name]
    raise KeyError(f"{one} or {other}")
