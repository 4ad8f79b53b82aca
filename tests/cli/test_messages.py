"""What is told on stderr: warnings once, requests when asked for, and no line wider than the terminal."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path

import pytest

from command import shell
from context_bench.cli.messages import say, show_messages
from terminal import on_terminal


def test_a_warning_is_one_line_and_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with show_messages():
        for _ in range(2):
            warnings.warn("the first\nof two \x1b[31mlines", stacklevel=1)
        warnings.warn("another", stacklevel=1)
        exec("import warnings; warnings.warn('another')")
    assert capsys.readouterr().err == "context-bench: the first of two [31mlines\ncontext-bench: another\n"


def test_quiet_tells_none(capsys: pytest.CaptureFixture[str]) -> None:
    with show_messages(quiet=True):
        warnings.warn("x", stacklevel=1)
    assert capsys.readouterr().err == ""


def test_warnings_are_as_before_afterwards() -> None:
    before = (warnings.showwarning, list(warnings.filters))
    with show_messages():
        pass
    assert (warnings.showwarning, list(warnings.filters)) == before


def test_the_wire_is_shown_when_it_is_asked_for_and_only_then(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("context_bench.http.endpoint")
    with show_messages(verbose=True):
        logger.debug("> POST")
    with show_messages():
        logger.debug("> POST again")
    assert capsys.readouterr().err == "> POST\n"
    assert logging.getLogger("context_bench").handlers == []


def test_stderr_is_looked_up_when_it_is_written_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "err").open("w+") as other, show_messages():
        monkeypatch.setattr(sys, "stderr", other)
        warnings.warn("elsewhere", stacklevel=1)
        other.seek(0)
        assert other.read() == "context-bench: elsewhere\n"


# The width of a terminal

DEAD = ("--proxy", "http://127.0.0.1:9", "--system", "minify", "--dataset", "needle:length=400,n=2", "--no-store")


def test_sentences_are_wrapped_at_the_width_of_the_terminal(tmp_path: Path) -> None:
    for columns in (80, 100):
        shown = on_terminal(*DEAD, cwd=tmp_path, columns=columns, code=3)
        start = shown.index("context-bench: 127.0.0.1:9 was stopped")
        lines = shown[start:].split("\n\n")[0].splitlines()
        sentence = [lines[0], *(line for line in lines[1:4] if line.startswith("  "))]
        assert len(sentence) > 1
        assert max(map(len, sentence)) <= columns
        assert max(map(len, sentence)) > columns - 30  # no narrower than it must be


def test_a_wrong_flag_is_wrapped_too(tmp_path: Path) -> None:
    shown = on_terminal("--no-such-flag-" + "x" * 40, "--nor-this-one", cwd=tmp_path, code=2)
    assert max(map(len, shown.splitlines())) <= 80
    assert "(see context-bench --help)" in " ".join(shown.split())


def test_without_a_terminal_a_sentence_stays_on_one_line(tmp_path: Path) -> None:
    done = shell(*DEAD, cwd=tmp_path)
    (line,) = [line for line in done.stderr.splitlines() if "was stopped" in line]
    assert len(line) > 80


def test_a_command_to_copy_is_never_wrapped(tmp_path: Path) -> None:
    from terminal import bench_on_terminal

    (tmp_path / "slow.py").write_text(
        "import time\ndef slow(example):\n    time.sleep(0.2)\n    return {'context': example['context'][:50]}\n"
    )
    flags = ["--system", "slow.py:slow", "--dataset", "needle:length=400,n=400", "--cache-tag", "x" * 60]
    terminal = bench_on_terminal(*flags, cwd=tmp_path)
    terminal.wait_for("2/400")
    terminal.send("\x03")
    assert terminal.finish() == 130
    line = f"  context-bench {' '.join(flags)} --resume"
    assert line in terminal.shown.replace("\r\n", "\n").split("\n")


def test_a_long_word_is_not_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    url = f"http://localhost/{'path-' * 10}"
    say(f"nobody answers at {url} so far")
    assert url in capsys.readouterr().err
