"""Results as CSV, LaTeX and Parquet: for papers and data frames."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import EvalResult, evaluate
from context_bench.cli.output import choose_form
from context_bench.errors import DataError, UsageError
from context_bench.output.exports import escape_latex
from context_bench.output.notes import list_notes
from context_bench.results import EvalRow

DATA = [
    {"id": number, "context": f"Box {number} holds {number * 7} keys.", "answer": str(number * 7)}
    for number in range(6)
]


def half(example: dict[str, Any]) -> dict[str, Any]:
    return {"context": example["context"][:6], "metadata": {"kept": 6, "cut": True, "nested": {"a": [1, "x"]}}}


@pytest.fixture(scope="module")
def result() -> EvalResult:
    return evaluate(["passthrough", half], {"one_a": DATA, "b&c": DATA[:3]}, progress=False)


def read_tables(text: str) -> list[list[list[str]]]:
    """Parse the tables of a LaTeX text: every brace is closed, every line has as many cells as columns."""
    plain = re.sub(r"\\.", "", re.sub(r"(?m)^%.*$", "", text))
    assert plain.count("{") == plain.count("}")
    assert not re.search(r"[#~^]", plain)
    assert sorted(re.findall(r"\\begin\{(\w+)\}", text)) == sorted(re.findall(r"\\end\{(\w+)\}", text))
    tables = []
    for columns, body in re.findall(r"\\begin\{(?:tabular|longtable)\}\{(l+r+)\}(.*?)\\end\{", text, re.DOTALL):
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        cells = [re.split(r" (?<!\\)& ", line.removesuffix(r" \\")) for line in lines]
        assert {len(line) for line in cells} == {len(columns)}
        tables.append(cells)
    return tables


def test_latex_has_a_table_of_systems_and_one_by_dataset(result: EvalResult) -> None:
    systems, by_dataset = read_tables(result.to_latex())
    assert [line[0] for line in systems] == ["system", "passthrough", "half"]
    assert systems[0][1:] == ["n", "macro score", "saved", "cost of pass", "against passthrough", "verdict"]
    assert (systems[1][-1], systems[2][-1]) == ("baseline", "undecided")
    assert systems[2][-2].startswith("$-$")
    assert by_dataset[0] == ["system", r"b\&c", r"one\_a"]
    assert any(cell.startswith(r"\textbf{") for cell in systems[1])
    assert r"\caption{Results on one\_a, b\&c. 95\% confidence" in result.to_latex()


def test_the_notes_of_latex_explain_what_its_tables_show(result: EvalResult) -> None:
    notes = [line.removeprefix("% ") for line in result.to_latex().splitlines() if line.startswith("% ")]
    assert any(note.startswith("bold = best in column") for note in notes)
    assert not any("★" in note or note.startswith(("Pareto", "latency", "n ≥ A")) for note in notes)
    shown = list_notes(result)  # with all columns these have their notes
    assert {"Pareto", "latency", "n ≥ A"} <= {word for word in ("Pareto", "latency", "n ≥ A") if word in str(shown)}
    assert any(note.startswith("★ = best in column") for note in shown)


def test_latex_of_rows_is_a_long_table(result: EvalResult, tmp_path: Path) -> None:
    text = result.to_latex(tmp_path / "rows.tex", "rows")
    assert (tmp_path / "rows.tex").read_text() == text
    (table,) = read_tables(text)
    assert len(table) == 1 + len(result.rows)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(result: EvalResult, tmp_path: Path) -> None:
    packages = "\\usepackage{booktabs,graphicx,longtable}"
    text = f"{result.to_latex()}{result.to_latex(part='rows')}"
    (tmp_path / "paper.tex").write_text(
        f"\\documentclass{{article}}{packages}\\begin{{document}}{text}\\end{{document}}"
    )
    subprocess.run(["pdflatex", "-halt-on-error", "paper.tex"], cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "paper.pdf").exists()


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_a_wide_latex_table_fits_a_narrow_column(result: EvalResult, tmp_path: Path) -> None:
    start = "\\documentclass[twocolumn]{article}\\usepackage{booktabs,graphicx}\\begin{document}"
    (tmp_path / "paper.tex").write_text(f"{start}{result.to_latex()}\\end{{document}}")
    command = ["pdflatex", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, check=True, timeout=120, capture_output=True, text=True)
    assert "Overfull" not in done.stdout


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[a]*", "{[}a{]}{*}"),
        (r"50% \input{x}", r"50\% \textbackslash{}input\{x\}"),
        ("a--b – c_d", "a-{}-b -- c\\_d"),
        ("x\ny\x1b", None),
    ],
)
def test_nothing_in_a_name_acts_on_latex(text: str, written: str | None) -> None:
    if written is None:
        assert "\n" not in escape_latex(text)
        assert "\x1b" not in escape_latex(text)
    else:
        assert escape_latex(text) == written


def test_the_summary_as_csv_has_all_numbers_with_intervals(result: EvalResult, tmp_path: Path) -> None:
    text = result.to_csv(tmp_path / "summary.csv", "summary")
    assert (tmp_path / "summary.csv").read_text() == text
    lines = {line["system"]: line for line in csv.DictReader(io.StringIO(text))}
    assert list(lines) == result.systems
    for name, values in result.summary.items():
        for key, value in values.items():
            cell = lines[name][key]
            assert math.isnan(value) if cell == "" else float(cell) == value
    interval = result.intervals["half"]["compression_ratio"]
    assert float(lines["half"]["compression_ratio:low"]) == interval.low
    assert float(lines["half"]["compression_ratio:high"]) == interval.high


def test_rows_as_csv_are_those_of_the_command_line(result: EvalResult) -> None:
    lines = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert len(lines) == len(result.rows)
    assert lines[-1]["metadata.kept"] == "6"


def test_parquet_is_read_back(result: EvalResult, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    result.to_parquet(tmp_path / "rows.parquet")
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert [row["system"] for row in rows] == [row.system for row in result.rows]
    cut = next(row for row in rows if row["system"] == "half")
    assert json.loads(cut["metadata"])["nested"] == {"a": [1, "x"]}
    assert cut["metadata.cut"] is True
    assert cut["upstream_tokens"] is None
    result.to_parquet(tmp_path / "summary.parquet", "summary")
    (first, _) = parquet.read_table(tmp_path / "summary.parquet").to_pylist()
    assert first["system"] == "passthrough"
    assert first["num_examples"] == 9


def test_parquet_of_any_result_works(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    odd = EvalResult(
        [
            EvalRow("a", 1, {"score": 1.0}, 1, 1, {"x": 1, "big": 2**70, "mixed": "text"}, response="\ud800"),
            EvalRow("a", "two", {}, 1, 1, {"x": 0.5, "y": True, "mixed": [1, {"z": None}]}, error="E: x"),
        ],
        {"a": {"score": math.nan, "cost_of_pass": math.inf}},
    )
    odd.to_parquet(tmp_path / "odd.parquet")
    first, second = parquet.read_table(tmp_path / "odd.parquet").to_pylist()
    assert (first["example_id"], second["example_id"]) == ("1", "two")
    assert (first["metadata.x"], second["metadata.x"]) == (1.0, 0.5)
    assert first["metadata.big"] == float(2**70)
    assert first["response"] == "?"
    EvalResult([], {}).to_parquet(tmp_path / "empty.parquet")
    assert parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


def test_frame_csv_and_parquet_have_the_same_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("pandas")
    row = EvalRow("a", 1, {"score": 1.0, "f1": 0.5, "latency": 9.0}, 1, 1, {"kept": 6, "how": "start"}, 0.25)
    row.meta = {"lang": "en"}
    one = EvalResult([row, EvalRow("b", 2, {}, 1, 1, error="E: x")], {"a": {"score": 1.0}, "b": {}})
    for part in ("rows", "summary"):
        one.to_parquet(tmp_path / "x.parquet", part)
        frame = one.to_dataframe(part)
        names = next(csv.reader(io.StringIO(one.to_csv(part=part))))
        assert names == list(frame.columns) == parquet.read_table(tmp_path / "x.parquet").column_names
        assert len(frame) == 2
    first = one.to_dataframe().iloc[0]
    assert list(one.to_dataframe().columns)[-5:] == ["f1", "score:latency", "score", "metadata.kept", "meta.lang"]
    assert tuple(first[["f1", "latency", "score:latency", "metadata.kept"]]) == (0.5, 0.25, 9.0, 6)


@pytest.mark.parametrize(("name", "kind"), [("rows.parquet", "Parquet"), ("rows.CSV", "CSV")])
def test_an_export_cannot_be_loaded_and_says_what_can(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"PAR1\x15\x04\xff")
    with pytest.raises(DataError, match=rf"{name}: {kind} cannot be loaded as a result: save JSON, or use the store$"):
        EvalResult.load(tmp_path / name)


def test_an_unknown_part_is_refused(result: EvalResult, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="part must be 'rows' or 'summary', not 'all'"):
        result.to_parquet(tmp_path / "x.parquet", "all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "out", "form"),
    [
        (None, None, "table"),
        (None, "x.tex", "latex"),
        (None, "x.txt", "table"),
        (None, "report", "table"),
        (None, "/dev/null", "table"),
        ("md", "x.md", "md"),
        ("csv-summary", "x.csv", "csv-summary"),
        ("json", "x.data", "json"),
        ("my.py:report", "x.xml", "my.py:report"),
    ],
)
def test_the_form_of_a_report(output: str | None, out: str | None, form: str) -> None:
    assert choose_form(output, out) == form


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--out x\.pdf: unknown ending \.pdf; use \.json, \.csv, \.md, \.tex"):
        choose_form(None, "x.pdf")
    with pytest.raises(UsageError, match=r"use \.json, \.md, \.txt, or choose a form"):
        choose_form(None, "x.csv", ("table", "json"))
    run = ("--system", "passthrough", "--dataset", "needle:n=2,length=200", "--no-store", "--quiet")
    done = called(*run, "--out", "x.parquet", cwd=tmp_path)
    assert done.returncode == 2
    assert "for Parquet, use result.to_parquet() in Python" in done.stderr
    assert not (tmp_path / "x.parquet").exists()


def test_latex_markdown_and_summary_from_the_command_line(tmp_path: Path) -> None:
    run = ("--system", "passthrough", "--system", "bm25", "--dataset", "needle:n=3,length=200", "--quiet", "--no-store")
    assert called(*run, "--out", "x.tex", cwd=tmp_path).returncode == 0
    assert len(read_tables((tmp_path / "x.tex").read_text())) == 1
    assert called(*run, "--output", "md", cwd=tmp_path).stdout.startswith("| system")
    assert called(*run, "--output", "csv-summary", cwd=tmp_path).stdout.startswith("system,")
