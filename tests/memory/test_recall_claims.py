"""Recall is of turns whose text was returned, over the same questions for all; what is only named is a claim."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from command import called
from context_bench import evaluate_memory
from context_bench.memory.findings import list_findings
from context_bench.output.memory import list_rankings
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from toy_memories import Claiming, Empty, Picky, Remembering, Rewording, make_conversations

TOYS = Path(__file__).parents[1] / "toy_memories.py"


def run(*systems: Any) -> EvalResult:
    return evaluate_memory(
        list(systems), make_conversations(2), budgets=[500], answers=["reader"], quiet=0.1, progress=False
    )


@pytest.mark.parametrize("text", ["ok", "."])
def test_who_names_every_turn_and_shows_none_is_ranked_last(text: str) -> None:
    result = run(Claiming(text), Remembering())
    # By hand: what it returned, and whether the code that the question asks for is in it.
    answers = {talk["questions"][0]["answer"] for talk in make_conversations(2)}
    assert not any(answer in text for answer in answers)
    values = result.summary["claiming[budget=500]"]
    for key in ("retrieval_recall", "retrieval_ndcg", "retrieval_precision", "retrieval_recall_at_10"):
        assert values[key] == 0.0
    assert values["retrieval_recall_claimed"] == 1.0
    assert list_rankings(result) == [
        "ranked by recall at 500 tokens: remembering 1.000, claiming at least 0.000 (claims 1.000)."
    ]
    said = "claiming names turns whose text it did not return (claimed, not shown). "
    assert f"{said}Its recall is at least 0.000 and at most 1.000." in list_findings(result)
    text = TableReporter(wide=True).render(result)
    (line,) = [line for line in text.splitlines() if line.startswith("| claiming") and "1.000" in line]
    assert "★" not in line


def test_a_memory_in_its_own_words_has_a_range() -> None:
    result = run(Rewording(), Remembering())
    values = result.summary["rewording[budget=500]"]
    assert (values["retrieval_recall"], values["retrieval_recall_claimed"]) == (0.0, 1.0)
    assert "recall is at least 0.000 and at most 1.000" in " ".join(list_findings(result))
    assert "claimed" not in TableReporter(wide=True).render(run(Remembering()))


@pytest.mark.parametrize("how", ["raise", "unnamed", "unscored"])
def test_recall_is_over_the_same_questions_for_all(how: str) -> None:
    result = run(Picky(how), Remembering())
    # Of the questions about room0 to room5 it answers those about room0 and room3: 2 of 6.
    for key in ("retrieval_recall", "retrieval_recall_at_10", "retrieval_ndcg"):
        assert result.summary["picky[budget=500]"][key] == pytest.approx(1 / 3)
        assert result.summary["remembering[budget=500]"][key] == 1.0
    assert result.intervals["picky[budget=500]"]["retrieval_recall"].value == pytest.approx(1 / 3)


def test_who_never_names_turns_has_no_recall() -> None:
    result = run(Rewording(names=False), Empty())
    assert math.isnan(result.summary["rewording[budget=500]"]["retrieval_recall"])
    assert "no turn ids" in result.notes["rewording[budget=500]"]["retrieval_recall"]
    assert result.summary["empty[budget=500]"]["retrieval_recall"] == 0.0


def test_one_question_up_close_says_claimed(tmp_path: Path) -> None:
    (tmp_path / "toys.py").write_text(TOYS.read_text())
    words = ["--system", "toys.py:Claiming", "--dataset", "synthetic-memory:length=4000", "-n", "1"]
    called("memory", *words, "--budget", "500", "--answers", "reader", "--flush-quiet", "0.1", cwd=tmp_path)
    assert "claimed, not shown" in called("diff", "last", "synthetic-0-0/q000", cwd=tmp_path).stdout
