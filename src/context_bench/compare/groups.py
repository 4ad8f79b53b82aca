"""Groups the rows of a result by a field, such as `meta.lang`: a result of its own for each value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from context_bench.errors import MissingExtra, UsageError
from context_bench.numbers import find_score_key
from context_bench.registry import import_object
from context_bench.results import ROW_FIELDS, EvalResult, EvalRow
from context_bench.text import dump_json

if TYPE_CHECKING:
    import pandas

MAX_LINES = 40  # values of a field that a table shows


class Groups(dict[Any, EvalResult]):
    """The parts of a result by the value of a field, None for rows without it. Printed, it is a table of scores."""

    def __init__(self, field: str, parts: Mapping[Any, EvalResult]) -> None:
        super().__init__(parts)
        self.field = field

    def list_lines(self) -> list[list[str]]:
        """List each value with its examples and the score of each system, with its interval; titles first."""
        systems = list(dict.fromkeys(name for part in self.values() for name in part.summary))
        lines = [[f"score by {self.field}", "n", *systems]]
        for value, part in list(self.items())[:MAX_LINES]:
            count = len({(row.dataset, row.example_id) for row in part.rows})
            lines.append([_name_value(value), f"{count:,}", *(_write_score(part, name) for name in systems)])
        if len(self) > MAX_LINES:
            lines.append([f"and {len(self) - MAX_LINES:,} more", "", *("" for _ in systems)])
        return lines

    def to_dataframe(self) -> pandas.DataFrame:
        """Make a frame: a line for each value and system, with every number and its interval (extra `dataframe`)."""
        try:
            import pandas
        except ImportError as error:
            raise MissingExtra("to_dataframe()", "dataframe") from error
        list_columns = import_object("context_bench.output.files:list_summary_columns")
        frames = []
        for value, part in self.items():
            frame = pandas.DataFrame(list_columns(part))
            frame.insert(0, self.field, [value] * len(frame))
            frames.append(frame)
        return pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()

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
    """Group rows as `EvalResult.group_by` says; `make_part` sums up those of a value."""
    return Groups(field, {value: make_part(own) for value, own in split_rows(rows, field).items()})


def split_rows(rows: Iterable[EvalRow], field: str) -> dict[Any, list[EvalRow]]:
    """Split rows by the value of a field: a row's own, or one inside it, such as `meta.lang` or `metadata.model`.

    Numbers come in their order, then texts, then rows without the field.

    Raises:
        UsageError: No row has the field.
    """
    listed, found = list(rows), dict[Any, list[EvalRow]]()
    for row in listed:
        found.setdefault(read_field(row, field), []).append(row)
    if listed and found.keys() <= {None} and field not in ROW_FIELDS:
        inner = sorted({f"meta.{key}" for row in listed for key in row.meta})
        raise UsageError(f"no row has the field {field!r}: there are {', '.join([*inner, *ROW_FIELDS])}")
    return {value: found[value] for value in sorted(found, key=_order)}


def read_field(row: EvalRow, field: str) -> Any:
    """Read a field of a row by its path; a value that cannot be a key is given as JSON, a missing one as None."""
    name, *path = field.split(".")
    value: Any = getattr(row, name) if name in (*ROW_FIELDS, "meta") else None
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if value is None or isinstance(value, str | int | float | bool) else dump_json(value)


def _order(value: Any) -> tuple[bool, bool, float, str]:
    number = isinstance(value, int | float)
    return value is None, not number, value if number else 0.0, "" if number else str(value)
