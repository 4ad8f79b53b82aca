"""A memory is cleared of keeping a secret only where its list, or its files, could have shown it."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate_memory
from context_bench.memory.datasets.synthetic_memory import make_conversation
from context_bench.memory.findings import list_findings
from context_bench.output.memory import list_outcomes
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from toy_memories import Empty, Filed, Remembering, Secretive, Turn

TALK: Any = make_conversation(4_000, 0, 0)


def run(*systems: Any) -> EvalResult:
    return evaluate_memory(list(systems), [TALK], budgets=[2000], answers=["reader"], quiet=0.1, progress=False)


def list_secrets() -> list[str]:
    """The passwords of the talk, by their spelling."""
    return [word.strip(".,") for turn in TALK["turns"] for word in turn["content"].split() if word.startswith("sk-")]


def test_each_user_of_a_memory_that_files_by_user_is_listed() -> None:
    memory = Filed()
    values = run(memory).summary["filed[budget=2000]"]
    kept = [turn["content"] for turns in memory._by_user.values() for turn in turns]
    assert len(list_secrets()) == 2
    assert all(any(secret in text for text in kept) for secret in list_secrets())
    assert values["store_secret"] == values["store_forget"] == 0.0
    assert values["memories"] == len(kept) == len(TALK["turns"])


@pytest.mark.parametrize(
    ("how", "why"), [("raise", "NotImplementedError"), ("none", "a list"), ("nothing", "no stored fact")]
)
def test_what_cannot_be_listed_is_not_measured(how: str, why: str) -> None:
    result = run(Secretive(how))
    values, notes = result.summary["secretive[budget=2000]"], result.notes["secretive[budget=2000]"]
    assert {row.error for row in result.rows} == {None}
    assert math.isnan(values["store_secret"])
    assert math.isnan(values["store_forget"])
    assert why in notes["store_secret"]
    assert math.isnan(values["memories"]) is (how != "nothing")
    shown = TableReporter(wide=True).render(result)
    assert "| secretive             | not measured | not measured |" in shown
    assert why in shown


def test_a_list_of_nothing_beside_what_is_found_is_a_contradiction() -> None:
    result = run(Secretive())
    (said,) = [each for each in list_findings(result) if "contradict" in each]
    assert said.startswith("secretive contradicts itself: memories() lists nothing, yet ")
    assert f"recall {result.summary['secretive[budget=2000]']['retrieval_recall']:.3f}" in said


class Packed(Remembering):
    """Keeps what it was told in a file that is packed."""

    name = "packed"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.storage = folder

    def ingest(self, turns: list[Turn]) -> None:
        super().ingest(turns)
        text = "\n".join(turn["content"] for turn in self.turns)
        (self.storage / "memory.z").write_bytes(zlib.compress(text.encode()))


def test_files_that_hide_every_fact_clear_nobody(tmp_path: Path) -> None:
    result = run(Packed(tmp_path))
    kept = zlib.decompress((tmp_path / "memory.z").read_bytes()).decode()
    assert all(secret in kept for secret in list_secrets())
    assert math.isnan(result.summary["packed[budget=2000]"]["store_secret"])


def test_files_beside_a_list_of_nothing_are_named(tmp_path: Path) -> None:
    first, *_ = list_outcomes(run(Empty(str(tmp_path)), Remembering()))
    assert first == (
        "empty stored nothing: it lists no memories and retrieved nothing for any question, yet its files hold 4 kB."
    )
