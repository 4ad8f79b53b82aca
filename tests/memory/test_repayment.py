"""After how many questions a memory has paid for its writing, worked out by hand from the rows."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench import Scripted, evaluate_memory
from context_bench.memory.repayment import find_repayments
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from toy_memories import Forgetful, Remembering, Writing, make_conversations


def run(system: Any, **options: Any) -> EvalResult:
    given = {"answerer": Scripted.from_text("text:noted"), "budgets": [30], "answers": ["reader"], "quiet": 0.05}
    return evaluate_memory(
        ["naive", system], make_conversations(4, rooms=30), **{**given, "progress": False, "margin": 0.9, **options}
    )


def test_the_break_even_of_a_system_that_is_not_worse() -> None:
    result = run(Writing)
    name = "writing[budget=30]"
    assert result.comparison is not None
    assert {each.name: each.word for each in result.comparison.verdicts}[name] in ("equivalent", "not worse", "better")
    rows = [row for row in result.rows if row.system == name]
    written = 0
    for number in range(4):
        spent = next(row for row in rows if row.metadata["group"] == f"c{number}").metadata["memory"]["ingest"]["spent"]
        written += spent["prompt_tokens"] + spent["completion_tokens"] + spent["embed_tokens"]
    asked = sum(row.metadata["memory"]["query"]["spent"]["embed_tokens"] for row in rows) / len(rows)
    read = sum((row.upstream_tokens or 0) + row.metadata["response_tokens"] for row in rows) / len(rows)
    full = [row for row in result.rows if row.system == "naive"]
    history = sum((row.upstream_tokens or 0) + row.metadata["response_tokens"] for row in full) / len(full)
    cost = asked + read
    found = find_repayments(result)[name]
    assert found.cold == pytest.approx(written / 4 / (1.25 * history - cost))
    saved = 0.1 * history - cost
    assert found.warm == pytest.approx(written / 4 / saved) if saved > 0 else math.isinf(found.warm)


def test_nothing_is_claimed_for_one_that_is_worse_or_undecided() -> None:
    result = run(Forgetful, margin=0.02)
    assert find_repayments(result)["forgetful[budget=30]"].reason.endswith("not claimed")
    assert "not claimed" in TableReporter().render(result)


def test_what_was_not_counted_is_not_repaid() -> None:
    assert find_repayments(run(Remembering()))["remembering[budget=30]"].reason == "not measured"
