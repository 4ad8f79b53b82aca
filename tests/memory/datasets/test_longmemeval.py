"""LongMemEval, on records made after the authors' description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError, UsageError
from context_bench.memory.conversations import Conversation
from context_bench.memory.datasets.question_histories import load_longmemeval as load

RECORD: dict[str, Any] = {
    "question_id": "e47becba",
    "question_type": "single-session-user",
    "question": "What degree did I graduate with?",
    "answer": 42,
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["answer_280352e9", "sharegpt_yywfIrx_0"],
    "haystack_dates": ["2023/05/21 (Sun) 02:01", "2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [
        [
            {"role": "user", "content": "I graduated in Business.", "has_answer": True},
            {"role": "assistant", "content": "Congratulations!", "has_answer": True},
        ],
        [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
    ],
    "answer_session_ids": ["answer_280352e9"],
}


def _load(folder: Path, *changes: dict[str, Any], file: str = "longmemeval_s_cleaned.json", **settings: Any) -> Any:
    (folder / "longmemeval").mkdir(exist_ok=True)
    records = [RECORD | change for change in changes or ({},)]
    (folder / "longmemeval" / file).write_text(json.dumps(records), encoding="utf-8")
    return list(load(data_dir=folder, **settings))


def test_sessions_are_sorted_by_date_and_marks_are_not_shown(tmp_path: Path) -> None:
    conversation: Conversation
    (conversation,) = _load(tmp_path)
    assert [turn["id"] for turn in conversation["turns"]] == [
        *("sharegpt_yywfIrx_0_1", "sharegpt_yywfIrx_0_2a", "answer_280352e9_1", "answer_280352e9_2a")
    ]
    assert conversation["turns"][2]["timestamp"] == "2023-05-21T02:01:00"
    assert "has_answer" not in json.dumps(conversation)


def test_the_question_has_its_date_and_its_evidence(tmp_path: Path) -> None:
    (conversation,) = _load(tmp_path)
    (question,) = conversation["questions"]
    assert question["question"] == "Current date: 2023/05/30 (Tue) 23:40. What degree did I graduate with?"
    assert question["answer"] == "42"
    assert question["evidence_ids"] == ["answer_280352e9_1", "answer_280352e9_2a"]
    assert question["user_evidence"] == ["answer_280352e9_1"]
    assert question["evidence_sessions"] == ["answer_280352e9"]
    assert not question["unanswerable"]


def test_abstention_is_told_by_the_id_and_keeps_its_type(tmp_path: Path) -> None:
    (conversation,) = _load(tmp_path, {"question_id": "gpt4_1_abs"})
    assert conversation["questions"][0]["unanswerable"]
    assert conversation["questions"][0]["type"] == "single-session-user"


def test_reported_errors_are_marked(tmp_path: Path) -> None:
    (conversation,) = _load(tmp_path, {"question_id": "370a8ff4"})
    assert conversation["questions"][0]["known_error"] == "the dates do not give the gold"


def test_variants_types_and_numbers_are_chosen(tmp_path: Path) -> None:
    update = {"question_id": "2", "question_type": "knowledge-update"}
    assert [each["id"] for each in _load(tmp_path, {}, update, types="knowledge_update")] == ["2"]
    assert [each["id"] for each in _load(tmp_path, {}, update, n=1)] == ["e47becba"]
    assert len(_load(tmp_path, {}, update, file="longmemeval_oracle.json", variant="oracle")) == 2
    with pytest.raises(UsageError, match="longmemeval has the variants s, m, oracle"):
        load("x")
    with pytest.raises(UsageError, match=r"expected DIR/longmemeval/longmemeval_m_cleaned\.json"):
        load("m", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"haystack_dates": []}, "2 ids, 0 dates and 2 sessions"),
        ({"question_date": "yesterday"}, "a date must be like"),
        ({"question_type": "riddle"}, "question_type must be one of"),
    ],
)
def test_a_record_of_another_layout_is_named(tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"longmemeval: .*, line 1: .*{problem}"):
        _load(tmp_path, change)
