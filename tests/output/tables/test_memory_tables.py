"""The tables of memory systems: nothing is lost in a narrow terminal, and who leads is said first."""

from __future__ import annotations

import re
from typing import Any

import pytest

from context_bench import evaluate_memory
from context_bench.output.layout import display_width
from context_bench.output.memory import list_memory_notes, list_rankings
from context_bench.reporters import TableReporter
from context_bench.results import EvalResult
from memory.real_records import read_locomo
from toy_memories import Empty, Forgetful, Remembering, Writing, make_conversations


@pytest.fixture(scope="module")
def result() -> EvalResult:
    systems = ["naive", "bm25", "last:n=20", "hybrid"]
    return evaluate_memory(systems, "synthetic-memory:length=4000", max_conversations=2, progress=False)


def read_tables(text: str) -> dict[str, set[str]]:
    """The titles and names of each table; parts of one that was split count together."""
    tables: dict[str, set[str]] = {}
    for part in text.split("\n\n"):
        lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"]
        if lines:
            tables.setdefault(lines[0][0], set()).update(lines[0][1:], (line[0] for line in lines[2:]))
    return tables


@pytest.mark.long
def test_a_narrow_terminal_loses_no_probe_no_type_and_no_cost(result: EvalResult) -> None:
    text = TableReporter(width=80, wide=True).render(result)
    assert max(map(display_width, text.splitlines())) <= 80
    tables = read_tables(text)
    assert {"update", "forget", "leak", "secret", "temporal", "as_of", "fact"} <= tables["probes passed"]
    assert {"knowledge_update", "single_hop", "temporal", "leakage"} <= tables["score by type"]
    costs = {"ingested by", "dates", "calls / 1k turns", "$ / 1k turns", "searchable after", "time / question"}
    assert costs | {"bm25", "last:n=20", "hybrid"} <= tables["costs of memory"]
    assert {"bm25[budget=500]", "hybrid[budget=8000]"} <= tables["questions to repay"]


def test_each_budget_has_its_ranking_without_controls(result: EvalResult) -> None:
    first, *_ = rankings = list_rankings(result)
    assert [line.partition(":")[0] for line in rankings] == [
        f"ranked by recall at {budget} tokens" for budget in ("500", "2,000", "8,000")
    ]
    assert re.fullmatch(r"ranked by .+: bm25 1\.000, hybrid 1\.000, last:n=20 0\.\d{3}\.", first)
    assert not any("naive" in line for line in rankings)
    assert TableReporter(wide=True).render(result).startswith(first)


def test_a_run_by_session_alone_says_what_a_published_table_has_besides(result: EvalResult) -> None:
    said = "--granularity session,turn"
    assert any(said in note for note in list_memory_notes(result))
    memory = {**result.config["memory"], "granularity": ["session", "turn"]}
    both = EvalResult(result.rows, result.summary, config={**result.config, "memory": memory})
    assert not any(said in note for note in list_memory_notes(both))


def test_who_forgets_ranks_below_who_remembers() -> None:
    result = evaluate_memory(
        [Forgetful(), Remembering()], make_conversations(), budgets=[500], answers=["reader"], progress=False
    )
    assert list_rankings(result) == ["ranked by recall at 500 tokens: remembering 1.000, forgetful 0.167."]


def test_why_a_number_is_not_measured_is_said(result: EvalResult) -> None:
    text = TableReporter(wide=True).render(result)
    assert "not measured: abstention: a script answered, not a model, so refusals say nothing." in text
    assert "not measured: abstention, forget: no row has the score 'score'." in text


def test_locomo_is_shown_with_and_without_its_wrong_golds() -> None:
    talks: list[Any] = [{**talk, "dataset": "locomo"} for talk in read_locomo()[:1]]
    talks[0]["questions"] = talks[0]["questions"][:8]
    from context_bench.memory.scoring import LocomoScore

    result = evaluate_memory(
        "oracle", talks, evaluators=[LocomoScore()], score_field="locomo_f1", progress=False, budgets=[500]
    )
    titles = read_tables(TableReporter(wide=True).render(result))["LoCoMo"]
    assert {"F1, categories 1 to 4", "without known wrong golds", "all five, official"} <= titles


def list_starred(result: EvalResult) -> set[str]:
    """The systems with a star in any table."""
    lines = [
        line for line in TableReporter(wide=True).render(result).splitlines() if "★" in line and line.startswith("|")
    ]
    return {line.split("|")[1].strip() for line in lines}


def test_who_stored_nothing_is_told_first_and_has_no_star() -> None:
    systems = [Empty(), Remembering(), Forgetful()]
    result = evaluate_memory(
        systems, make_conversations(), budgets=[500], answers=["reader"], quiet=0.1, progress=False
    )
    savings = {name: values["prompt_savings"] for name, values in result.summary.items()}
    assert max(savings, key=lambda name: savings[name]) == "empty[budget=500]"
    text = TableReporter(wide=True).render(result)
    assert text.startswith("empty stored nothing: it lists no memories and retrieved nothing for any question.")
    assert list_starred(result) <= {"remembering[budget=500]", "forgetful[budget=500]"}
    assert re.search(r"^\| forgetful.*★", text, re.MULTILINE)  # the largest saving of those that stored something


@pytest.mark.filterwarnings("ignore:nothing in conversations could be scored")
def test_no_star_without_a_measure_of_quality() -> None:
    from context_bench import Scripted

    result = evaluate_memory(
        [Writing, Remembering()],
        make_conversations(),
        budgets=[50, 500],
        answers=["reader"],
        answerer=Scripted.from_text("text:noted"),
        quiet=0.1,
        progress=False,
    )
    assert not {name for name in list_starred(result) if name.startswith("writing")}
