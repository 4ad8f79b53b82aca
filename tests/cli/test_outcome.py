"""What a run tells at its end, beside its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import shell
from context_bench.cli.output import tell_outcome
from context_bench.errors import Interrupted
from context_bench.results import EvalResult
from rows import failed_row, make_row


def told(capsys: pytest.CaptureFixture[str], rows: list[Any], **config: Any) -> str:
    names = dict.fromkeys(row.system for row in rows)
    summary = {
        name: {
            "num_examples": float(sum(row.system == name for row in rows)),
            "num_errors": float(sum(row.system == name and row.error is not None for row in rows)),
        }
        for name in names
    }
    tell_outcome(EvalResult(rows, summary, {}, config))
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_failures_are_told_with_the_first_reason(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [make_row(1.0, system="a"), failed_row(system="a"), failed_row(system="a"), make_row(1.0, system="b")]
    rows[2].error = "another"
    assert told(capsys, rows) == "context-bench: a: 2 of 3 failed, first: TimedOut: no answer (example 1)\n"


def test_why_it_stopped_and_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, [make_row(1.0)], stopped="the limit of $1 is reached", run="abc")
    assert said == "context-bench: stopped early: the limit of $1 is reached\ncontext-bench: recorded as run abc\n"


def test_what_ended_the_run_is_told_once_by_whoever_raises_it(capsys: pytest.CaptureFixture[str]) -> None:
    config = {"stopped": "interrupted", "run": "abc"}
    tell_outcome(EvalResult([make_row(1.0)], {"s": {"num_examples": 1.0}}, {}, config), failure=Interrupted(None))
    assert capsys.readouterr().err == "context-bench: recorded as run abc\n"


def test_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, [make_row(1.0)]) == ""


def test_a_name_says_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, [failed_row(system="\x1b[31mred\nline")])
    assert said.count("\n") == 1
    assert said.strip().isprintable()


@pytest.mark.parametrize("quiet", [False, True])
def test_a_system_that_was_stopped_is_told_of_once(tmp_path: Path, quiet: bool) -> None:
    flags = ["--proxy", "http://127.0.0.1:9", "--name", "mine", "--system", "minify", "--model", "m"]
    flags += ["--dataset", "needle:length=400,n=3", "--no-store", *(["--quiet"] if quiet else [])]
    done = shell(*flags, cwd=tmp_path)
    assert done.returncode == 3
    (line,) = [line for line in done.stderr.splitlines() if "mine" in line]
    assert "mine was stopped after its first request" in line
    assert "check that the server runs" in line


def test_a_server_that_is_down_is_named_once(tmp_path: Path) -> None:
    flags = ["--proxy", "http://127.0.0.1:9", "--model", "m", "--dataset", "needle:length=400,n=3", "--no-store"]
    done = shell(*flags, cwd=tmp_path)
    (line,) = [line for line in done.stderr.splitlines() if "is down" in line]
    assert line.count("127.0.0.1") == 1, line
    (note,) = [line for line in done.stdout.splitlines() if "is down" in line]
    assert note.count("127.0.0.1") == 1, note
