"""Markdown tables of a result, aligned for a terminal.

The default is one table of systems, the scores by dataset, at most three notes and the conclusion. `--wide` adds all
columns and intervals, tables of verdicts, datasets, tokens, evidence and curves, and all notes. A number with a note is
marked with an asterisk. With a width, no line is longer: less important columns are left out, and a line names them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from context_bench.compare.plans import describe_lock
from context_bench.errors import UsageError, printable
from context_bench.numbers import (
    CACHE,
    EVIDENCE,
    MACRO_SCORE,
    MEAN_SCORE,
    NUMBERS,
    TOKENS,
    get_number,
    list_numbers,
    percent,
    score,
    tokens,
)
from context_bench.output.columns import (
    BEST,
    HEADLINES,
    Column,
    choose_columns,
    find_best,
    is_replaced,
    list_tables,
    own_columns,
    write_cell,
)
from context_bench.output.conclusion import conclude, describe_alone
from context_bench.output.layout import escape_note, fit_columns, fit_grid, markdown_width, wrap
from context_bench.output.notes import list_notes, sum_up_notes
from context_bench.output.verdict_tables import verdict_table, write_dataset_verdict, write_verdict
from context_bench.results import EvalResult
from context_bench.stats import Interval
from context_bench.text import list_names

if TYPE_CHECKING:
    from context_bench.compare.curves import Curve


MEMORY_WIDTH = 120  # most columns of the default report of memory systems

_BOLD, _DIM, _CYAN, _YELLOW, _END = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[33m", "\x1b[0m"
_WORDS = {"better": _CYAN, "equivalent": _CYAN, "not worse": _CYAN, "worse": _YELLOW, "undecided": _DIM}
_PARTS = re.compile(
    r"(?P<best>★[^ |]+)"
    r"|(?P<limits>\[[^]|]*\]|± [^ |]+|\(too few\))"
    r"|(?<![\w-])(?P<word>better|equivalent|not worse|worse|undecided)(?= *(?:\(|\||;))"
)


def color_table(text: str) -> str:
    """Colour the lines of Markdown tables: titles and best values bold, intervals dim, verdicts by their meaning.

    Names, in the first column, stay uncoloured.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith("| "):
            continue
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith(("| ---", "| :-")):
            lines[number] = f"{_DIM}{line}{_END}"
        elif below.startswith("| ---"):
            lines[number] = f"{_BOLD}{line}{_END}"
        else:
            first_cell = re.search(r"(?<!\\) \|", line[2:])
            end = first_cell.end() + 2 if first_cell else len(line)
            lines[number] = line[:end] + _PARTS.sub(_paint, line[end:])
    return "\n".join(lines)


def _paint(found: re.Match[str]) -> str:
    colour = _BOLD if found["best"] else _DIM if found["limits"] else _WORDS[found["word"]]
    return f"{colour}{found[0]}{_END}"


class TableReporter:
    """One table of systems, the scores by dataset, at most three notes, and the conclusion.

    Args:
        width: Columns of the terminal; None leaves no column out for lack of space.
        color: Whether the terminal shows colours.
        wide: Whether all columns, intervals, tables and notes are shown.
    """

    name = "table"

    def __init__(self, width: int | None = None, color: bool = False, wide: bool = False) -> None:
        self._width, self._color, self._wide = width, color, wide

    def render(self, result: EvalResult) -> str:
        """Render the tables, the notes, and finally the conclusion."""
        is_memory = bool(result.settings.memory)
        if is_memory and not self._wide and (self._width is None or self._width > MEMORY_WIDTH):
            return TableReporter(MEMORY_WIDTH, self._color).render(result)
        slices = [
            self._wrap(found) if isinstance(found, str) else fit_grid(found, self._width)
            for found in list_slices(result)
        ]
        systems = [self._lay_out(result, title, names) for title, names in list_tables(result)]
        if self._wide:
            parts = [
                *self._memory(result, lead=True),
                *(*systems, *self._memory(result)),
                verdict_table(result.comparison, self._width),
                meters(result, self._width),
                evidence(result, self._width),
                *(
                    fit_grid(lines, self._width)
                    for lines in (*list_dataset_scores(result), *list_dataset_numbers(result))
                ),
                *(*slices, *curve_tables(result, self._width)),
                self._wrap(describe_lock(result.config)),
            ]
            notes = list_notes(result)
        else:
            scores = [fit_grid(lines, self._width) for lines in list_dataset_scores(result, verdicts=True)]
            parts = [*(self._sum_up_memory(result) if is_memory else systems), *scores, *slices]
            notes = [" ".join(sum_up_notes(result))] if is_memory else sum_up_notes(result)
            if any("--wide" in part for part in parts):  # a table has named the flag
                notes[0] = notes[0].replace("; more: --wide", "")
        parts += ["\n".join(map(self._wrap, notes)), self._wrap(conclude(result) or describe_alone(result))]
        text = "\n\n".join(part for part in parts if part) + "\n"
        return color_table(text) if self._color else text

    def _wrap(self, note: str) -> str:
        return wrap(escape_note(note), self._width)

    def list_headline(self, result: EvalResult) -> list[list[str]]:
        """List the cells of the table of systems with the intervals of all its numbers, titles first."""
        columns = choose_columns(result, wide=False)
        return _add_verdicts(result, list_lines(result, "system", result.summary, columns, HEADLINES))

    def _sum_up_memory(self, result: EvalResult) -> list[str]:
        from context_bench.output.memory_summary import list_summary

        return list_summary(result, self._width)

    def _memory(self, result: EvalResult, *, lead: bool = False) -> list[str]:
        """Lay out all tables specific to memory systems."""
        if not result.settings.memory:
            return []
        from context_bench.output.memory import (
            HistoryLengths,
            list_leading_grids,
            list_memory_grids,
            list_memory_notes,
            list_outcomes,
        )

        grids = list_leading_grids(result) if lead else list_memory_grids(result, HistoryLengths(result.rows))
        notes = list_outcomes(result) if lead else list_memory_notes(result)
        tables = [grid.fit(self._width) for grid in grids]
        text = "\n".join(wrap(printable(note), self._width) for note in notes)
        return [text, *tables] if lead else [*tables, text]

    def _lay_out(self, result: EvalResult, title: str, names: Sequence[str]) -> str:
        """Lay out a table of systems; if it is too wide, leave out intervals (except the first) before numbers."""
        columns = choose_columns(result, wide=self._wide)
        first = next((key for _, key, _ in columns if key in _SCORES), None)
        first = first or next((key for _, key, _ in columns if key in HEADLINES), "")
        lines = list_lines(result, title, names, columns, HEADLINES if self._wide else {first})
        left_out = []
        if self._width is not None and markdown_width(lines) > self._width:
            shorter = list_lines(result, title, names, columns, {first})
            left_out = ["other intervals"] if shorter != lines else []
            lines = shorter
        ranks = {title: NUMBERS[key].rank if key in NUMBERS else math.inf for title, key, _ in columns}
        if not self._wide:
            lines = _add_verdicts(result, lines)
            ranks |= {_VERDICT: NUMBERS[MEAN_SCORE].rank + 1} if _VERDICT in lines[0] else {}
        beside = {title: NUMBERS[key].beside for title, key, _ in columns if key in NUMBERS}
        needs = {title: NUMBERS[key].title for title, key in beside.items() if key}
        give_way = sorted(ranks, key=lambda title: ranks[title])[::-1]
        return fit_columns(lines, self._width, give_way, needs, left_out)


_VERDICT = "verdict"
_SCORES = (MACRO_SCORE, MEAN_SCORE)


def _add_verdicts(result: EvalResult, lines: list[list[str]]) -> list[list[str]]:
    """Add the column of verdicts to a table of systems, if systems are compared."""
    comparison = result.comparison
    if comparison is None or not comparison.verdicts:
        return lines
    head, *body = lines
    return [[*head, _VERDICT], *([*line, write_verdict(comparison, line[0])] for line in body)]


def list_dataset_scores(result: EvalResult, *, verdicts: bool = False) -> list[list[list[str]]]:
    """List the scores by dataset, a table for each kind of system, titles first.

    With `verdicts`, append the dataset's verdict to a score if it differs from the overall one.
    """
    scores = sorted({key for values in result.summary.values() for key in values if key.startswith("dataset:")})
    tags = [key.partition(":")[2] for key in scores]
    tables = []
    for kind, names in list_tables(result) if len(scores) > 1 else []:
        title = "score by dataset" if kind == "system" else f"{kind}: score by dataset"
        head, *lines = list_lines(result, title, names, [(tag, key, score) for tag, key in zip(tags, scores)])
        if verdicts:  # more informative than the stars
            lines = [
                [name, *(_add_word(result, name, tag, cell.removeprefix(BEST)) for tag, cell in zip(tags, cells))]
                for name, *cells in lines
            ]
        tables.append([head, *lines])
    return tables


def _add_word(result: EvalResult, name: str, tag: str, cell: str) -> str:
    """Add the verdict on one dataset to a cell, if it differs from the overall one."""
    comparison = result.comparison
    return cell if comparison is None else f"{cell} {write_dataset_verdict(comparison, name, tag)}".rstrip()


def list_dataset_numbers(result: EvalResult) -> list[list[list[str]]]:
    """List the tables of other numbers by dataset, titles first."""
    tables = []
    own = [(f"{key} by dataset", key, show) for key, show in own_columns(result).items()]
    declared = [each for each in NUMBERS.values() if each.dataset_title and not is_replaced(each, result)]
    for title, key, show in (*((each.dataset_title, each.key, each.show) for each in declared), *own):
        keys = sorted({each for values in result.summary.values() for each in values if each.startswith(f"{key}@")})
        if any(key in values and not math.isnan(values[key]) for values in result.summary.values()):
            columns: list[Column] = [(each.partition("@")[2], each, show) for each in keys]
            tables += [list_lines(result, title, result.summary, columns)] if len(keys) > 1 else []
    return tables


def list_slices(result: EvalResult) -> list[list[list[str]] | str]:
    """List the scores by each field of `--slice`, titles first; for a field that no row has, the reason."""
    found: list[list[list[str]] | str] = []
    for field in result.settings.slices if result.rows else ():
        try:
            found.append(result.group_by(field).list_lines())
        except UsageError as error:
            found.append(f"--slice {field}: {error}")
    return found


class MarkdownReporter(TableReporter):
    """The same tables in Markdown, without colour and width limit, even on a terminal."""

    name = "md"

    def __init__(self, wide: bool = False) -> None:
        super().__init__(wide=wide)


def list_lines(
    result: EvalResult, title: str, names: Collection[str], columns: Sequence[Column], limits: Collection[str] = ()
) -> list[list[str]]:
    """List a line for each of these systems, titles first; numbers in `limits` get their intervals."""
    best = {key: find_best(result, key, show, names) for _, key, show in columns}
    lines = [[title, *(column for column, _, _ in columns)]]
    for name in names:
        cells = (
            write_cell(result, name, key, show, best=name in best[key], limits=key in limits)
            for _, key, show in columns
        )
        lines.append([name, *cells])
    return lines


_SAVED = ("tokens saved, by the tap", "tokens saved, as sent")  # titles of the tokens saved, with a tap and without one


def _write_cells(values: Mapping[str, float], table: str) -> dict[str, str]:
    """Write a system's numbers of a table, by title."""
    cells = {}
    for each in list_numbers(table):
        title, value = each.title, values.get(each.key)
        if each.key == "downstream_tokens" and value is None:  # without a tap: over the rows with known savings
            value = values.get("sent_tokens")
        elif each.key == "counted_tokens_saved":
            title = _SAVED["downstream_tokens" not in values]
        if value is not None and (value or not each.hide_zero):
            cells[title] = each.show(value)
    return cells


def meters(result: EvalResult, width: int | None = None) -> str:
    """List tokens as counted by the tap, claimed by the proxy and billed by the API."""
    return "\n\n".join(fit_grid(lines, width) for lines in list_meters(result))


def list_meters(result: EvalResult) -> list[list[list[str]]]:
    """List the non-empty tables of tokens and of the prompt cache as texts, titles first."""
    return [lines for table in (TOKENS, CACHE) if (lines := _list_table_lines(result, table))]


def evidence(result: EvalResult, width: int | None = None) -> str:
    """List shares of the examples by whether the evidence reached the model and whether the answer was right."""
    lines = _list_table_lines(result, EVIDENCE)
    return fit_grid(lines, width) if lines else ""


def _list_table_lines(result: EvalResult, table: str) -> list[list[str]]:
    """List the systems that have the first number of a table, titles first; empty if none has."""
    counted = "counted_tokens_saved"
    titles = [title for each in list_numbers(table) for title in (_SAVED if each.key == counted else (each.title,))]
    systems = {name: _write_cells(values, table) for name, values in result.summary.items()}
    systems = {name: cells for name, cells in systems.items() if titles[0] in cells}
    shown = [title for title in titles if any(title in cells for cells in systems.values())]
    lines = [[name, *(cells.get(title, "–") for title in shown)] for name, cells in systems.items()]
    return [[table, *shown], *lines] if lines else []


_GIVE_WAY = ("against the baseline", "saved", "tokens")


def curve_tables(result: EvalResult, width: int | None = None) -> list[str]:
    """Yield a table and a few lines for each curve of a result."""
    return [_render(curve, width) for curve in result.curves()]


def _render(curve: Curve, width: int | None) -> str:
    lines = [[f"{curve.name}: {curve.knob}", "tokens", "saved", "score", "against the baseline"]]
    for point in curve.points:
        difference = "baseline" if point.difference is None else write_difference(point.difference)
        saved = "–" if math.isnan(point.saving) else percent(point.saving)
        count = "–" if math.isnan(point.tokens) else tokens(point.tokens)
        lines.append([point.setting, count, saved, point.quality.render(), difference])
    table = fit_columns(lines, width, _GIVE_WAY)
    return "\n".join([table, "", *(wrap(escape_note(line), width) for line in sum_up_curve(curve))])


def write_difference(interval: Interval) -> str:
    """Write a difference with its interval."""
    shown = f"{interval.value:+.3f}"
    if not interval.known:
        return f"{shown} ({interval.mark})"
    return f"{shown} [{interval.low:+.3f}, {interval.high:+.3f}]"


def sum_up_curve(curve: Curve) -> list[str]:
    """Summarize the curve in a few sentences."""
    name = get_number(curve.metric).title
    lines = [f"{curve.tokens_title}; {name} with 95% intervals; baseline: {curve.baseline}."]
    if curve.area is not None and curve.span is not None:
        low, high = curve.span
        line = f"area under the curve: {curve.area.render()} from {low:,.0f} to {high:,.0f} tokens"
        if curve.area_differences:
            against = [f"{write_difference(each)} against {name}" for name, each in curve.area_differences.items()]
            line += f"; {list_names(against)}"
        lines.append(f"{line}.")
    best, shown = curve.best_point, "none is shown to be"
    if best is not None:
        shown = f"{percent(best.saving)}, with {curve.knob}={best.setting}"
    lines.append(f"largest saving that is not worse than {curve.baseline} within {curve.margin:g}: {shown}.")
    return [*lines, *([f"{curve.note}."] if curve.note else [])]
