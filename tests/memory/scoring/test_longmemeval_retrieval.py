"""LongMemEval's retrieval scores, by hand and against the authors' formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.memory.scoring import LongMemEvalRetrieval, measure_sessions, measure_turns
from memory.histories import make_example

RANKING = ["x_1", "answer_1_3", "answer_1_1", "y_1", "x_3", "answer_2_1"]
RELEVANT = ["answer_1_1", "answer_2_1"]


def _discount_officially(gains: list[float]) -> float:
    """The authors' formula: rel[0] + sum of rel[i] / log2(i + 1) for i from 1 on."""
    return gains[0] + sum(gain / math.log2(place + 1) for place, gain in enumerate(gains[1:], 1))


@pytest.mark.parametrize(("depth", "found"), [(1, 0), (2, 0), (3, 1), (5, 1), (6, 2), (50, 2)])
def test_turns(depth: int, found: int) -> None:
    gains = [float(turn in RELEVANT) for turn in RANKING][:depth]
    ndcg = _discount_officially(gains) / _discount_officially([1.0] * min(2, depth))
    assert measure_turns(RANKING, RELEVANT, depth) == pytest.approx(
        {"recall_any": float(found > 0), "recall_all": float(found == 2), "ndcg_any": ndcg}
    )


def test_sessions_are_counted_until_so_many_different_ones_were_met() -> None:
    # x; the turn of session answer_1 that does not hold the answer counts as another session; answer_1; y; answer_2
    assert measure_sessions(RANKING, RELEVANT, 2)["recall_any"] == 0.0
    assert measure_sessions(RANKING, RELEVANT, 3) == pytest.approx(
        {
            "recall_any": 1.0,
            "recall_all": 0.0,
            "ndcg_any": _discount_officially([0, 0, 1]) / _discount_officially([1, 1]),
        }
    )
    assert measure_sessions(RANKING, RELEVANT, 5)["recall_all"] == 1.0


def _score(question: dict[str, Any], ids: list[str] | None) -> Any:
    processed = {} if ids is None else {"retrieved": [{"text": f"I said {each}.", "ids": [each]} for each in ids]}
    turns = {each: f"I said {each}." for each in question.get("user_evidence") or ()}
    return LongMemEvalRetrieval().score(make_example({**question, "evidence_turns": turns}), processed)


def test_a_turn_that_is_named_and_not_shown_does_not_count() -> None:
    question = {"user_evidence": ["answer_1_1"], "evidence_turns": {"answer_1_1": "My cat is called Tib."}}
    processed = {"retrieved": [{"text": "ok", "ids": ["answer_1_1"]}]}
    assert set(LongMemEvalRetrieval().score(make_example(question), processed).values()) == {0.0}


def test_turns_of_the_assistant_are_passed_over() -> None:
    scores = _score({"user_evidence": ["answer_1_1"]}, ["answer_1_2a", "x_2a", "answer_1_1"])
    assert scores["longmemeval_turn_recall_all_at_1"] == scores["longmemeval_session_ndcg_any_at_1"] == 1.0
    assert set(scores) == set(LongMemEvalRetrieval.score_fields)


def test_nothing_found_is_zero() -> None:
    assert set(_score({"user_evidence": ["answer_1_1"]}, []).values()) == {0.0}


@pytest.mark.parametrize(
    ("question", "ids", "reason"),
    [
        ({}, [], "not a question of LongMemEval"),
        ({"user_evidence": ["a_1"], "unanswerable": True}, [], "abstention questions have no retrieval score"),
        ({"user_evidence": []}, [], "no turn of the user contains the answer"),
        ({"user_evidence": ["a_1"]}, None, "the system does not report what it retrieved"),
    ],
)
def test_what_the_official_code_skips_has_a_reason(question: dict[str, Any], ids: Any, reason: str) -> None:
    assert _score(question, ids).reason == reason
