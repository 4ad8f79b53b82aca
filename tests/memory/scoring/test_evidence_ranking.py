"""Recall, precision and nDCG against evidence ids, by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.memory.scoring import MemoryRetrieval
from memory.histories import make_example


def _score(found: list[dict[str, Any]] | None, evidence: list[str]) -> Any:
    processed = {} if found is None else {"retrieved": found}
    return MemoryRetrieval().score(make_example({"evidence_ids": evidence}), processed)


def _rank(*ids: str) -> list[dict[str, Any]]:
    return [{"text": each, "ids": [each], "score": 1 / place} for place, each in enumerate(ids, 1)]


def test_a_ranking_is_measured_at_every_depth() -> None:
    scores = _score(_rank("x", "a", "y", "z", "w", "v", "b"), ["a", "b"])
    gain = 1 / math.log2(3) + 1 / math.log2(8)
    assert scores == pytest.approx(
        {
            "retrieval_recall": 1.0,
            "retrieval_precision": 2 / 7,
            "retrieval_recall_at_1": 0.0,
            "retrieval_recall_at_5": 0.5,
            "retrieval_recall_at_10": 1.0,
            "retrieval_recall_at_20": 1.0,
            "retrieval_ndcg": gain / (1 + 1 / math.log2(3)),
        }
    )


def test_what_the_budget_cut_off_is_not_found() -> None:
    found = _rank("x", "a", "b")
    example = make_example({"evidence_ids": ["a", "b"]})
    scores = MemoryRetrieval().score(example, {"retrieved": found, "shown": 2})
    assert scores["retrieval_recall"] == scores["retrieval_recall_at_10"] == scores["retrieval_precision"] == 0.5
    assert MemoryRetrieval().score(example, {"retrieved": found, "shown": 0})["retrieval_recall"] == 0.0
    unnamed = {"retrieved": [{"text": "a"}], "shown": 0}
    assert MemoryRetrieval().score(example, unnamed).reason == "the retrieved memories name no turns (ids)"


def test_a_list_without_scores_is_not_a_ranking() -> None:
    found = [{"text": "x", "ids": ["x"]}, {"text": "a", "ids": ["a"]}]
    assert _score(found, ["a"]) == {"retrieval_recall": 1.0, "retrieval_precision": 0.5}


def test_nothing_found_is_zero_and_has_no_precision() -> None:
    scores = _score([], ["a"])
    assert scores["retrieval_recall"] == scores["retrieval_recall_at_10"] == scores["retrieval_ndcg"] == 0.0
    assert "retrieval_precision" not in scores


def test_a_memory_that_stands_for_several_turns_counts_for_all_of_them() -> None:
    scores = _score([{"text": "both", "ids": ["a", "b", "c"], "score": 1.0}], ["a", "b"])
    assert scores["retrieval_recall_at_1"] == scores["retrieval_precision"] == scores["retrieval_ndcg"] == 1.0


def test_a_turn_that_is_found_twice_counts_once() -> None:
    scores = _score(_rank("a", "a"), ["a", "b"])
    assert scores["retrieval_recall"] == 0.5
    assert scores["retrieval_ndcg"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


@pytest.mark.parametrize(
    ("found", "evidence", "reason"),
    [
        ([], [], "the question has no evidence ids"),
        (None, ["a"], "the system does not say what it retrieved"),
        ([{"text": "a"}], ["a"], "the retrieved memories name no turns (ids)"),
    ],
)
def test_what_cannot_be_measured_has_a_reason(found: Any, evidence: list[str], reason: str) -> None:
    scores = _score(found, evidence)
    assert scores == {}
    assert scores.reason == reason


def test_an_example_of_another_dataset_has_no_score() -> None:
    assert MemoryRetrieval().score({"context": ""}, {"retrieved": []}).reason == "not a question about a conversation"
