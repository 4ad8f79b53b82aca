"""Hostile texts in Markdown, CSV and on a terminal: nothing runs, nothing is loaded, no table breaks."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from banks import each_case
from context_bench import EvalResult, EvalRow
from context_bench.output.files import render_summary
from context_bench.output.layout import escape_cell, escape_note, show_controls, undo_escapes
from context_bench.reporters import CsvReporter, TableReporter
from injections import INJECTIONS

MORE = (
    "[a](http://127.0.0.1:9/)",
    "[a][b]",
    "[a]: http://127.0.0.1:9/",
    "![a][b]",
    "<http://127.0.0.1:9/>",
    "a\\",
    "a\\|b",
    "a\\\\|b",
    "\\<script>x</script>",
    "\\\\<script>x</script>",
    "\\[a](http://127.0.0.1:9/)",
    "a]\\(b)",
    "`code`",
    "```",
    "``` | ```",
    "`|`",
    "~~~",
    "~~gone~~",
    "*a* **b**",
    "_a_ __b__",
    "# title",
    "> quote",
    "- item",
    "1. item",
    "---",
    "|---|---|",
    "|",
    "||||",
    "&amp; &#60;b&#62; &lt;",
    "<b",
    "</td></tr></table>",
    "<details><summary>x</summary>",
    "<!--",
    "$$x$$",
    "@everyone",
    "\x9b31mC1\x9b0m",
    "\u2066\u202e\u2069",
    "\u200b\u200d\ufeff",
    "\x1b]8;;http://127.0.0.1:9/\x07link\x1b]8;;\x07",
    "\x1b[2J\x1b[H",
    "\x1bPq#0;2;0;0;0\x1b\\\\",
    "",
    " ",
    "+1",
    "@SUM(A1)",
    "＝1+1",
    '=HYPERLINK("http://127.0.0.1:9/")',
)
HOSTILE = (*INJECTIONS, *MORE)
PARSER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
ACTIVE = {
    "html_inline",
    "html_block",
    "link_open",
    "image",
    "fence",
    "code_block",
    "heading_open",
    "blockquote_open",
    "hr",
}
"""What must not come of data anywhere; in a note, a word in italics does no harm."""
STYLES = {"em_open", "strong_open", "s_open", "code_inline"}


def test_there_are_enough_of_them() -> None:
    assert len(set(HOSTILE)) >= 100


def _make_result(text: str) -> EvalResult:
    summary = {
        name: {
            "num_examples": 3.0,
            "num_errors": 1.0,
            "mean_score": value,
            "compression_ratio": 0.5,
            "mean_output_tokens": 100.0 * value,
            f"dataset:{text}": value,
            "dataset:plain": 0.5,
            "cost_of_pass": 7.0,
        }
        for name, value in ((text, 0.5), ("plain", 0.25))
    }
    rows = [
        EvalRow(text, text, {"score": 0.5}, 1, 1, {"k": text}, 0.1, text, text, None),
        EvalRow("plain", 2, {}, 1, 1, dataset=text, error=f"Error: {text}", unscored={"e": text}),
    ]
    config = {
        "datasets": {text: 1, "plain": 1},
        "primary": {text: text, "plain": "f1"},
        "returns": {text: "context", "plain": "context"},
        "reports": {text: {"unmatched": 2, "label": f"a label: {text}"}},
    }
    notes = {text: {"mean_score": f"because of {text}"}}
    return EvalResult(rows, summary, {}, config, notes=notes)


def _walk(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _walk(token.children or [])


def _read_tables(markdown: str) -> list[list[list[str]]]:
    """Read the cells of every table, as a page would show them."""
    tables: list[list[list[str]]] = []
    for token in PARSER.parse(markdown):
        if token.type == "table_open":
            tables.append([])
        elif token.type == "tr_open":
            tables[-1].append([])
        elif token.type == "inline" and token.level == 4 + (token.level > 4):
            tables[-1][-1].append("".join(child.content for child in token.children or []))
    return tables


def _list_styles(markdown: str) -> set[str]:
    """List the styles that the cells of tables have."""
    cells = [token for token in PARSER.parse(markdown) if token.type == "inline" and token.level >= 4]
    return {token.type for token in _walk(cells)} & STYLES


def _expect(text: str) -> str:
    """What a page shows of a name in a cell: spaces at its ends are not seen."""
    return "".join(char if char.isprintable() else "�" for char in text).strip()


@each_case("text", HOSTILE)
def test_in_markdown_every_name_is_text_and_every_table_whole(text: str) -> None:
    markdown = TableReporter(wide=True).render(_make_result(text))
    assert {token.type for token in _walk(PARSER.parse(markdown))} & ACTIVE == set()
    assert _list_styles(markdown) == set()
    systems, by_dataset = _read_tables(markdown)
    assert [line[0] for line in systems] == ["system", _expect(text), "plain"]
    assert len({len(line) for line in systems}) == 1
    assert sorted(by_dataset[0][1:]) == sorted([_expect(text), "plain"])
    assert [len(line) for line in by_dataset] == [3, 3, 3]


@each_case("text", HOSTILE)
def test_in_the_summary_of_a_gate_too(text: str) -> None:
    markdown = render_summary(TableReporter(wide=True).render(_make_result(text)), [])
    found = {token.type for token in _walk(PARSER.parse(markdown.partition("\n")[2]))}
    assert found & (ACTIVE | STYLES) == set()
    assert [line[0] for line in _read_tables(markdown)[0]] == ["system", _expect(text), "plain"]


def _is_silent(text: str) -> bool:
    """Whether a terminal only shows it: no escape, no control, no change of direction."""
    return all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text)


@each_case("text", HOSTILE)
@each_case("width", [None, 80])
def test_on_a_terminal_nothing_but_our_own_colours_speaks(text: str, width: int | None) -> None:
    result = _make_result(text)
    assert _is_silent(TableReporter(width, wide=True).render(result))
    coloured = TableReporter(width, color=True).render(result)
    assert _is_silent(re.sub("\x1b\\[[0-9]m|\x1b\\[3[0-9]m", "", coloured))
    assert _is_silent(result.plot.pareto().to_text(width or 100))


@each_case("text", HOSTILE)
def test_csv_gives_back_every_field_and_no_formula(text: str) -> None:
    rendered = CsvReporter().render(_make_result(text))
    rendered.encode("utf-8")
    first, second = csv.DictReader(io.StringIO(rendered, newline=""))
    plain = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    for name in ("system", "example_id", "dataset", "response"):
        assert first[name].removeprefix("'") == plain.removeprefix("'")
        assert first[name][:1] not in tuple("=+-@＝＋－＠\t\r\n") or re.fullmatch(r"[+-]?[\d.]+", first[name])
    assert second["error"].startswith("Error: ")
    assert json.loads(first["metadata"])["k"] == text.encode("utf-8", "replace").decode()


@each_case("text", HOSTILE)
def test_what_data_would_say_to_a_terminal_is_seen(text: str) -> None:
    assert all(char in "\n\t" or char.isprintable() or char == "\xa0" for char in show_controls(text))


@pytest.mark.parametrize(
    "name",
    ["headroom[level=low]", "bm25:ratio=0.3", "my_system", "a*b", "x < y", "R&D", "C:\\new", "p=<0.001", "1.000*"],
)
def test_ordinary_names_stay_as_they_are(name: str) -> None:
    assert escape_cell(name) == name
    assert escape_note(name) == name


@each_case("text", [each for each in HOSTILE if each.isprintable() and "\\" not in each])
def test_escapes_can_be_undone(text: str) -> None:
    assert undo_escapes(escape_cell(text)).replace("\\|", "|") == text
