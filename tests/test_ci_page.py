"""docs/ci.md: its commands run, its numbers are right, and its workflow is what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from command import called
from context_bench.compare.conditions import parse_condition
from context_bench.stats import PairedSums, paired_difference, share_interval
from pages import ROOT, blocks

pytestmark = pytest.mark.long

yaml = pytest.importorskip("yaml")

CI = ROOT / "examples" / "ci"
WORKFLOW = yaml.safe_load((CI / "context-bench.yml").read_text())
STEPS = {step["name"]: step["run"] for step in WORKFLOW["jobs"]["gate"]["steps"] if "run" in step}

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
    shutil.copy(CI / "bench.toml", folder)
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
    shutil.copy(CI / "bench.toml", repository)
    (build,) = [block.text for block in SHELL if block.title]
    install, measure = STEPS["Install"], STEPS["Measure"]
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
    run(install, repository, folder / "fresh" / "bin", PIP_NO_DEPS="1", **offline)
    where = run("python -c 'import context_bench; print(context_bench.__file__)'", repository, folder / "fresh" / "bin")
    assert Path(where.strip()).is_relative_to(folder / "fresh")
    run(measure, repository, folder / "fresh" / "bin", **parts)
    assert (repository / "result.json").exists()


def test_how_many_examples_it_takes() -> None:
    needed = int(str(re.search(r'"score drops 0\.02" needs (\d+) examples', " ".join(TEXT.split()))[1]))  # type: ignore[index]
    lows = [paired_difference(PairedSums(n, 0.0, 0.0)).interval(0.9).low for n in (needed - 1, needed)]
    assert lows[0] <= -0.02 < lows[1]
    needed = int(str(re.search(r'"error_rate > 0\.01" needs (\d+) without', " ".join(TEXT.split()))[1]))  # type: ignore[index]
    highs = [share_interval(0, n).high for n in (needed - 1, needed)]
    assert highs[0] > 0.01 >= highs[1]


def test_every_condition_of_the_table_is_one() -> None:
    found = re.findall(r"^\| (`.+) \|.*\|$", TEXT, re.MULTILINE)
    conditions = [text for line in found for text in re.findall(r"`([^`]+)`", line) if " " in text]
    assert len(conditions) == 7
    assert [parse_condition(text).text for text in conditions] == conditions


NOTICE = "::notice title=context-bench::"
KEEPS = "def compress(example):\n    return example['context'].rstrip('.')\n"
LOSES = "def compress(example):\n    return example['context'][:4]\n"


class Repository:
    """A clean directory with the files of a repository, in which the workflow's own scripts are run."""

    def __init__(self, folder: Path, rows: int = 200) -> None:
        self.folder = folder
        texts = (
            f"According to the list in the office on the third floor, the code of {n} is v{n}." for n in range(rows)
        )
        lines = (json.dumps({"id": n, "context": text, "answer": f"v{n}"}) for n, text in enumerate(texts))
        (folder / "data.jsonl").write_text("".join(f"{line}\n" for line in lines))
        self.write(KEEPS)

    def write(self, code: str, name: str = "compress") -> None:
        """Write the compressor, and the file of the run that measures it."""
        (self.folder / "own.py").write_text(code)
        text = (CI / "bench.toml").read_text().replace('"minify"', f'"own.py:{name}"')
        (self.folder / "bench.toml").write_text(text)

    def step(self, name: str, **more: str) -> tuple[int, str]:
        """Run a step as GitHub does; return its exit code, and what its log and its annotations come from."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(self.folder), "GITHUB_ACTIONS": "true", "NEEDS_KEY": ""}
        done = subprocess.run(
            ["bash", "-e", "-c", STEPS[name]],
            cwd=self.folder,
            env=environment | {"OPENAI_API_KEY": "", "UNDECIDED": WORKFLOW["env"]["UNDECIDED"]} | more,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr

    def push(self) -> None:
        """Do what a push to main does."""
        assert self.step("Measure")[0] == 0
        assert self.step("Use the result as that of main")[0] == 0
        assert (self.folder / "main.json").exists()


def test_the_workflow_on_a_pull_request(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    code, said = repository.step("Measure", NEEDS_KEY="yes")
    assert (code, said) == (0, f"{NOTICE}nothing was measured: pull requests from forks get no key\n")
    assert repository.step("Compare with main") == (0, "")
    assert repository.step("Measure")[0] == 0
    code, said = repository.step("Compare with main")
    assert (code, said) == (0, f"{NOTICE}main has no result yet, so nothing was compared\n")
    repository.push()

    assert repository.step("Measure")[0] == 0
    code, said = repository.step("Compare with main")
    assert (code, "::error" in said, "::warning" in said) == (0, False, False), said
    comment = (tmp_path / "comment.md").read_text()
    assert comment.startswith("## context-bench\n")
    assert "### Gate passed" in comment
    assert (tmp_path / "gate.xml").exists()

    repository.write(LOSES)  # a regression
    assert repository.step("Measure")[0] == 0
    code, said = repository.step("Compare with main", UNDECIDED="warn")
    assert code == 1
    (annotation, *_) = [line for line in said.splitlines() if line.startswith("::error")]
    assert annotation.startswith(
        "::error title=context-bench::own.py:compress: Failed: the score (mean_score) dropped by "
    )
    assert "### Gate failed" in (tmp_path / "comment.md").read_text()

    repository.write(KEEPS.replace("compress", "renamed"), "renamed")  # a system that main has is gone
    assert repository.step("Measure")[0] == 0
    code, said = repository.step("Compare with main")
    assert code == 1
    assert "::error title=context-bench::own.py:compress: Failed: it is missing in" in said


def test_the_workflow_with_too_few_examples(tmp_path: Path) -> None:
    repository = Repository(tmp_path, rows=20)
    repository.push()
    assert repository.step("Measure")[0] == 0
    code, said = repository.step("Compare with main")
    assert code == 4
    assert "::warning title=context-bench::own.py:compress: Too few examples: the score (mean_score) " in said
    assert repository.step("Compare with main", UNDECIDED="warn")[0] == 0


def test_the_workflow_gives_forks_no_rights() -> None:
    """Secrets are named in one step alone, nothing of a pull request is put into a script, and the job ends in time."""
    text, job = (CI / "context-bench.yml").read_text(), WORKFLOW["jobs"]["gate"]
    assert text.count("secrets.") == 1
    assert "pull_request_target" not in text
    assert not any("${{" in script for script in STEPS.values())
    assert job["timeout-minutes"] <= 60
    (comment,) = [step for step in job["steps"] if step.get("name") == "Comment on the pull request"]
    assert "head.repo.full_name == github.repository" in comment["if"]
