"""Reporters by reference, and metrics of one's own in the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, evaluate, register_evaluator, register_reporter, register_system
from context_bench.errors import UsageError
from context_bench.output.files import build_reporter
from context_bench.reporters import TableReporter
from numbered import numbered

CODE = """
class Short:
    name = "short"

    def __init__(self, width=None, mark="-"):
        self.width, self.mark = width, mark

    def render(self, result):
        return f"{self.mark}{len(result.rows)} {self.width}\\n"


made = Short(mark="*")


def count(result):
    return f"{len(result.rows)}\\n"


number = 5
"""
RUN = ["--system", "passthrough", "--dataset", "needle:n=2", "--quiet", "--no-store"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(CODE)
    return tmp_path


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        ("own.py:Short", "-2 None\n"),
        ("own.py:Short:mark=+", "+2 None\n"),
        ("own.py:made", "*2 None\n"),
        ("own.py:count", "2\n"),
    ],
)
def test_a_reporter_of_ones_own_by_reference(ref: str, text: str, folder: Path) -> None:
    done = called(*RUN, "--output", ref, cwd=folder)
    assert (done.returncode, done.stdout) == (0, text), done.stderr
    done = called(*RUN, "--output", ref, "--out", "report.md", cwd=folder)
    assert (folder / "report.md").read_text() == text


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("tabel", "unknown reporter 'tabel': did you mean table?"),
        ("own.py:number", "int is not a reporter"),
        ("own.py:made:mark=+", "this reporter is already an instance and takes no parameters"),
        ("own.py:Short:mark=a|b", "stands for 2 reporters"),
        ("own.py:Nothing", "own.py has no 'Nothing'"),
    ],
)
def test_what_is_no_reporter_is_told_before_the_run(ref: str, said: str, folder: Path) -> None:
    done = called(*RUN, "--output", ref, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_run_that_is_recorded_can_be_exported_by_a_reporter_of_ones_own(folder: Path) -> None:
    called(*RUN[:-1], cwd=folder)
    assert called("runs", "export", "last", "--output", "own.py:count", cwd=folder).stdout == "2\n"
    assert called("score", "last", "--output", "own.py:count", cwd=folder).stdout == "2\n"


def test_parts_that_are_registered_have_names() -> None:
    class Cut:
        name = "cut"

        def process(self, example: dict[str, Any]) -> dict[str, Any]:
            return {"context": example["context"][:4]}

    register_system("cut", Cut)
    register_evaluator("shouts", lambda original, processed: float(processed["response"].isupper()))
    register_reporter("names", lambda result: ",".join(result.summary) + "\n")
    result = evaluate("cut", numbered(1), ["shouts"], progress=False)
    assert result.rows[0].response == "Item"
    assert build_reporter("names").render(result) == "cut\n"


def test_the_reporters_are_listed(tmp_path: Path) -> None:
    lines = called("reporters", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [
        *("reporter", "csv", "csv-summary", "github", "html", "json", "latex", "md", "table")
    ]


# --- metrics of one's own in the table


class Spread:
    name = "spread"

    def compute(self, rows: list[Any]) -> dict[str, float]:
        return {"shortest": 12.3456, "share": 0.25}


def _columns(result: EvalResult) -> dict[str, str]:
    header, _, first = TableReporter(wide=True).render(result).splitlines()[:3]
    return {title.strip(): cell.strip() for title, cell in zip(header.split("|"), first.split("|"))}


def test_a_metric_of_ones_own_has_a_column_for_each_number() -> None:
    result = evaluate(lambda example: example, numbered(1, 2), metrics=[Spread()], progress=False)
    columns = _columns(result)
    assert (columns["shortest"], columns["share"]) == ("12.35", "0.25")
    again = EvalResult.from_json(result.to_json())  # this process could not make the metric again
    assert _columns(again)["share"] == "0.25"


def test_a_metric_says_which_columns_it_wants_and_how_they_look() -> None:
    class Declared(Spread):
        columns = {"share": ".1%"}  # noqa: RUF012

    columns = _columns(evaluate(lambda example: example, numbered(1), metrics=[Declared()], progress=False))
    assert columns["share"] == "25.0%"
    assert "shortest" not in columns


def test_a_format_that_is_none_is_told_before_the_run() -> None:
    class Wrong(Spread):
        columns = {"share": "percent"}  # noqa: RUF012

    with pytest.raises(
        UsageError, match=r"metric 'spread': column 'share' has a format that format\(\) refuses: 'percent'"
    ):
        evaluate(lambda example: example, numbered(1), metrics=[Wrong()], progress=False)


def test_a_metric_of_ones_own_by_dataset_has_a_table() -> None:
    class Rows:
        name = "rows"
        by_dataset = ("rows",)

        def start(self) -> Any:
            class Tally:
                count = 0

                def add(self, row: Any) -> None:
                    self.count += 1

                def result(self) -> dict[str, float]:
                    return {"rows": float(self.count)}

            return Tally()

        def compute(self, rows: list[Any]) -> dict[str, float]:
            return {"rows": float(len(rows))}

    data = [*numbered(1, 2, dataset="a"), *numbered(3, dataset="b")]
    text = TableReporter(wide=True).render(evaluate(lambda example: example, data, metrics=[Rows()], progress=False))
    table = text[text.index("rows by dataset") :].splitlines()
    assert [cell.strip() for cell in table[2].split("|")[2:4]] == ["2", "1"]
    assert json.loads(json.dumps(text))
