"""The listings: everything that can be named, with what a user needs to name it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command import environment
from context_bench.cli import main
from context_bench.registry import registry

KINDS = {
    "datasets": ("dataset", "memory_dataset"),
    "systems": ("system", "memory_system"),
    "evaluators": ("evaluator",),
    "metrics": ("metric",),
    "reporters": ("reporter",),
}


def listing(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.parametrize("command", KINDS)
def test_every_name_is_listed(capsys: pytest.CaptureFixture[str], command: str) -> None:
    tables = [table.splitlines() for table in listing(capsys, command).split("\n\n")]
    assert [[line.split()[0] for line in table[1:]] for table in tables] == [*map(registry.list, KINDS[command])]
    assert [table[0].partition("  ")[0] for table in tables] == [kind.replace("_", " ") for kind in KINDS[command]]


@pytest.mark.parametrize("command", KINDS)
def test_every_line_says_what_it_is(capsys: pytest.CaptureFixture[str], command: str) -> None:
    for table in listing(capsys, command).split("\n\n"):
        head, *lines = table.splitlines()
        start = head.index("what")
        for line in lines:
            assert line[start:].strip(), line
            assert "cannot be loaded" not in line


def test_what_a_dataset_measures(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [line for line in listing(capsys, "datasets").splitlines() if line.startswith("needle ")]
    assert "contains" in line
    assert "synthetic" in line


def test_the_parameters_of_a_system(capsys: pytest.CaptureFixture[str]) -> None:
    lines = {line.split()[0]: line for line in listing(capsys, "systems").splitlines() if line}
    assert "ratio" in lines["truncate"]
    assert "keep=head" in lines["truncate"]
    assert "base_url" in lines["openai-proxy"]


def test_the_scores_of_an_evaluator(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [line for line in listing(capsys, "evaluators").splitlines() if line.startswith("answer-quality")]
    assert "f1, exact_match, recall, contains" in line


def test_what_an_import_registers_is_listed_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_registered", {kind: dict(own) for kind, own in registry._registered.items()})
    (tmp_path / "plugin.py").write_text(
        "from context_bench.registry import registry\n"
        "def load():\n    '''Rows of mine.'''\n    return []\n"
        "registry.register('dataset', 'zz-mine', load)\n"
    )
    out = listing(capsys, "datasets", "--import", str(tmp_path / "plugin.py"))
    (line,) = [line for line in out.splitlines() if line.startswith("zz-mine")]
    assert "Rows of mine." in line


@pytest.mark.parametrize("command", KINDS)
def test_mistakes(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert main([command, "--bogus"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "--bogus" in err


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([each, "--help"] for each in KINDS)])
def test_help_and_version(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "context-bench" in out
    assert err == ""


@pytest.mark.parametrize("arguments", [["--help"], ["datasets"], ["metrics"], ["systems", "--help"]])
def test_a_reader_that_goes_away_is_no_error(arguments: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "context_bench", *arguments],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0
