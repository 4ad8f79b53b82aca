"""The README: it is short, its commands and snippets run, and the tutorial shows what the demo prints."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from command import shell
from context_bench.cli import main
from context_bench.evaluators import AnswerQuality
from pages import ROOT, commands, fences
from servers import Server, completion

TIMES = {"latency p50", "p95"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place with the files that the README speaks of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as for whoever starts Python there
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "my_compressor.py").write_text(fences("README.md", "python")[0])
    rows = [{"id": n, "context": f"The value of {n} is v{n}.", "question": "?", "answer": f"v{n}"} for n in range(3)]
    (tmp_path / "my_data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


SHOWN = [command for command in commands("README.md") if command != "context-bench demo"]
STARTED = [command for command in SHOWN if "--vendor" in command]


def test_it_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 1200


def test_there_is_something_to_run() -> None:
    assert len(SHOWN) >= 2
    assert any("--proxy" in command for command in SHOWN)


@pytest.mark.vendors
@pytest.mark.parametrize("command", STARTED)
def test_every_command_with_a_real_proxy_runs(
    folder: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONTEXT_BENCH_VENDORS", str(ROOT / ".vendors"))
    if not (ROOT / ".vendors").is_dir():
        pytest.skip("make vendors installs the real proxies")
    assert main([*shlex.split(command)[1:], "-n", "2"]) == 0
    out = capsys.readouterr().out
    assert "saved" in out
    assert "tokens saved, its own claim" in out


@pytest.mark.parametrize("command", [command for command in SHOWN if command not in STARTED])
def test_every_command_runs(folder: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Server(completion("7")) as server:
        words = shlex.split(command.replace("http://localhost:7878", server.url))[1:]
        code = main([*words, "-n", "2"] if "--dataset" in words else words)
    out, err = capsys.readouterr()
    assert code == 0, err
    assert out.strip()
    assert ("--proxy" in words) == bool(server.chats)


def test_the_python_snippets_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {}
    for code in fences("README.md", "python"):
        exec(compile(code, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    summary = namespace["result"].summary["keep_start"]
    assert printed == f"{summary}\n"
    assert summary["num_examples"] == 200
    assert summary["num_errors"] == 0
    assert 0.3 < summary["compression_ratio"] < 1  # 2,000 letters of 4,000 tokens
    assert set(AnswerQuality.score_fields) <= namespace["result"].rows[0].scores.keys()


# The table of the demo, which the tutorial shows


def told(text: str) -> list[list[str]]:
    """The lines of tables as cells, without the columns of times, and other lines as they are."""
    lines: list[list[str]] = []
    kept: list[int] = []
    for line in text.strip().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else [line]
        if not lines or lines[-1] == [""]:
            kept = [place for place, cell in enumerate(cells) if cell not in TIMES]
        lines.append([re.sub(r"^-+", "-", cells[place]) for place in kept] if line.startswith("|") else [line])
    return lines


def test_times_are_all_that_may_differ() -> None:
    one = "| system | n | p95 |\n| --- | --: | --: |\n| a | 1 | 3 µs |\n\nscore = x."
    two = "| system |  n |  p95 |\n| ------ | --: | ---: |\n| a      |  1 | 2.1 s |\n\nscore = x."
    assert told(one) == told(two)
    assert told(one) != told(two.replace("| a ", "| b "))
    assert told(one) != told(two.replace("|  1 |", "|  2 |"))
    assert told(one) != told(two.replace("= x", "= y"))


@pytest.mark.long
def test_the_table_is_what_the_demo_prints(tmp_path: Path) -> None:
    page = (ROOT / "docs/tutorial/first-result.md").read_text(encoding="utf-8")
    shown = page.partition("<!-- demo:start -->")[2].partition("<!-- demo:end -->")[0]
    done = shell("demo", cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert told(shown) == told(done.stdout)
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    saved = re.search(r"bm25:ratio=0\.3 is equivalent to passthrough, with (\S+) of the tokens saved", shown)
    (truncated,) = re.findall(r"^\| truncate:ratio=0\.5 .*? (\S+%) \|.*worse \|$", shown, re.MULTILINE)
    assert saved is not None
    assert f"`bm25:ratio=0.3` saves {saved[1]} of the tokens and is equivalent to the whole context" in readme
    assert f"`truncate:ratio=0.5` keeps the evidence in only {truncated} of the examples" in readme
    assert "latency p50" in shown
