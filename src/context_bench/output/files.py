"""Write a result as JSON or CSV and a gate as JUnit XML or Markdown; build the reporter of `--output`."""

from __future__ import annotations

import csv
import inspect
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from context_bench.compare.conditions import FAILS
from context_bench.compare.gates import GateOutcome, find_exit_code
from context_bench.errors import UsageError, printable
from context_bench.output.layout import undo_escapes
from context_bench.refs import Ref, call_with, check_arguments, check_plain, parse, resolve
from context_bench.results import ROW_FIELDS, EvalResult
from context_bench.stats import TOO_FEW
from context_bench.text import dump_json
from context_bench.types import Reporter


class JsonReporter:
    """Writes JSON that `EvalResult.from_json` can read."""

    name = "json"

    def render(self, result: EvalResult) -> str:
        """Render the document, with a line end."""
        return result.to_json() + "\n"


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
"""A number needs no apostrophe: it cannot be a dangerous formula."""


class CsvReporter:
    """A line for each row, with the columns of `list_row_columns`.

    Nested values are JSON. A text that a spreadsheet would read as a formula gets a leading apostrophe.
    """

    name = "csv"

    def render(self, result: EvalResult) -> str:
        """Render a header and a line for each row."""
        return _write_csv(list_row_columns(result))


class SummaryCsvReporter:
    """A line for each system: every number of its summary, with the limits of its interval if known.

    A number that was not measured is an empty cell.
    """

    name = "csv-summary"

    def render(self, result: EvalResult) -> str:
        """Render a header and a line for each system."""
        return _write_csv(list_summary_columns(result))


class GithubReporter:
    """Markdown for a comment or a job's page on GitHub; text from data cannot become markup or mention people."""

    name = "github"

    def render(self, result: EvalResult) -> str:
        """Render the tables and notes."""
        table: Reporter = build_reporter("table")
        return render_summary(table.render(result), ())


def list_summary_columns(result: EvalResult) -> dict[str, list[Any]]:
    """List the summary by column: the system, and each number followed by `<key>:low` and `<key>:high`."""
    columns: dict[str, list[Any]] = {"system": list(result.summary)}
    for key in dict.fromkeys(key for values in result.summary.values() for key in values):
        values = [own.get(key, math.nan) for own in result.summary.values()]
        columns[key] = [None if math.isnan(value) else float(value) for value in values]
        found = [result.intervals.get(name, {}).get(key) for name in result.summary]
        if any(each is not None and each.known for each in found):
            columns[f"{key}:low"] = [each.low if each is not None and each.known else None for each in found]
            columns[f"{key}:high"] = [each.high if each is not None and each.known else None for each in found]
    return columns


def list_row_columns(result: EvalResult) -> dict[str, list[Any]]:
    """List the rows by column: fields in their order, scores, numbers of `metadata`, `meta`.

    `metadata.response_tokens` and `meta.lang` have the names that `group_by` accepts. A score keeps its name; if a
    field of a row has the same name, the score is `score:<name>`.
    """
    columns = {name: [getattr(row, name) for row in result.rows] for name in ROW_FIELDS if name != "scores"}
    for key in sorted({key for row in result.rows for key in row.scores}):
        columns[f"score:{key}" if key in columns else key] = [row.scores.get(key) for row in result.rows]
    numbers = [
        {key: value for key, value in row.metadata.items() if isinstance(value, int | float)} for row in result.rows
    ]
    for key in sorted({key for own in numbers for key in own}):
        columns[f"metadata.{key}"] = [own.get(key) for own in numbers]
    for key in dict.fromkeys(key for row in result.rows for key in row.meta):
        columns[f"meta.{key}"] = [row.meta.get(key) for row in result.rows]
    return columns


def _write_csv(columns: Mapping[str, Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for line in (columns, *zip(*columns.values())):
        cells = [_cell(value) for value in line]
        # readers take a bare carriage return for the end of a record, and the writer does not quote it
        (quoting if any("\r" in cell for cell in cells if isinstance(cell, str)) else writer).writerow(cells)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, dict):
        return dump_json(value)
    if isinstance(value, str):  # a lone surrogate cannot be written as UTF-8, and readers stop at a NUL
        text = value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\ufffd")
        return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
    return "" if value is None else value


class FunctionReporter:
    """Uses a plain function as a reporter: it takes the result and returns the text."""

    def __init__(self, function: Callable[[EvalResult], str]) -> None:
        self.function = function
        self.name = str(getattr(function, "__name__", type(function).__name__))

    def render(self, result: EvalResult) -> str:
        """Call the function."""
        return self.function(result)


def build_reporter(
    text: str, width: int | None = None, store: str | None = None, *, color: bool = False, wide: bool = False
) -> Reporter:
    """Build the reporter of a reference.

    Its constructor may take `width` (of the terminal), `color` (whether to show colours), `wide` (whether to show
    everything) and `store` (the folder of the run's store).

    Raises:
        UsageError: The name is unknown, or does not belong to a reporter.
    """
    refs = parse("reporter", text)
    if len(refs) > 1:
        raise UsageError(f"{text!r} stands for {len(refs)} reporters: choose one")
    found = resolve("reporter", refs[0])
    if isinstance(found, type):
        return adapt_reporter(
            call_with(found, _add_known(found, refs[0], {"width": width, "store": store, "color": color, "wide": wide}))
        )
    if refs[0].parameters or refs[0].argument:
        raise UsageError(f"{text!r}: this reporter is already an instance and takes no parameters")
    return adapt_reporter(found)


def _add_known(kind: type, ref: Ref, known: Mapping[str, Any]) -> Ref:
    """Add the known parameters that the constructor accepts."""
    try:
        takes = set(inspect.signature(kind).parameters)
    except (TypeError, ValueError):
        takes = set()
    given = {name: value for name, value in known.items() if name in takes}
    return Ref(ref.text, ref.target, ref.argument, {**given, **ref.parameters})


def adapt_reporter(reporter: Any) -> Reporter:
    """Return a reporter unchanged and wrap a function of a result; refuse anything else."""
    if isinstance(reporter, Reporter) and not isinstance(reporter, type):
        check_plain(reporter, "render")
        return reporter
    if callable(reporter):
        check_plain(reporter, "__call__")
        check_arguments(reporter, 1, "a reporter must take one argument, the result")
        return FunctionReporter(reporter)
    raise UsageError(f"{type(reporter).__name__} is not a reporter: pass an object with .name and .render(result)")


_ELEMENTS = {FAILS: "failure", TOO_FEW: "error"}
"""The XML element of each outcome other than passed; too few examples are an error, as nothing was decided."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold in any form."""


def render_junit(outcomes: Sequence[GateOutcome]) -> str:
    """Write the outcomes as JUnit XML, with escaped texts."""
    failures = sum(each.outcome == FAILS for each in outcomes)
    errors = sum(each.outcome == TOO_FEW for each in outcomes)
    counts = f'tests="{len(outcomes)}" failures="{failures}" errors="{errors}" skipped="0"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="context-bench" {counts}>']
    lines.append(f'  <testsuite name="context-bench gate" {counts}>')
    for each in outcomes:
        lines += _render_case(each)
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def _render_case(outcome: GateOutcome) -> list[str]:
    case = f"    <testcase classname={_quote(outcome.system)} name={_quote(outcome.condition)}"
    kind = _ELEMENTS.get(outcome.outcome)
    if kind is None:
        return [f"{case}>", f"      <system-out>{escape(_clean_xml(outcome.sentence))}</system-out>", "    </testcase>"]
    attributes = f"type={_quote(outcome.outcome)} message={_quote(outcome.sentence)}"
    return [f"{case}>", f"      <{kind} {attributes}/>", "    </testcase>"]


def _quote(text: str) -> str:
    return quoteattr(_clean_xml(text))


def _clean_xml(text: str) -> str:
    """Replace characters that XML cannot hold; line breaks become spaces, as in attributes."""
    return " ".join(_NOT_XML.sub("�", text).split())


_TITLES = {0: "Gate passed", 1: "Gate failed", 4: "Gate undecided"}

_ACTIVE = re.compile(
    r"(?P<slash>[*`~]|\](?=[\[(:])|(?<![^\W_])_|_(?![^\W_]))"
    r"|[<@#]|&(?=#|\w+;)|(?m:^>)|\$(?!\d)|\\(?!\|)|(?<=[a-zA-Z]):(?=//)"
)
"""Characters that GitHub may read as markup: some need a backslash, others (mentions, mathematics) a character code.

Most brackets stay readable: without `](`, `][` and `]:` there is no link.
"""


def escape_markdown(text: str) -> str:
    """Escape text from data or servers so that GitHub shows it unchanged, as readable as possible without rendering."""
    return _ACTIVE.sub(lambda found: f"\\{found[0]}" if found["slash"] else f"&#{ord(found[0])};", text)


def render_summary(report: str, outcomes: Sequence[GateOutcome]) -> str:
    """Write the summary.

    Args:
        report: Tables in Markdown with lines of notes between them; everything is escaped except the bars of tables.
        outcomes: The outcomes of the gate; empty without a gate.
    """
    parts = ["## context-bench", *_separate_lines(report)]
    if outcomes:
        lines = [f"- {escape_markdown(printable(each.sentence))}" for each in outcomes]
        parts += [f"### {_TITLES[find_exit_code(outcomes)]}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


_LEVELS = {FAILS: "error", TOO_FEW: "warning"}


def render_annotations(outcomes: Sequence[GateOutcome]) -> str:
    """Write all outcomes except passed ones as workflow commands, which GitHub shows on the page of the job."""
    return "".join(
        f"::{_LEVELS[each.outcome]} title=context-bench::{printable(each.sentence).replace('%', '%25')}\n"
        for each in outcomes
        if each.outcome in _LEVELS
    )


def _separate_lines(report: str) -> list[str]:
    """Make each line outside tables a paragraph, as Markdown would join the lines."""
    parts: list[str] = []
    for block in report.strip().split("\n\n"):
        escaped = escape_markdown(undo_escapes(block))
        if block.startswith("| "):
            parts.append(escaped)
        else:
            parts += escaped.splitlines()
    return parts
