"""What is found out around the writing of a conversation, against what the toys note of themselves."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench import evaluate_memory
from context_bench.memory.findings import list_findings
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from toy_memories import (
    Claiming,
    Clinging,
    Delayed,
    Dropping,
    Empty,
    Remembering,
    Rewording,
    Separate,
    make_conversations,
)


def run(*systems: Any, **options: Any) -> EvalResult:
    given = {"budgets": [500], "answers": ["reader"], "quiet": 0.1, "progress": False, **options}
    return evaluate_memory(list(systems), make_conversations(2), **given)


def test_searchable_is_measured_by_asking_until_it_is_found() -> None:
    memory = Delayed(0.8)
    result = run(memory, quiet=3.0)
    measured = [
        row.metadata["memory"]["ingest"]["searchable_seconds"]
        for row in result.rows
        if str(row.example_id).endswith("q0")
    ]
    assert len(memory.took) == 2
    for value, took in zip(measured, memory.took, strict=True):
        assert took <= value <= 1.25 * took + 0.3  # the pause before the last time of asking, and a busy machine
    assert result.summary["delayed[budget=500]"]["searchable_seconds"] == pytest.approx(sum(measured) / 2)
    assert {row.scores["retrieval_recall"] for row in result.rows} == {1.0}  # nothing was asked too early
    assert run(Remembering()).summary["remembering[budget=500]"]["searchable_seconds"] < 0.3


def test_lost_turns_are_named() -> None:
    result = run(Dropping(), Remembering())
    said = [each for each in list_findings(result) if "lost turns" in each]
    # All six turns of both conversations are asked for; t0, t2 and t4 were never kept.
    assert said == ["dropping lost turns: 6 of 12 were not found when searched by their own text."]
    assert math.isnan(result.summary["dropping[budget=500]"]["searchable_seconds"])
    assert "not found" in result.notes["dropping[budget=500]"]["searchable_seconds"]


@pytest.mark.parametrize("system", [Rewording(), Rewording(names=False), Separate(), Empty()])
def test_nobody_is_said_to_lose_turns_that_it_may_keep_in_other_words(system: Any) -> None:
    assert not [each for each in list_findings(run(system)) if "lost turns" in each]


def test_who_names_turns_and_shows_none_is_not_said_to_be_searchable() -> None:
    result = run(Claiming(), Remembering())
    assert math.isnan(result.summary["claiming[budget=500]"]["searchable_seconds"])
    assert "text was not returned" in result.notes["claiming[budget=500]"]["searchable_seconds"]
    assert not [each for each in list_findings(result) if "lost turns" in each]


def test_state_that_survives_a_reset_is_named() -> None:
    memory = Clinging()
    result = run(memory, Remembering())
    assert len(memory.turns) == 2 * 6  # both conversations
    said = [each for each in list_findings(result) if "reset" in each]
    assert said == ["clinging keeps state across reset(): it was not empty before 1 of 2 conversations."]
    assert said[0] in TableReporter(wide=True).render(result)


class Lister(Remembering):
    """Empties what it searches, and not what it lists."""

    name = "lister"

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def ingest(self, turns: list[Any]) -> None:
        super().ingest(turns)
        self.log += [turn["content"] for turn in turns]

    def memories(self) -> list[str]:
        return self.log


def test_a_list_that_survives_a_reset_is_named() -> None:
    assert any("keeps state across reset()" in each for each in list_findings(run(Lister())))


def test_the_asking_is_of_no_question_and_is_counted_apart() -> None:
    result = run(Remembering())
    about = result.config["reports"]["remembering[budget=500]"]["memory"]
    # Before each conversation one turn of it, and one of the one before; after it all six, and one again: 8 and 9.
    seen = {key: value for key, value in about["inspected"].items() if value}
    assert seen == {"asked": 17, "sampled": 12, "found": 12, "resets": 2, "named": 36}  # three turns for each of the 12
    assert len(result.rows) == 12
