"""The floor and the ceiling: closed-book, passthrough and oracle."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import evaluate
from context_bench.evaluators import AnswerQuality, ContextRecall
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
        assert Oracle().process(example) == {"context": CONTEXT}


def test_of_documents_the_oracle_keeps_the_relevant_ones() -> None:
    example = {"id": 1, "context": "Paris\n\nRome\n\nOslo", "documents": DOCUMENTS, "relevant_ids": ["c", "b"]}
    assert [item["id"] for item in Oracle().process(example)["documents"]] == ["b", "c"]
    with pytest.warns(UserWarning, match="choose one with score_field .*: mrr, ndcg, recall_at_k"):
        row = _run(Oracle(), example)
    assert row.response == "Rome\n\nOslo"
    assert row.scores["ndcg"] == 1.0


def test_the_oracle_says_that_it_looks_at_the_gold() -> None:
    assert Oracle.reads_gold is True
    assert not any(getattr(system, "reads_gold", False) for system in (Passthrough(), ClosedBook()))
