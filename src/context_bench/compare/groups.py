"""Groups the rows of a result by a field, such as `meta.lang`, into one result for each value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError, suggest
from context_bench.numbers import find_score_key
from context_bench.registry import import_object
from context_bench.results import MAX_META_CHARS, ROW_FIELDS, EvalResult, EvalRow
from context_bench.text import dump_json

if TYPE_CHECKING:
    import pandas

MAX_LINES = 40  # values of the field to show in a table


class Groups(dict[Any, EvalResult]):
    """Parts of a result by the value of a field (None for rows without it); printed as a table of scores."""

    def __init__(self, field: str, parts: Mapping[Any, EvalResult]) -> None:
        super().__init__(parts)
        self.field = field

    def list_lines(self) -> list[list[str]]:
        """List titles, then for each value its number of examples and each system's score with its interval."""
        systems = list(dict.fromkeys(name for part in self.values() for name in part.summary))
        lines = [[f"score by {self.field}", "n", *systems]]
        for value, part in list(self.items())[:MAX_LINES]:
            count = len({(row.dataset, row.example_id) for row in part.rows})
            lines.append([_name_value(value), f"{count:,}", *(_write_score(part, name) for name in systems)])
        if len(self) > MAX_LINES:
            lines.append([f"and {len(self) - MAX_LINES:,} more", "", *("" for _ in systems)])
        return lines

    def to_dataframe(self) -> pandas.DataFrame:
        """Make a frame with every number and interval, one line for each value and system (extra `dataframe`)."""
        make_frame = import_object("context_bench.output.exports:make_frame")
        list_columns = import_object("context_bench.output.files:list_summary_columns")
        lines = [
            {self.field: value, **dict(zip(columns, line))}
            for value, columns in ((value, list_columns(part)) for value, part in self.items())
            for line in zip(*columns.values())
        ]
        names = dict.fromkeys(name for line in lines for name in line)
        return make_frame({name: [line.get(name) for line in lines] for name in names})

    def __repr__(self) -> str:
        text: str = import_object("context_bench.output.layout:markdown")(self.list_lines())
        return text

    _repr_markdown_ = __repr__


def _name_value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "(none)" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _write_score(part: EvalResult, name: str) -> str:
    key = find_score_key(part.summary.values())
    interval = part.intervals.get(name, {}).get(key)
    if interval is not None:
        return interval.render()
    value = part.summary.get(name, {}).get(key, math.nan)
    return "–" if math.isnan(value) else f"{value:.3f}"


def make_groups(rows: Iterable[EvalRow], field: str, make_part: Callable[[list[EvalRow]], EvalResult]) -> Groups:
    """Group rows for `EvalResult.group_by`; `make_part` makes the result of each group."""
    return Groups(field, {value: make_part(own) for value, own in split_rows(rows, field).items()})


def split_rows(rows: Iterable[EvalRow], field: str) -> dict[Any, list[EvalRow]]:
    """Split rows by the value of a field, which may be nested, such as `meta.lang` or `metadata.model`.

    Numbers come first, in order, then texts, then rows without the field.

    Raises:
        UsageError: No row has the field.
    """
    listed, found = list(rows), dict[Any, list[EvalRow]]()
    for row in listed:
        found.setdefault(read_field(row, field), []).append(row)
    if listed and found.keys() <= {None} and field not in ROW_FIELDS:
        raise UsageError(_explain_unknown(listed, field))
    return {value: found[value] for value in sorted(found, key=_order)}


def _explain_unknown(rows: Sequence[EvalRow], field: str) -> str:
    """Say which fields there are, and which of them may be meant."""
    inner = sorted({f"meta.{key}" for row in rows for key in row.meta})
    more = sorted({f"metadata.{key}" for row in rows for key in row.metadata})
    within = [path for path in (*inner, *more) if path.partition(".")[2] == field]
    meant = f"did you mean {within[0]}?" if within else suggest(field, [*inner, *more, *ROW_FIELDS], 0.75)
    if not inner and field.startswith("meta."):
        meant = (
            f"from meta, JSON keeps only numbers and texts of up to {MAX_META_CHARS} characters; "
            "the store keeps everything."
        )
    start = f"no row has the field {field!r}"
    return f"{start}: {f'{meant} There' if meant else 'there'} are {', '.join([*inner, *ROW_FIELDS])}"


def read_field(row: EvalRow, field: str) -> Any:
    """Read a field of a row by its path: lists and mappings as JSON, a missing field as None."""
    name, *path = field.split(".")
    value: Any = getattr(row, name) if name in (*ROW_FIELDS, "meta") else None
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if value is None or isinstance(value, str | int | float | bool) else dump_json(value)


def _order(value: Any) -> tuple[bool, bool, float, str]:
    number = isinstance(value, int | float)
    return value is None, not number, value if number else 0.0, "" if number else str(value)
