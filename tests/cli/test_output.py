"""Where reports and notes go."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from command import shell
from context_bench.cli.output import open_destination
from context_bench.errors import UsageError


def write(path: Path | str, text: str) -> None:
    with open_destination(str(path)) as put:
        put(text)


def test_without_a_file_it_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with open_destination(None) as put:
        put("report\n")
    assert capsys.readouterr().out == "report\n"


def test_a_new_file(tmp_path: Path) -> None:
    write(tmp_path / "new", "naïve 日本\n")
    assert (tmp_path / "new").read_bytes() == "naïve 日本\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_it_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "new", "report")
    assert capsys.readouterr() == ("", f"context-bench: wrote {tmp_path / 'new'}\n")
    with open_destination(str(tmp_path / "new"), quiet=True) as put:
        put("report")
    write("/dev/null", "report")
    with pytest.raises(ValueError, match="x"), open_destination(str(tmp_path / "other")):
        raise ValueError("x")
    assert capsys.readouterr() == ("", "")


def test_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "new", "a\ud800b")
    assert (tmp_path / "new").read_text() == "a?b"


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    with open_destination(str(target)) as put:
        assert target.read_text() == "old"
        put("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(3)])
def test_a_run_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "report"
    target.write_text("old")
    with pytest.raises(type(error)), open_destination(str(target)):
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
    with pytest.raises(OSError, match="disk of somebody else"), open_destination(str(tmp_path / "report")):
        raise OSError("disk of somebody else")


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


def test_a_run_that_is_killed_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    with open_destination(str(tmp_path / "report.json"), quiet=True) as write:
        assert list(tmp_path.iterdir()) == []  # whatever happens from here on
        write("{}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
