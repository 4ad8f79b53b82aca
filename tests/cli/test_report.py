"""`context-bench report`, `--report` and `--output html`: the same page, three ways."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command import called
from report_pages import read_blocks, read_index

RUN = ("--system", "passthrough", "--system", "truncate:ratio=0.5", "--dataset", "needle:length=300,n=4", "--quiet")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert called(*RUN, "--report", "page.html", "--out", "result.json", cwd=tmp_path).returncode == 0
    return tmp_path


def test_three_ways_give_one_page(folder: Path) -> None:
    page = (folder / "page.html").read_text()
    done = called("report", "last", "--out", "again.html", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "context-bench: wrote again.html\n")
    assert (folder / "again.html").read_text() == page
    exported = called("runs", "export", "last", "--output", "html", cwd=folder)
    assert exported.stdout == page
    assert read_index(page)["rows"] == 8
    assert read_blocks(page)[0]["context"], "the contexts come from the store"


def test_the_ending_of_out_chooses_the_page(tmp_path: Path) -> None:
    assert called(*RUN, "--out", "page.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_rows_that_only_the_store_has_are_on_the_page(tmp_path: Path) -> None:
    assert called(*RUN, "--no-rows", "--report", "page.html", cwd=tmp_path).returncode == 0
    assert read_index((tmp_path / "page.html").read_text())["rows"] == 8


def test_without_a_store_rows_are_shown_without_contexts(tmp_path: Path) -> None:
    assert called(*RUN, "--no-store", "--report", "page.html", cwd=tmp_path).returncode == 0
    page = (tmp_path / "page.html").read_text()
    assert read_index(page)["rows"] == 8
    assert {row["gold"] for row in read_blocks(page)} == {None}


def test_several_runs_and_files_on_one_page(folder: Path) -> None:
    assert called(*RUN, cwd=folder).returncode == 0
    runs = [line.split()[0] for line in called("runs", cwd=folder).stdout.splitlines()[1:]]
    assert called("report", *runs, "result.json", "--out", "all.html", cwd=folder).returncode == 0
    page = (folder / "all.html").read_text()
    index = read_index(page)
    assert index["rows"] == 24
    assert index["names"]["run"] == [*runs, "result.json"]
    assert page.count("<article ") == 3


def test_files_of_one_name_are_told_apart(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "result.json").write_bytes((folder / "result.json").read_bytes())
    assert called("report", "result.json", "other/result.json", "--out", "two.html", cwd=folder).returncode == 0
    index = read_index((folder / "two.html").read_text())
    assert index["names"]["run"] == ["result.json (1)", "result.json (2)"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report", "nonsense"), "there is no run"),
        (("report", "missing.json"), "missing.json: cannot be read"),
        (("report", "broken.json"), "is not a result of context-bench"),
        (("report", "last", "--out", "no/such/place.html"), "cannot write to --out no/such/place.html"),
        ((*RUN, "--report", "no/such/place.html"), "cannot write to --report no/such/place.html"),
    ],
)
def test_mistakes_get_one_sentence(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    (folder / "broken.json").write_text(json.dumps({"no": "result"}))
    done = called(*arguments, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert said in line
