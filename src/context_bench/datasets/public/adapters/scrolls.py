"""SCROLLS, the layout that several datasets share: `id`, `pid`, `input` and `output`.

Rows with the same id are further references for one example. Where there is a query, it comes before the
document, with a blank line between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters.row_files import read_rows

__all__ = ["list_outputs", "merge_rows", "split_input"]


def merge_rows(paths: list[Path]) -> Iterator[Mapping[str, Any]]:
    """Yield one record for each id, its `output` a list; records without an id (the authors' own layout) as they are.

    Of several files, which are copies of one another, the first is read.
    """
    merged_rows: dict[Any, dict[str, Any]] = {}
    for row in read_rows(paths[:1]):
        if "id" not in row or "output" not in row:
            yield row
        elif row["id"] in merged_rows:
            merged_rows[row["id"]]["output"].append(row["output"])
        else:
            merged_rows[row["id"]] = {**row, "output": [row["output"]]}
    yield from merged_rows.values()


def split_input(record: Mapping[str, Any]) -> tuple[str, str]:
    """Split `input` into its two parts."""
    query, blank, document = record["input"].partition("\n\n")
    if not blank:
        raise ValueError("no blank line between query and document in 'input'")
    return query.strip(), document


def list_outputs(record: Mapping[str, Any]) -> list[str]:
    """List all references; the test split, whose answers are kept back, has none."""
    given = record["output"]
    return [text for text in (given if isinstance(given, list) else [given]) if text]
