"""Where reports and notes go."""

from __future__ import annotations

import argparse
import json
import logging
import os
import stat
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from command import shell
from context_bench.cli.output import destination, notes, tell
from context_bench.errors import UsageError
from context_bench.results import EvalResult
from rows import failed_row, make_row


def write(path: Path | str, text: str) -> None:
    with destination(str(path)) as put:
        put(text)


def test_without_a_file_it_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with destination(None) as put:
        put("report\n")
    assert capsys.readouterr().out == "report\n"


def test_a_new_file(tmp_path: Path) -> None:
    write(tmp_path / "new", "naïve 日本\n")
    assert (tmp_path / "new").read_bytes() == "naïve 日本\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "new", "a\ud800b")
    assert (tmp_path / "new").read_text() == "a?b"


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    with destination(str(target)) as put:
        assert target.read_text() == "old"
        put("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_a_run_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    with pytest.raises(type(error)), destination(str(target)):
        raise error
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report"]


def test_who_may_read_the_file_stays_so(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    target.chmod(0o600)
    write(target, "new")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_link_to_nothing_yet(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    got: list[str] = []
    thread = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    thread.start()
    write(tmp_path / "pipe", "report")
    thread.join(5)
    assert got == ["report"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_disk_that_is_full_is_one_sentence() -> None:
    with pytest.raises(UsageError, match="cannot write to --out /dev/full: No space left"):
        write("/dev/full", "report")


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write to --out .*: No such file or directory"):
        write(tmp_path / "missing" / "report", "x")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a directory"):
        write(tmp_path, "x")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_run_is_not_taken_for_one_of_writing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="disk of somebody else"), destination(str(tmp_path / "report")):
        raise OSError("disk of somebody else")


# Notes


def options(**flags: bool) -> argparse.Namespace:
    return argparse.Namespace(**{"verbose": False, "quiet": False, **flags})


def test_a_warning_is_one_line_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with notes(options()):
        for _ in range(2):
            warnings.warn("the first\nof two \x1b[31mlines", stacklevel=1)
        warnings.warn("another", stacklevel=1)
        exec("import warnings; warnings.warn('another')")
    assert capsys.readouterr().err == "context-bench: the first of two [31mlines\ncontext-bench: another\n"


def test_quiet_tells_none(capsys: pytest.CaptureFixture[str]) -> None:
    with notes(options(quiet=True)):
        warnings.warn("x", stacklevel=1)
    assert capsys.readouterr().err == ""


def test_warnings_are_as_before_afterwards() -> None:
    before = (warnings.showwarning, list(warnings.filters))
    with notes(options()):
        pass
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_the_wire_is_shown_when_it_is_asked_for_and_only_then(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("context_bench.http.endpoint")
    with notes(options(verbose=True)):
        logger.debug("> POST")
    with notes(options()):
        logger.debug("> POST again")
    assert capsys.readouterr().err == "> POST\n"
    assert logging.getLogger("context_bench").handlers == []


def told(capsys: pytest.CaptureFixture[str], rows: list[Any], **config: Any) -> str:
    names = dict.fromkeys(row.system for row in rows)
    summary = {
        name: {
            "num_examples": float(sum(row.system == name for row in rows)),
            "num_errors": float(sum(row.system == name and row.error is not None for row in rows)),
        }
        for name in names
    }
    tell(EvalResult(rows, summary, {}, config))
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


def test_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, [make_row(1.0)]) == ""


def test_a_name_says_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    said = told(capsys, [failed_row(system="\x1b[31mred\nline")])
    assert said.count("\n") == 1
    assert said.strip().isprintable()


def test_stderr_is_looked_up_when_it_is_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "err").open("w+") as other, notes(options()):
        monkeypatch.setattr(sys, "stderr", other)
        warnings.warn("elsewhere", stacklevel=1)
        other.seek(0)
        assert other.read() == "context-bench: elsewhere\n"


# What a user's code prints


def test_what_code_prints_when_it_is_loaded_stays_out_of_the_report(tmp_path: Path) -> None:
    """At import, when a system, an evaluator or a metric is made, and when a dataset is loaded."""
    (tmp_path / "loud.py").write_text(
        "print('imported')\n"
        "class Half:\n"
        "    name = 'half'\n"
        "    def __init__(self): print('made')\n"
        "    def process(self, example): return example['context'][:9]\n"
        "class Length:\n"
        "    name = 'length'\n"
        "    def __init__(self): print('made too')\n"
        "    def score(self, original, processed): return {'length': float(len(processed['response']))}\n"
        "def data():\n"
        "    print('loaded')\n"
        "    return [{'id': 1, 'context': 'some context', 'answer': 'some'}]\n"
    )
    (tmp_path / "plugin.py").write_text("print('plugged in')\n")
    flags = ("--system", "loud.py:Half", "--evaluator", "loud.py:Length", "--dataset", "loud.py:data")
    done = shell(*flags, "--import", "plugin.py", "--output", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"][0]["scores"]["length"] == 9.0
    assert {"imported", "made", "made too", "plugged in"} <= set(done.stderr.splitlines())
    again = shell("score", "last", "--import", "plugin.py", "--output", "json", cwd=tmp_path)
    assert json.loads(again.stdout)["rows"]
    assert "plugged in" in again.stderr.splitlines()
