"""docs/ci.md: its commands run, its numbers are right, and its workflow is what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from command import called
from context_bench.compare.conditions import parse_condition
from context_bench.stats import PairedSums, paired_difference, share_interval
from pages import ROOT, blocks, fences

yaml = pytest.importorskip("yaml")

PAGE = "docs/ci.md"
TEXT = (ROOT / PAGE).read_text()
SHELL = [block for block in blocks(PAGE) if block.language == "sh"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"id": n, "context": f"The value  of {n}  is v{n}.{' ' * 200}", "question": "?", "answer": f"v{n}"}
        for n in range(400)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_its_commands_hold(folder: Path) -> None:
    (folder / "bench.toml").write_text(fences(PAGE, "toml")[0])
    done = called("run", "bench.toml", "--quiet", "--out", "result.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "main.json").write_text((folder / "result.json").read_text())
    first, second = (shlex.split(block.text.replace("\\\n", " "))[1:] for block in SHELL if not block.title)
    done = called(*first, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "gate.xml").exists()
    assert (folder / "gate.md").exists()
    done = called(*second, cwd=folder)
    assert done.returncode == 0, done.stderr


def test_its_install_step_works_on_a_fresh_machine(folder: Path) -> None:
    """Run the page's own lines in an empty environment; what is at hand here stands in for the package index."""
    home, repository = folder / "context-bench", folder / "my-repository"
    home.symlink_to(ROOT)
    repository.mkdir()
    (folder / "data.jsonl").rename(repository / "data.jsonl")
    (repository / "bench.toml").write_text(fences(PAGE, "toml")[0])
    (build,) = [block.text for block in SHELL if block.title]
    (workflow,) = (yaml.safe_load(text) for text in fences(PAGE, "yaml"))
    steps = [step["run"] for step in workflow["jobs"]["gate"]["steps"] if "run" in step]
    venv.create(folder / "fresh", with_pip=True)
    # pip reads 0 as "no isolation": the build then needs no download either
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    parts = {"PYTHONPATH": sysconfig.get_path("purelib")}

    def run(line: str, cwd: Path, path: Path, **more: str) -> str:
        environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}", **more}
        done = subprocess.run(["bash", "-e", "-c", line], cwd=cwd, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(build.replace("../my-repository", str(repository)), home, Path(sys.executable).parent, **offline)
    run(steps[0], repository, folder / "fresh" / "bin", PIP_NO_DEPS="1", **offline)
    where = run("python -c 'import context_bench; print(context_bench.__file__)'", repository, folder / "fresh" / "bin")
    assert Path(where.strip()).is_relative_to(folder / "fresh")
    run(steps[1], repository, folder / "fresh" / "bin", **parts)
    assert (repository / "gate.xml").exists()


def test_how_many_examples_it_takes() -> None:
    needed = int(str(re.search(r'"score drops 0\.02" needs (\d+) examples', TEXT)[1]))  # type: ignore[index]
    lows = [paired_difference(PairedSums(n, 0.0, 0.0)).interval(0.9).low for n in (needed - 1, needed)]
    assert lows[0] <= -0.02 < lows[1]
    needed = int(str(re.search(r'"error_rate > 0\.01" needs (\d+) without', TEXT)[1]))  # type: ignore[index]
    highs = [share_interval(0, n).high for n in (needed - 1, needed)]
    assert highs[0] > 0.01 >= highs[1]


def test_every_condition_of_the_table_is_one() -> None:
    found = re.findall(r"^\| (`.+) \|.*\|$", TEXT, re.MULTILINE)
    conditions = [text for line in found for text in re.findall(r"`([^`]+)`", line) if " " in text]
    assert len(conditions) == 6
    assert [parse_condition(text).text for text in conditions] == conditions
