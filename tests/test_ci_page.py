"""docs/ci.md: its commands run, its numbers are right, and its workflow is what it says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from command import called
from context_bench.stats import PairedSums, paired_difference, parse_condition, share_interval
from pages import ROOT, fences

PAGE = "docs/ci.md"
TEXT = (ROOT / PAGE).read_text()


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
    first, second = (shlex.split(code.replace("\\\n", " "))[1:] for code in fences(PAGE, "sh"))
    done = called(*first, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "gate.xml").exists()
    assert (folder / "gate.md").exists()
    done = called(*second, cwd=folder)
    assert done.returncode == 0, done.stderr


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
