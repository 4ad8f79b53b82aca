"""`context_bench.pytest`: a gate on quality in a user's own test suite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.pytest import assert_not_worse

DATA = [{"id": number, "context": f"Box {number}.", "question": "?", "answer": str(number)} for number in range(200)]


def right(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"]}


def also_right(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["answer"], "metadata": {"other": True}}


def wrong(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": "no idea" if example["id"] % 2 else example["answer"]}


def test_an_equal_system_passes_and_the_result_is_returned() -> None:
    result = assert_not_worse(also_right, right, DATA, margin=0.05)
    assert result.systems == ["right", "also_right"]
    assert assert_not_worse(right, wrong, DATA).systems == ["wrong", "right"]


def test_a_worse_system_fails_with_the_numbers() -> None:
    with pytest.raises(AssertionError, match=r"wrong is worse than right: score -0\.500, 95% interval -0\.\d+ to -0"):
        assert_not_worse(wrong, right, DATA, margin=0.05)


def test_too_few_examples_fail_unless_that_is_allowed() -> None:
    with pytest.raises(AssertionError, match=r"undecided against right.*at least \d+ examples if the difference stays"):
        assert_not_worse(also_right, right, DATA[:10])
    assert assert_not_worse(also_right, right, DATA[:10], allow_undecided=True).rows
    with pytest.raises(AssertionError, match="worse than"):
        assert_not_worse(wrong, right, DATA, allow_undecided=True)


def test_examples_that_could_not_have_shown_a_loss_fail_unless_that_is_accepted() -> None:
    early = [{**each, "context": f"{each['context']} {'Nothing of note. ' * 20}"} for each in DATA]
    with pytest.raises(AssertionError, match=r"ratio=0\.5 is no better than truncation \(head\) at its size"):
        assert_not_worse("truncate:ratio=0.5", "passthrough", early)
    assert assert_not_worse("truncate:ratio=0.5", "passthrough", early, accept_blind=True).rows


def test_what_cannot_be_compared() -> None:
    with pytest.raises(UsageError, match="the margin must be between 0 and 1"):
        assert_not_worse(also_right, right, DATA, margin=3)
    with pytest.raises(ValueError, match="one system with one baseline"):
        assert_not_worse("truncate:ratio=0.3|0.6", "passthrough", "needle:n=2,length=200")


def test_the_fixture_in_a_suite_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["context_bench.pytest"]\n')
    (tmp_path / "test_quality.py").write_text(
        "def test_bm25(assert_not_worse):\n"
        "    assert_not_worse('bm25:ratio=0.5', 'passthrough', 'needle:n=150,length=200', margin=0.05)\n"
        "def test_truncate(assert_not_worse):\n"
        "    assert_not_worse('truncate:ratio=0.1', 'passthrough', 'needle:n=60,length=200')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "AssertionError: truncate:ratio=0.1 is worse than passthrough" in done.stdout
