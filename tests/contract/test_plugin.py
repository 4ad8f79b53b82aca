"""A stranger's package, built and installed for real: its parts are listed, run from the command line, and checked."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import environment

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
PARTS = {
    "systems": "no-greetings",
    "datasets": "tickets",
    "evaluators": "politeness",
    "metrics": "worst",
    "reporters": "one-line",
}
MEMORY = "last-words"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the package."""
    source, target = tmp_path_factory.mktemp("source") / "plugin", tmp_path_factory.mktemp("site")
    shutil.copytree(PLUGIN, source)  # a build leaves files behind
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--no-deps", "--target", str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def _run(site: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    paths = ":".join([str(site), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment(PYTHONPATH=paths),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_each_part_has_fewer_than_20_lines() -> None:
    tree = ast.parse((PLUGIN / "src" / "context_bench_greetings" / "__init__.py").read_text(encoding="utf-8"))
    parts = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    assert len(parts) == 6
    assert all((part.end_lineno or 0) - part.lineno + 1 < 20 for part in parts)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]


@pytest.mark.parametrize("command", PARTS)
def test_a_part_is_listed(command: str, site: Path, tmp_path: Path) -> None:
    done = _run(site, "-m", "context_bench", command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for name in [PARTS[command], *([MEMORY] if command == "systems" else [])]:
        (line,) = [line for line in done.stdout.splitlines() if line.startswith(f"{name} ")]
        assert "cannot be loaded" not in line


def test_all_five_run_from_the_command_line(site: Path, tmp_path: Path) -> None:
    run = ["-m", "context_bench", "--system", "no-greetings", "--system", "passthrough", "--dataset", "tickets:n=4"]
    run += ["--evaluator", "politeness", "--metric", "worst:score_field=polite", "--quiet"]
    done = _run(site, *run, "--output", "one-line", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # "on fire" still stands in both contexts
    assert done.stdout.splitlines() == ["'no-greetings': 1.00", "'passthrough': 1.00"]
    done = _run(site, "-m", "context_bench", "runs", "export", "last", "--output", "json", cwd=tmp_path)
    summary = json.loads(done.stdout)["summary"]
    assert {name: values["worst"] for name, values in summary.items()} == {"no-greetings": 0.0, "passthrough": 1.0}
    done = _run(site, "-m", "context_bench", "runs", "show", "last", cwd=tmp_path)
    header, _, first, second = [line for line in done.stdout.splitlines() if line.startswith("|")][:4]
    place = [cell.strip() for cell in header.split("|")].index("worst")
    assert [line.split("|")[place].strip() for line in (first, second)] == ["0.0%", "100.0%"]


def test_its_memory_system_runs_from_the_command_line(site: Path, tmp_path: Path) -> None:
    turns = [{"id": "t1", "role": "user", "content": "Rex is a dog."}]
    question = {"question": "What is Rex?", "answer": "a dog"}
    (tmp_path / "talk.jsonl").write_text(json.dumps({"id": "c", "turns": turns, "questions": [question]}))
    run = ["-m", "context_bench", "memory", "--system", MEMORY, "--dataset", "talk.jsonl", "--output", "json"]
    done = _run(site, *run, "--no-bm25", "--budget", "500", "--no-store", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert list(result["summary"]) == ["last-words[budget=500]", "last-words[own query]"]
    assert [row["response"] for row in result["rows"]] == ["a dog", "Rex is a dog."]


def test_the_parts_pass_the_checks(site: Path, tmp_path: Path) -> None:
    done = _run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(PLUGIN / "test_parts.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
