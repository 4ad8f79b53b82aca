"""What the command line says of flags that cannot be: one sentence each, in one form."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_bench.cli import main

RUN = ("--system", "minify", "--dataset", "needle:length=400,n=1", "--no-store", "--quiet")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--seed", "q"], "--seed must be an integer (got 'q')"),
        (["--seed", "1.5"], "--seed must be an integer (got '1.5')"),
        (["--seed", ""], "--seed must be an integer (got '')"),
        (["-n", "z"], "-n/--max-examples must be an integer of at least 0 (got 'z')"),
        (["--repeats", "0"], "--repeats must be an integer of at least 1 (got '0')"),
        (["--threshold", "high"], "--threshold must be a number (got 'high')"),
        (["--max-cost", "-1"], "--max-cost must be a number above 0 (got '-1')"),
        (["--temperature", "hot"], "--temperature must be a number of at least 0, or none (got 'hot')"),
        (["--max-errors", "few"], "--max-errors must be a number of errors or a percentage (got 'few')"),
        (["--api", "other"], "--api must be openai, anthropic or responses (got 'other')"),
        (["--seed"], "--seed needs a value"),
        (
            ["--report", "page.pdf"],
            "--report must end in .html, because it is an HTML page; `runs export` writes other forms (got 'page.pdf')",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_value_that_cannot_be_is_one_sentence(
    flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, *flags]) == 2
    assert capsys.readouterr().err == f"context-bench: {sentence} (see context-bench --help)\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rn"], "unrecognized arguments: rn; did you mean run? (see context-bench --help)"),
        (["cmpare", "last"], "unrecognized arguments: cmpare last; did you mean compare? (see context-bench --help)"),
        (["--quiet", "runs"], "unrecognized arguments: runs; runs is a command: write it before all flags (see "),
        (["datasets", "shw"], "unrecognized arguments: shw; did you mean show? (see context-bench datasets --help)"),
        (["runs", "exprt"], "bundle or verify (got 'exprt'); did you mean export? (see context-bench runs --help)"),
        (["qqq"], "unrecognized arguments: qqq (see context-bench --help)"),
    ],
)
def test_a_command_that_is_misspelt(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--header", "a"], "a --header must be NAME:VALUE"),
        (["--header", ":x"], "a --header must be NAME:VALUE (got the name '' alone)"),
        (["--extra-body", "{"], "--extra-body must be a JSON object (got '{')"),
        (["--extra-body", "[1]"], "--extra-body must be a JSON object (got '[1]')"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_settings_of_requests_are_read_also_where_nothing_is_requested(
    flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, *flags]) == 2
    assert capsys.readouterr().err == f"context-bench: {sentence}\n"


@pytest.mark.parametrize("name", ["page.html", "page.HTM"])
def test_a_page_is_written_where_its_name_says_that_it_is_one(name: str, tmp_path: Path) -> None:
    assert main([*RUN, "--report", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_page_of_recorded_runs_has_such_a_name_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "last", "--out", "page.pdf"]) == 2
    assert (
        "--out must end in .html, because it is an HTML page; `runs export` writes other forms (got 'page.pdf')"
        in capsys.readouterr().err
    )
