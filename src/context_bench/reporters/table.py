"""The result as a Markdown table that lines up in a terminal.

Columns for what the run computed, a second table for the single datasets, and notes for every number
that is not what it seems.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence

from context_bench.datasets.catalog import card_for
from context_bench.errors import printable
from context_bench.results import EvalResult

__all__ = ["TableReporter", "markdown", "plain_table"]

Summary = dict[str, float]


def _score(value: float) -> str:
    return f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _tokens(value: float) -> str:
    return "none passed" if math.isinf(value) else f"{value:,.0f}"


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.1f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} µs"


_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("n", "num_examples", "{:.0f}".format),
    ("errors", "num_errors", "{:.0f}".format),
    ("unscored", "num_unscored", "{:.0f}".format),
    ("score", "mean_score", _score),
    ("official", "official_score", _score),
    ("pass rate", "pass_rate", _percent),
    ("compression", "compression_ratio", _percent),
    ("cost of pass", "cost_of_pass", _tokens),
    ("latency p50", "latency_median", _seconds),
    ("p95", "latency_p95", _seconds),
    ("Pareto", "pareto_rank", "{:.0f}".format),
)
_WHEN_NOT_ZERO = {"num_errors", "num_unscored"}
_FROM_SCORES = {"mean_score", "official_score", "pass_rate", "cost_of_pass"}
_NOT_MEASURED = "not measured"


class TableReporter:
    """One line for each system."""

    name = "table"

    def render(self, result: EvalResult) -> str:
        """The table of systems, the table of datasets where there are several, and the notes."""
        parts = [self._systems(result), self._datasets(result), self._notes(result)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _systems(self, result: EvalResult) -> str:
        summary = result.summary
        columns = [column for column in _COLUMNS if _is_shown(column[1], summary)]
        lines = [["system", *(title for title, _, _ in columns)]]
        for name, values in summary.items():
            lines.append([name, *(self._value(result, name, values, key, show) for _, key, show in columns)])
        return markdown(lines)

    @staticmethod
    def _value(result: EvalResult, name: str, values: Summary, key: str, show: Callable[[float], str]) -> str:
        if key not in values:
            return "–"
        if key == "compression_ratio" and _answers(result, name):
            return _NOT_MEASURED
        if key in _FROM_SCORES and values.get("num_examples", 1) == values.get("num_unscored", 0):
            return "–"
        all_failed = "num_errors" in values and values["num_errors"] == values.get("num_examples")
        if all_failed and key.startswith(("latency", "compression")):
            return "–"
        return show(values[key])

    @staticmethod
    def _datasets(result: EvalResult) -> str:
        keys = sorted({key for values in result.summary.values() for key in values if key.startswith("dataset:")})
        if len(keys) < 2:
            return ""
        lines = [["score by dataset", *(key.removeprefix("dataset:") for key in keys)]]
        for name, values in result.summary.items():
            lines.append([name, *(_score(values[key]) if key in values else "–" for key in keys)])
        return markdown(lines)

    def _notes(self, result: EvalResult) -> str:
        notes = [_score_note(result), _f1_note(result)]
        if any(_answers(result, name) for name in result.summary):
            notes.append(
                "compression is not measured for systems that return an answer: what they sent on is not seen."
            )
        return "\n".join(printable(note) for note in notes if note)


def _is_shown(key: str, summary: dict[str, Summary]) -> bool:
    values = [own[key] for own in summary.values() if key in own]
    return any(values) if key in _WHEN_NOT_ZERO else bool(values)


def _answers(result: EvalResult, name: str) -> bool:
    """Whether a system returns answers, so that its output tokens say nothing of what a model read."""
    returns: dict[str, str] = result.config.get("returns", {})
    return returns.get(name) == "response"


def _score_note(result: EvalResult) -> str:
    field = result.config.get("score_field", "score")
    if field != "score":
        return f"score = {field}."
    names = {}
    for tag in result.config.get("datasets", {}):
        card = card_for(tag)
        primary = result.config.get("primary", {}).get(tag, "by its fields")
        names[tag] = (card.primary + (" (stand-in)" if card.stand_in else "")) if card else primary
    if not names:
        return ""
    if len(set(names.values())) == 1:
        return f"score = {next(iter(names.values()))}."
    return "score = " + ", ".join(f"{primary} for {tag}" for tag, primary in names.items()) + "."


def _f1_note(result: EvalResult) -> str:
    """F1 holds a whole context against a short answer, so that the shortest context wins: say what to use instead."""
    primaries = set(result.config.get("primary", {}).values())
    contexts = "context" in result.config.get("returns", {}).values()
    if result.config.get("score_field") != "score" or "f1" not in primaries or not contexts:
        return ""
    return "f1 of a whole context says little: --score-field answer_in_context asks whether the answer is still there."


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up; the first column is text, the others are numbers."""
    cells = [[_escaped(cell) for cell in line] for line in lines]
    widths = [max(_width(line[column]) for line in cells) for column in range(len(cells[0]))]
    rule = ["-" * max(3, widths[0]), *("-" * (max(3, width) - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(line, widths) for line in [cells[0], rule, *cells[1:]])


def plain_table(lines: Sequence[Sequence[str]]) -> str:
    """Columns of text side by side, for listings."""
    cells = [[_escaped(cell) for cell in line] for line in lines]
    widths = [max(_width(line[column]) for line in cells) for column in range(len(cells[0]))]
    return "\n".join(
        "  ".join(cell + " " * (width - _width(cell)) for cell, width in zip(line, widths)).rstrip() for line in cells
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for place, (cell, width) in enumerate(zip(cells, widths)):
        space = " " * (max(3, width) - _width(cell))
        padded.append(cell + space if place == 0 else space + cell)
    return "| " + " | ".join(padded) + " |"


def _escaped(text: str) -> str:
    """Names come from users and servers: no cell may end a line, a column, or speak to the terminal."""
    return "".join(char if char.isprintable() else "�" for char in text).replace("|", "\\|")


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
