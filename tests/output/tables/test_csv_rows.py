"""CSV: a record for each row, whatever is in it."""

from __future__ import annotations

import csv
import io
import json

import pytest

from banks import each_case
from context_bench import EvalResult, EvalRow
from context_bench.reporters import CsvReporter


def read(*rows: EvalRow) -> list[dict[str, str]]:
    text = CsvReporter().render(EvalResult(list(rows), {}))
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_the_fields_of_a_row_and_a_column_for_each_score() -> None:
    first = EvalRow("s", 1, {"f1": 0.5, "a": 1.0}, 10, 5, {"x": [1]}, 0.25, "d", response="r", upstream_tokens=7)
    second = EvalRow("s", "2", {}, 3, 0, error="E: x", repeat=1, unscored={"e": "why"})
    one, two = read(first, second)
    assert list(one)[:7] == [
        "system",
        "example_id",
        "input_tokens",
        "output_tokens",
        "metadata",
        "latency",
        "dataset",
    ]
    assert (one["f1"], one["a"], one["upstream_tokens"]) == ("0.5", "1.0", "7")
    assert json.loads(one["metadata"]) == {"x": [1]}
    assert (two["f1"], two["upstream_tokens"], two["error"], two["repeat"]) == ("", "", "E: x", "1")
    assert json.loads(two["unscored"]) == {"e": "why"}


@each_case(
    "text",
    [
        "a,b",
        'say "x"',
        "two\nlines",
        "two\r\nlines",
        "old\rmac",
        "tab\t",
        " space ",
        "日本 🎉",
        ";",
        "'",
        "\\",
        "\u2028",
    ],
)
def test_any_text_comes_back(text: str) -> None:
    rows = read(EvalRow("s", text, {}, 1, 1, response=text), EvalRow("s", 2, {}, 1, 1))
    assert len(rows) == 2
    assert (rows[0]["response"], rows[0]["example_id"]) == (text, text)


def test_a_lone_surrogate_can_be_written() -> None:
    text = CsvReporter().render(EvalResult([EvalRow("\ud800", "\ud800", {}, 1, 1, {"k": "\ud800"})], {}))
    text.encode("utf-8")


def test_no_rows_are_a_header() -> None:
    assert CsvReporter().render(EvalResult([], {})).count("\n") == 1


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://evil")', "-"]
)
def test_a_text_that_a_spreadsheet_would_run_is_made_a_text(text: str) -> None:
    (row,) = read(EvalRow(text, text, {}, 1, 1, response=text, error=text, dataset=text))
    for name in ("system", "example_id", "response", "error", "dataset"):
        assert row[name] == f"'{text}"


def test_numbers_stay_numbers() -> None:
    (row,) = read(EvalRow("s", "-5", {"a": -1.5}, 1, 1, latency=-0.25, response="+3.5e-7"))
    assert (row["example_id"], row["a"], row["latency"], row["response"]) == ("-5", "-1.5", "-0.25", "+3.5e-7")
