"""The floor and the ceiling: closed-book, passthrough and oracle."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import evaluate
from context_bench.evaluators import AnswerQuality, ContextRecall
from context_bench.reporters import to_markdown
from context_bench.systems import ClosedBook, Oracle, Passthrough

CONTEXT = "Alice lives in Paris. Bob lives in Rome. Carol lives in Oslo."
EXAMPLE = {
    "id": 1,
    "context": CONTEXT,
    "question": "Where does Bob live?",
    "answer": "Rome",
    "evidence": [{"start": 22, "end": 40}],
}
DOCUMENTS = [{"id": "a", "text": "Paris"}, {"id": "b", "text": "Rome"}, {"id": "c", "text": "Oslo"}]


def _run(system: Any, example: dict[str, Any]) -> Any:
    (row,) = evaluate(system, [example], [AnswerQuality(), ContextRecall()], progress=False).rows
    return row


def test_passing_through_compresses_by_nothing_and_loses_nothing() -> None:
    assert Passthrough().process(EXAMPLE) == EXAMPLE
    row = _run(Passthrough(), EXAMPLE)
    assert row.output_tokens == row.input_tokens > 0
    assert (row.scores["evidence_recall"], row.scores["answer_in_context"]) == (1.0, 1.0)


def test_the_closed_book_leaves_the_question_alone() -> None:
    assert ClosedBook().process(EXAMPLE) == {"context": ""}
    row = _run(ClosedBook(), EXAMPLE)
    assert (row.scores["evidence_recall"], row.scores["answer_in_context"]) == (0.0, 0.0)
    assert 0 < row.output_tokens < row.input_tokens


def test_the_closed_book_has_no_documents_either() -> None:
    assert ClosedBook().process({**EXAMPLE, "documents": DOCUMENTS}) == {"context": "", "documents": []}


def test_the_oracle_keeps_the_evidence_alone() -> None:
    assert Oracle().process(EXAMPLE) == {"context": "Bob lives in Rome."}
    row = _run(Oracle(), EXAMPLE)
    assert (row.scores["evidence_recall"], row.scores["answer_in_context"]) == (1.0, 1.0)
    assert row.output_tokens < row.input_tokens


def test_several_spans_stand_in_their_order() -> None:
    example = {**EXAMPLE, "evidence": [[0, 21], "Carol lives in Oslo."]}
    assert Oracle().process(example)["context"] == "Alice lives in Paris.\nCarol lives in Oslo."


def test_without_evidence_the_oracle_keeps_everything() -> None:
    for evidence in ({}, {"evidence": []}, {"evidence": None}):
        example = {**{key: value for key, value in EXAMPLE.items() if key != "evidence"}, **evidence}
        made = Oracle().process(example)
        assert made["context"] == CONTEXT
        assert made["metadata"] == {"not_applied": "the example has no evidence, so the context was not changed"}


def test_an_oracle_without_evidence_says_so_and_is_not_ranked() -> None:
    blind = {key: value for key, value in EXAMPLE.items() if key != "evidence"}
    result = evaluate([Oracle(), Passthrough()], [blind, {**blind, "id": 2}], progress=False)
    assert "pareto_rank" not in result.summary["oracle"]
    assert result.summary["passthrough"]["pareto_rank"] == 1.0
    reason = "not applied on 2 of 2 rows: the example has no evidence, so the context was not changed"
    assert result.notes["oracle"]["pareto_rank"] == f"not ranked: {reason}"
    assert result.notes["oracle"]["compression_ratio"] == reason
    assert reason in to_markdown(result)
    alone = evaluate(Oracle(), [blind], progress=False)
    assert "on 1 of 1 rows: the example has no evidence" in alone.notes["oracle"]["mean_score"]


def test_an_oracle_with_evidence_for_a_part_is_ranked_with_a_note() -> None:
    blind = {**{key: value for key, value in EXAMPLE.items() if key != "evidence"}, "id": 2}
    result = evaluate([Oracle(), Passthrough()], [EXAMPLE, blind], progress=False)
    assert result.summary["oracle"]["pareto_rank"] == 1.0
    assert result.notes["oracle"]["mean_score"].startswith("not applied on 1 of 2 rows")


def test_an_oracle_with_evidence_needs_no_note() -> None:
    result = evaluate([Oracle(), Passthrough()], [EXAMPLE], progress=False)
    assert "not applied" not in str(result.notes)


def test_of_documents_the_oracle_keeps_the_relevant_ones() -> None:
    example = {"id": 1, "context": "Paris\n\nRome\n\nOslo", "documents": DOCUMENTS, "relevant_ids": ["c", "b"]}
    assert [item["id"] for item in Oracle().process(example)["documents"]] == ["b", "c"]
    with pytest.warns(UserWarning, match="choose another score with score_field .*: mrr, ndcg, recall_at_k"):
        row = _run(Oracle(), example)
    assert row.response == "Rome\n\nOslo"
    assert row.scores["ndcg"] == 1.0


def test_the_oracle_says_that_it_looks_at_the_gold() -> None:
    assert Oracle.reads_gold is True
    assert not any(system.reads_gold for system in (Passthrough(), ClosedBook()))
