"""The distribution has a name of its own, and another one with the same import name is named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest

from context_bench import __version__
from context_bench.errors import find_namesake
from pages import ROOT

SENTENCE = (
    "another project, context-bench 0.1.0, is installed here under the same import name context_bench: "
    "run pip uninstall context-bench, then install ctxbench again"
)


def test_the_names() -> None:
    installed = distribution("ctxbench")
    assert installed.version == __version__
    (command,) = [each for each in entry_points(group="console_scripts") if each.name == "context-bench"]
    assert command.value == "context_bench.cli:main"
    extras = set(installed.metadata.get_all("Provides-Extra") or ())
    kinds = {"dataframe", "datasets", "ifeval", "local", "math", "memory", "parquet", "plots", "sign", "tap"}
    assert extras == kinds | {"all", "langchain", "ray"}
    every = {line.partition(";")[0].strip() for line in installed.requires or () if line.endswith("extra == 'all'")}
    assert len(every) >= len(kinds)


OLD = re.compile(r"pip3? install [^`\n]*\bcontext[-_]bench\b|context[-_]bench\\?\[[a-z]")
"""An installation of the other project: by its name, or by its name with an extra."""

SEARCHED = ("src", "docs", "tests", "tools", "examples", "benchmarks", ".ci")


def _texts() -> list[Path]:
    files = [path for folder in SEARCHED for path in (ROOT / folder).rglob("*") if path.is_file()]
    files += [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    return [path for path in files if path.suffix in ("", ".md", ".py", ".toml", ".txt", ".sh")]


def test_nothing_tells_to_install_the_other_project() -> None:
    texts = [path for path in _texts() if path != Path(__file__)]
    assert len(texts) > 300
    assert {"Makefile", "README.md", "pyproject.toml", "run"} <= {path.name for path in texts}
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in texts
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        if OLD.search(line)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "line", ["pip install context-bench", "pip install 'context-bench[tap]'", "context_bench[all]"]
)
def test_the_old_name_would_be_found(line: str) -> None:
    assert OLD.search(line)
    assert not OLD.search(line.replace("context-bench", "ctxbench").replace("context_bench", "ctxbench"))


# The other project in the same environment


@pytest.fixture
def beside(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that also finds the other distribution."""
    info = tmp_path / "site" / "context_bench-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: context-bench\nVersion: 0.1.0\n")
    return {**os.environ, "PYTHONPATH": str(tmp_path / "site")}


def run(environment: dict[str, str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=cwd)


def test_it_is_not_here() -> None:
    assert find_namesake() == ""


def test_the_version_names_it(beside: dict[str, str], tmp_path: Path) -> None:
    done = run(beside, "-m", "context_bench", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"context-bench {__version__}\n")
    assert done.stderr == f"context-bench: {SENTENCE}\n"
    plain = run(dict(os.environ), "-m", "context_bench", "--version", cwd=tmp_path)
    assert (plain.returncode, plain.stdout, plain.stderr) == (0, f"context-bench {__version__}\n", "")


def test_a_run_names_it_once(beside: dict[str, str], tmp_path: Path) -> None:
    flags = ("--system", "passthrough", "--dataset", "needle:length=200,n=2", "--no-store")
    done = run(beside, "-m", "context_bench", *flags, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == f"context-bench: {SENTENCE}\n"


def test_a_missing_extra_names_it(beside: dict[str, str], tmp_path: Path) -> None:
    code = "from context_bench import MissingExtra; print(MissingExtra('it', 'tap'))"
    told = "it needs an optional dependency: pip install 'ctxbench[tap]' (in a checkout: pip install '.[tap]')"
    assert run(beside, "-c", code, cwd=tmp_path).stdout == f"{told}; {SENTENCE}\n"
    assert run(dict(os.environ), "-c", code, cwd=tmp_path).stdout == f"{told}\n"


def test_help_does_not_look_for_it(tmp_path: Path) -> None:
    code = (
        "import sys; from context_bench.cli import main; main(['--help']); "
        "print('importlib.metadata' in sys.modules, file=sys.stderr)"
    )
    assert run(dict(os.environ), "-c", code, cwd=tmp_path).stderr == "False\n"
