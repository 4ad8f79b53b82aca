"""A question to the list of examples: which rows, and in which order; and the SQL that asks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["PLACES", "SORTED", "RowQuery"]

PLACES = 32
"""Bits for the place of a row in its run, in its id."""

SORTED = ("id", "run", "system", "dataset", "outcome", "score", "evidence", "input", "output", "latency", "question")
"""Columns that a list can be sorted by, as the page calls them."""

_LIKE_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\%_"})

Names = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class RowQuery:
    """Conditions that all must hold, and an order.

    Attributes:
        runs: The numbers of the runs that rows are from; all where there is none.
        equal: The value of a column; None asks for rows in which it was not measured.
        low: The lowest score.
        high: The highest score.
        words: Each must stand in the id, system, dataset, question, answer or error kind.
        sort: One of `SORTED`; None keeps the order of the run.
        down: From the highest to the lowest.
    """

    runs: tuple[int, ...] = ()
    equal: tuple[tuple[str, int | None], ...] = ()
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()
    sort: str | None = None
    down: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it asks for all rows of its runs."""
        return not (self.equal or self.words) and self.low is None and self.high is None

    def write_condition(self, names: Names) -> tuple[str, list[Any]]:
        """Write the condition as SQL, with its values."""
        parts, values = ["1"], list[Any]()
        if self.runs:
            # Rows are stored by run: the plus keeps SQLite from another index, which it would have to sort after.
            parts.append(f"id >= ? AND id < ? AND +run IN ({','.join('?' * len(self.runs))})")
            values += [min(self.runs) << PLACES, (max(self.runs) + 1) << PLACES, *self.runs]
        for column, value in self.equal:
            parts.append(f"{column} IS ?")
            values.append(value)
        for sign, limit in ((">=", self.low), ("<=", self.high)):
            if limit is not None:
                parts.append(f"score {sign} ?")
                values.append(limit)
        for word in self.words:
            condition, found = _write_search(word.lower(), names)
            parts.append(condition)
            values += found
        return " AND ".join(parts), values

    def write_order(self, names: Names) -> str:
        """Write the order as SQL: what was not measured comes last, and equals stay in the order of the run."""
        if self.sort not in SORTED:
            return "id"
        key: str = self.sort
        if key in names:
            ranks = {names[key][name]: rank for rank, name in enumerate(sorted(names[key], key=str.lower))}
            key = (
                f"CASE {key} {' '.join(f'WHEN {number} THEN {rank}' for number, rank in ranks.items())} END"
                if ranks
                else "1"
            )
        elif key == "id":
            key = "natural"
        elif key == "question":
            key = "fold(question)"
        return f"{key} IS NULL, {key}{' DESC' if self.down else ''}, id"


def _write_search(word: str, names: Names) -> tuple[str, list[Any]]:
    """Write the condition that a word stands in a row; the letters of ASCII are compared by SQLite itself, fast."""
    if word.isascii():
        text, value = "{} LIKE ? ESCAPE '\\'", f"%{word.translate(_LIKE_SIGNS)}%"
    else:
        text, value = "instr(fold({}), ?)", word
    parts = [text.format(column) for column in ("name", "question", "response")]
    values: list[Any] = [value] * len(parts)
    for kind, known in names.items():
        numbers = [str(number) for name, number in known.items() if word in name.lower()]
        if numbers:
            parts.append(f"{kind} IN ({','.join(numbers)})")
    return f"({' OR '.join(parts)})", values
