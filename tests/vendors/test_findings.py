"""Run the findings of docs/vendor-findings.md again, with the versions given there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from context_bench import evaluate
from context_bench.tap.vendors import recipe
from function_lists import load_functions

pytestmark = pytest.mark.vendors

ROOT = Path(__file__).parents[2]
FINDING = re.compile(r"## (kompact|headroom)[^\n]*\n\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)


def _find_python(name: str) -> tuple[Path, dict[str, str]]:
    """Find the Python of a vendor's environment, and the variables of its recipe."""
    python = ROOT / ".vendors" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed: make vendors")
    return python, {key: value for key, value in recipe(name).env.items() if "{" not in value}


def _list_findings() -> list[tuple[str, str, str]]:
    return FINDING.findall((ROOT / "docs" / "vendor-findings.md").read_text(encoding="utf-8"))


def test_each_finding_is_a_program_of_at_most_ten_lines() -> None:
    programs = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "vendor-findings.md").read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(programs) >= 7
    assert all(len(program.splitlines()) <= 10 for program in programs)
    assert len(_list_findings()) >= 5


@pytest.mark.parametrize(("name", "program", "printed"), _list_findings())
def test_a_finding_can_be_reproduced(name: str, program: str, printed: str) -> None:
    python, variables = _find_python(name)
    done = subprocess.run(
        [python, "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == printed, done.stderr


def test_kompact_by_the_function_to_call_and_by_the_first_one() -> None:
    """By the gold function it keeps 78.1% of 1,311 records; by the first of the list, truncation is as good."""
    python, _ = _find_python("kompact")
    program = shlex.join([str(python), str(Path(__file__).with_name("kompact_program.py"))])
    records = list(load_functions())
    golds = [{**example, "answers": [names]} for example, names in records if names]
    result = evaluate(["passthrough", f"command:name=kompact,{program}"], golds, progress=False)
    assert len(golds) == 1311
    assert result.summary["kompact"]["mean_score"] == pytest.approx(0.781, abs=0.005)
    assert result.comparison is not None
    assert result.comparison.sensitivity["kompact"].word == "shown"
    first = evaluate(
        ["passthrough", f"command:name=kompact,{program}"], [example for example, _ in records], progress=False
    )
    assert first.comparison is not None
    assert first.comparison.sensitivity["kompact"].word == "none"
