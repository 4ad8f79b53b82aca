"""The help: one screen for most people, and every flag for those who ask."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from command import called
from context_bench.cli.commands import COMMANDS, run_parser
from terminal import on_terminal


def test_it_fits_one_screen(tmp_path: Path) -> None:
    lines = on_terminal("--help", cwd=tmp_path).rstrip("\n").split("\n")
    assert len(lines) <= 23  # the prompt takes one more of 24
    assert max(map(len, lines)) <= 80


def test_it_says_what_it_is_with_three_examples_the_commands_and_ten_flags(tmp_path: Path) -> None:
    text = called("--help", cwd=tmp_path).stdout
    assert text.startswith("Benchmark any system that changes what a language model reads.\n")
    assert len(re.findall(r"^  context-bench ", text, re.MULTILINE)) == 3
    flags = re.findall(r"^  (-[-\w]+)", text, re.MULTILINE)
    assert len(flags) == 10
    assert set(flags) <= set(run_parser()._option_string_actions)
    before_flags = text.partition("The flags")[0]
    assert {name for name in COMMANDS if not re.search(rf"[\s,]{name}[,\n]", before_flags)} == set()


def test_its_examples_work(tmp_path: Path) -> None:
    examples = re.findall(r"^  (context-bench --.*)$", called("--help", cwd=tmp_path).stdout, re.MULTILINE)
    assert len(examples) == 2
    for example in examples:
        done = called(*shlex.split(example)[1:], "--dry-run", "--no-store", cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_all_flags_are_there_by_group(tmp_path: Path) -> None:
    text = called("--help-all", cwd=tmp_path).stdout
    assert {name for name in run_parser().flags if f"--{name}" not in text} == set()
    for group in ("what is measured:", "what is sent:", "limits:", "what is kept:", "what comes out:"):
        assert f"\n{group}\n" in text
    assert "exit codes:" in text
    assert len(text.splitlines()) > 100


def test_a_flag_that_is_added_to_a_group_is_in_the_long_help() -> None:
    parser = run_parser()
    parser.add_argument_group("new things").add_argument("--brand-new", action="store_true", help="something new")
    assert "--brand-new" in parser.format_all()
    assert "new things:" in parser.format_all()
    assert "--brand-new" not in parser.format_help()


@pytest.mark.parametrize("key", ["help", "help-all", "version"])
def test_a_run_file_cannot_ask_for_help(tmp_path: Path, key: str) -> None:
    (tmp_path / "bench.toml").write_text(f"{key} = true\n")
    done = called("run", "bench.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert f"'{key}'" in done.stderr


def test_nothing_at_all_shows_three_commands_to_try_and_is_wrong_usage(tmp_path: Path) -> None:
    done = called(cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(re.findall(r"^  context-bench ", done.stderr, re.MULTILINE)) == 3
    assert done.stderr.endswith("context-bench --help shows the commands and the common flags.\n")
    assert max(map(len, done.stderr.splitlines())) <= 80


def test_an_empty_run_file_is_told_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    done = called("run", "empty.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "no system to measure" in done.stderr


EVERY_HELP = [["--help-all"], *([name, "--help"] for name in COMMANDS)]
EVERY_HELP += [["datasets", each, "--help"] for each in ("show", "fetch", "import")]
EVERY_HELP += [["runs", each, "--help"] for each in ("list", "show", "export", "requests", "rm")]


@pytest.mark.parametrize("words", EVERY_HELP, ids=" ".join)
def test_every_help_fits_80_columns_and_breaks_no_flag(
    tmp_path: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = called(*words, cwd=tmp_path).stdout
    assert max(map(len, text.splitlines())) <= 80
    assert not re.search(r"-\w+-$", text, re.MULTILINE)
    assert not re.search(r"\bis no\b|\bare no\b|\bnobody\b", text)


def test_the_word_help_is_the_flag(tmp_path: Path) -> None:
    assert called("help", cwd=tmp_path).stdout == called("--help", cwd=tmp_path).stdout
    assert called("help", "compare", cwd=tmp_path).stdout == called("compare", "--help", cwd=tmp_path).stdout
