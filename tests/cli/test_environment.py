"""Environment variables set the options of a command: flag over run file over environment over default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import evaluate
from context_bench.cli.commands import run_parser
from context_bench.cli.flags import read_values
from context_bench.config import DEFAULT_MARGIN, RunOptions
from context_bench.errors import UsageError
from context_bench.memory.options import MemoryOptions
from context_bench.store import Store

RUN = ("--system", "passthrough", "--dataset", "needle:length=400,n=2", "--no-store", "--quiet", "--output", "json")


def run(folder: Path, *arguments: str) -> dict[str, Any]:
    done = called(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    config: dict[str, Any] = json.loads(done.stdout)["config"]
    return config


def read(*flags: str) -> RunOptions:
    return RunOptions(**read_values(run_parser(), RunOptions, flags).given)


def test_flag_over_run_file_over_environment_over_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench.toml").write_text("margin = 0.03\n", encoding="utf-8")
    file = ("run", "bench.toml", *RUN)
    assert run(tmp_path, *RUN)["margin"] == DEFAULT_MARGIN
    monkeypatch.setenv("CONTEXT_BENCH_MARGIN", "0.04")
    assert run(tmp_path, *RUN)["margin"] == 0.04
    assert run(tmp_path, *file)["margin"] == 0.03
    assert run(tmp_path, *file, "--margin", "0.01")["margin"] == 0.01
    assert run(tmp_path, *RUN, "--margin", "0.01")["margin"] == 0.01


def test_the_record_says_where_values_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench.toml").write_text('repeats = 2\nsystem = ["minify"]\n', encoding="utf-8")
    monkeypatch.setenv("CONTEXT_BENCH_THRESHOLD", "0.5")
    monkeypatch.setenv("CONTEXT_BENCH_REPEATS", "3")
    config = run(tmp_path, "run", "bench.toml", *RUN)
    assert config["origins"] == {"repeats": "run file", "system": "run file and flag", "threshold": "environment"}
    assert config["command"][:2] == ["--threshold=0.5", "--repeats=2"]
    monkeypatch.delenv("CONTEXT_BENCH_THRESHOLD")
    monkeypatch.delenv("CONTEXT_BENCH_REPEATS")
    assert "origins" not in run(tmp_path, *RUN)


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("MAX_WORKERS", "many", "CONTEXT_BENCH_MAX_WORKERS must be an integer of at least 1 (got 'many')"),
        ("SAMPLE", "best", "CONTEXT_BENCH_SAMPLE must be first, random or stratified (got 'best')"),
        ("AA", "perhaps", "CONTEXT_BENCH_AA must be 1 or 0, true or false (got 'perhaps')"),
        ("REPORT", "page.txt", "CONTEXT_BENCH_REPORT must end in .html, because it is an HTML page"),
        ("FAIL_IF", "nonsense", "CONTEXT_BENCH_FAIL_IF: "),
    ],
)
def test_a_bad_value_is_one_sentence_with_the_variable(
    variable: str, value: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"CONTEXT_BENCH_{variable}", value)
    done = called(*RUN, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"context-bench: {sentence}")
    assert done.stderr.count("\n") == 1


def test_a_value_that_a_flag_replaces_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_MAX_WORKERS", "many")
    assert read("--max-workers", "2").max_workers == 2
    with pytest.raises(UsageError, match="CONTEXT_BENCH_MAX_WORKERS"):
        read()


@pytest.mark.parametrize(("text", "value"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("no", False)])
def test_switches(text: str, value: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_AA", text)
    monkeypatch.setenv("CONTEXT_BENCH_NO_ROWS", text)
    assert (read().aa, read().keep_rows) == (value, not value)


def test_a_run_file_takes_a_switch_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_KEEP_REASONING", "1")
    (tmp_path / "bench.toml").write_text("keep-reasoning = false\n", encoding="utf-8")
    assert run(tmp_path, *RUN)["keep_reasoning"] is True
    assert run(tmp_path, "run", "bench.toml", *RUN)["keep_reasoning"] is False


def test_a_repeatable_option_takes_a_value_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_SYSTEM", "minify\nbm25:ratio=0.3\n")
    assert read().system == ["minify", "bm25:ratio=0.3"]
    assert read("--system", "oracle").system == ["oracle"]


def test_an_empty_variable_sets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_MAX_WORKERS", "")
    assert read().max_workers is None


def test_the_values_of_headers_are_in_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_HEADER", "X-Token: hush-hush")
    done = called(*RUN, cwd=tmp_path)
    assert "X-Token:***" in done.stdout
    assert "hush" not in done.stdout + done.stderr


def test_python_reads_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_MARGIN", "0.5")
    monkeypatch.setenv("CONTEXT_BENCH_REPEATS", "3")
    settings = evaluate(lambda example: example, [{"id": 1, "context": "a"}], progress=False).settings
    assert (settings.margin, settings.repeats) == (DEFAULT_MARGIN, 1)


def test_memory_reads_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_BUDGET", "300")
    monkeypatch.setenv("CONTEXT_BENCH_MARGIN", "0.1")
    flags = ("--system", "bm25", "--dataset", "synthetic-memory:length=4000", "-n", "1", "--answers", "reader")
    config = run(tmp_path, "memory", *flags, "--no-store", "--quiet", "--output", "json")
    assert (config["memory"]["budgets"], config["margin"]) == ([300], 0.1)
    assert config["origins"] == {"budget": "environment", "margin": "environment"}


def test_every_command_looks_for_the_store_in_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_CACHE_DIR", "elsewhere")
    called("--system", "passthrough", "--dataset", "needle:length=400,n=1", "--quiet", cwd=tmp_path)
    with Store(tmp_path / "elsewhere", readonly=True) as store:
        (info,) = store.runs()
    assert info.id in called("runs", cwd=tmp_path).stdout


def test_no_two_options_have_one_variable() -> None:
    for options in (RunOptions, MemoryOptions):
        names = [each.variable for each in options.declared().values() if each.flags]
        assert len(names) == len(set(names))
        assert not {"CONTEXT_BENCH_MODELS", "CONTEXT_BENCH_VENDORS"} & set(names)
