"""Write a result for papers and data frames: LaTeX tables, and Parquet files that any reader opens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from context_bench.compare.sweeps import name_briefly
from context_bench.errors import MissingExtra, UsageError, printable
from context_bench.numbers import (
    COST_OF_PASS,
    COST_PER_1K_USD,
    LATENCY_MEDIAN,
    MACRO_SCORE,
    MEAN_SCORE,
    PARETO_FRONT,
    PARETO_RANK,
    PASS_RATE,
    UPSTREAM_COST_OF_PASS,
    score,
)
from context_bench.output.columns import BEST, Column, choose_columns, list_tables
from context_bench.output.files import CsvReporter, SummaryCsvReporter, list_row_columns, list_summary_columns
from context_bench.output.notes import list_notes
from context_bench.output.tables import list_lines, write_difference
from context_bench.output.verdict_tables import NEEDED
from context_bench.results import EvalResult, Part
from context_bench.text import dump_json

if TYPE_CHECKING:
    import pandas

_LATEX = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **{character: f"{{{character}}}" for character in "[]*"},  # behind the end of a line they would be its argument
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "–": "--",
    "−": "$-$",
    "--": "-{}-",
    "±": r"$\pm$",
    "µ": r"$\mu$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "★": r"$\star$",
    "∞": r"$\infty$",
    "×": r"$\times$",
}
_LATEX_ACTIVE = re.compile("|".join(re.escape(each) for each in sorted(_LATEX, key=len, reverse=True)))


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, as names of systems and datasets come from users."""
    return _LATEX_ACTIVE.sub(lambda found: _LATEX[found.group()], printable(text))


class LatexReporter:
    """A table of systems that fits a page, and one of scores by dataset, with `booktabs`; the best of a column is bold.

    The score and its difference to the baseline have intervals. Systems and datasets have short names; their
    full names and the notes of the run follow as comments. An asterisk in a cell refers to these notes.
    """

    name = "latex"

    def render(self, result: EvalResult) -> str:
        """Render the tables and the notes."""
        brief = name_briefly([*result.settings.datasets, *result.summary])
        datasets = ", ".join(brief[tag] for tag in result.settings.datasets)
        caption = f"Results on {datasets}." if datasets else "Results."
        columns, tables = _choose_columns(result), list_tables(result)
        parts = ["% needs \\usepackage{booktabs,graphicx}"]
        for number, (title, names) in enumerate(tables, 1):
            lines = _add_differences(result, list_lines(result, title, names, columns, {MACRO_SCORE, MEAN_SCORE}))
            lines[1:] = [[brief.get(name, name), *cells] for name, *cells in lines[1:]]
            label = "tab:context-bench" + (f"-{number}" if len(tables) > 1 else "")
            parts.append(_write_table(lines, f"{caption} 95% confidence intervals in brackets.", label))
        keys = {key for values in result.summary.values() for key in values if key.startswith("dataset:")}
        tags = sorted(key.partition(":")[2] for key in keys)
        if len(tags) > 1:
            by_dataset: list[Column] = [(brief.get(tag, tag), f"dataset:{tag}", score) for tag in tags]
            lines = list_lines(result, "system", result.summary, by_dataset)
            lines[1:] = [[brief[name], *cells] for name, *cells in lines[1:]]
            parts.append(_write_table(lines, "Score by dataset.", "tab:context-bench-datasets"))
        named = [f"{short} = {name}" for name, short in brief.items() if short != name]
        said = [note for note in list_notes(result, columns, "bold") if note != NEEDED]  # no cell has those numbers
        notes = [f"% {' '.join(printable(note).split())}" for note in (*named, *said)]
        return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"


_PAPER_COSTS = (COST_PER_1K_USD, "cost_of_pass_usd", UPSTREAM_COST_OF_PASS, COST_OF_PASS)
"""Numbers that state a cost; the table shows the first one that is known."""
_NOT_FOR_PAPERS = (PASS_RATE, PARETO_FRONT, PARETO_RANK, LATENCY_MEDIAN, "latency_p95")
"""Numbers left out of the table for lack of space; `csv-summary` has all."""


def _choose_columns(result: EvalResult) -> list[Column]:
    """Choose the columns of a table that fits the width of a page."""
    columns = choose_columns(result, wide=False)
    known = {key for _, key, _ in columns}
    left_out = {*_NOT_FOR_PAPERS, *[key for key in _PAPER_COSTS if key in known][1:]}
    return [column for column in columns if column[1] not in left_out]


def _add_differences(result: EvalResult, lines: list[list[str]]) -> list[list[str]]:
    """Add each system's difference from the baseline with its interval and verdict."""
    comparison = result.comparison
    if comparison is None or not comparison.verdicts:
        return lines
    head, *body = lines
    added = [[*head, f"against {comparison.baseline}", "verdict"]]
    for line in body:
        verdict = comparison.of(line[0])
        if verdict is None:
            added.append([*line, "–", "baseline" if line[0] == comparison.baseline else "–"])
        else:
            added.append([*line, write_difference(verdict.interval).replace("-", "−"), verdict.word])
    return added


def _write_table(lines: Sequence[Sequence[str]], caption: str, label: str) -> str:
    head = ["\\begin{table}", "\\centering", "\\footnotesize\\setlength{\\tabcolsep}{4pt}"]
    head += [f"\\caption{{{escape_latex(caption)}}}", f"\\label{{{label}}}"]
    return "\n".join([*head, _FIT_WIDTH, *_write_tabular(lines, "tabular"), "}", "\\end{table}"])


_FIT_WIDTH = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%"
"""Shrinks a table that is wider than its page or column."""


def _write_tabular(lines: Sequence[Sequence[str]], environment: str) -> list[str]:
    head, *body = (f"{' & '.join(map(_write_latex_cell, line))} \\\\" for line in lines)
    begin, end = f"\\begin{{{environment}}}{{l{'r' * (len(lines[0]) - 1)}}}", f"\\end{{{environment}}}"
    return [begin, "\\toprule", head, "\\midrule", *body, "\\bottomrule", end]


def _write_latex_cell(cell: str) -> str:
    return f"\\textbf{{{escape_latex(cell.removeprefix(BEST))}}}" if cell.startswith(BEST) else escape_latex(cell)


def _write_rows_latex(result: EvalResult) -> str:
    """Write the rows as a long table: numbers and errors, without responses and metadata."""
    keys = sorted({key for row in result.rows for key in row.scores})
    lines = [["system", "dataset", "example", *keys, "input tokens", "output tokens", "error"]]
    for row in result.rows:
        scores = (score(row.scores[key]) if key in row.scores else "–" for key in keys)
        tokens = (f"{row.input_tokens:,}", f"{row.output_tokens:,}")
        lines.append([row.system, row.dataset, str(row.example_id), *scores, *tokens, row.error or ""])
    return "\n".join(["% needs \\usepackage{booktabs,longtable}", *_write_tabular(lines, "longtable"), ""])


def export_csv(result: EvalResult, path: str | Path | None, part: Part) -> str:
    """Return the rows or the summary as CSV; also write it to `path`, if given."""
    return _export_text(path, part, {"rows": CsvReporter().render, "summary": SummaryCsvReporter().render}, result)


def export_latex(result: EvalResult, path: str | Path | None, part: Part) -> str:
    """Return the rows or the summary as LaTeX; also write it to `path`, if given."""
    return _export_text(path, part, {"rows": _write_rows_latex, "summary": LatexReporter().render}, result)


def _export_text(
    path: str | Path | None, part: Part, writers: dict[Part, Callable[[EvalResult], str]], result: EvalResult
) -> str:
    _check_part(part)
    text = writers[part](result)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", errors="replace", newline="")
    return text


def _check_part(part: str) -> None:
    if part not in get_args(Part):
        raise UsageError(f"part must be {' or '.join(map(repr, get_args(Part)))}, not {part!r}")


def make_frame(columns: Mapping[str, Sequence[Any]]) -> pandas.DataFrame:
    """Make a data frame of columns.

    Raises:
        MissingExtra: pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("to_dataframe()", "dataframe") from error
    return pandas.DataFrame(columns)


def _list_columns(result: EvalResult, part: Part) -> dict[str, list[Any]]:
    _check_part(part)
    return list_row_columns(result) if part == "rows" else list_summary_columns(result)


def export_frame(result: EvalResult, part: Part) -> pandas.DataFrame:
    """Return the rows or the summary as a frame."""
    return make_frame(_list_columns(result, part))


def export_parquet(result: EvalResult, path: str | Path, part: Part) -> None:
    """Write the rows or the summary as Parquet.

    A column with mixed types becomes text, and one with nested values becomes JSON, so every result can be written.
    """
    columns = _list_columns(result, part)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("to_parquet()", "parquet") from error
    arrays = {name: pyarrow.array(*_choose_type(pyarrow, name, values)) for name, values in columns.items()}
    parquet.write_table(pyarrow.table(arrays), str(path))


_LARGEST_INTEGER = 2**63 - 1


def _choose_type(pyarrow: Any, name: str, values: Iterable[Any]) -> tuple[list[Any], Any]:
    """Choose a type for all values of a column, and return the converted values."""
    listed = list(values)
    present = [value for value in listed if value is not None]
    if not present:
        return listed, pyarrow.int64() if name.endswith("_tokens") else pyarrow.string()
    if all(isinstance(value, bool) for value in present):
        return listed, pyarrow.bool_()
    if all(isinstance(value, int) and abs(value) <= _LARGEST_INTEGER for value in present):
        return [value if value is None else int(value) for value in listed], pyarrow.int64()
    if all(isinstance(value, int | float) for value in present):
        return [value if value is None else float(value) for value in listed], pyarrow.float64()
    return [value if value is None else _write_text(value) for value in listed], pyarrow.string()


def _write_text(value: Any) -> str:
    text = value if isinstance(value, str) else dump_json(value)
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate cannot be written
