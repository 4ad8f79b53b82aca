"""One line for each row, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

from context_bench.results import ROW_FIELDS, EvalResult, dump_json, metadata_numbers

__all__ = ["CsvReporter"]

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
"""A text that is a number is no formula that could do anything."""


class CsvReporter:
    """The fields of a row in their order, then each score as `score:<name>`, then the numbers of `metadata`.

    Nested values are JSON. A text that a spreadsheet would take for a formula gets an apostrophe in front.
    """

    name = "csv"

    def render(self, result: EvalResult) -> str:
        """Render a header and a line for each row."""
        keys = sorted({key for row in result.rows for key in row.scores})
        numbers = sorted({key for row in result.rows for key in metadata_numbers(row)})
        plain = [name for name in ROW_FIELDS if name != "scores"]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerow([*plain, *(f"score:{key}" for key in keys), *(f"metadata:{key}" for key in numbers)])
        for row in result.rows:
            values = [_cell(getattr(row, name)) for name in plain]
            # A reader takes a bare carriage return for the end of a record, and the writer does not quote it.
            bare = any(isinstance(value, str) and "\r" in value for value in values)
            own = metadata_numbers(row)
            more = [*(row.scores.get(key, "") for key in keys), *(own.get(key, "") for key in numbers)]
            (quoting if bare else writer).writerow([*values, *more])
        return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return dump_json(value)
    if isinstance(value, str):  # a lone surrogate cannot be written as UTF-8, and readers stop at a NUL
        text = value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
        return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
    return "" if value is None else value
