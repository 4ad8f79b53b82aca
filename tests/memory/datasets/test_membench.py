"""MemBench, on files made after the authors' evaluator, and its choice of letters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError
from context_bench.memory.datasets.question_histories import load_membench as load
from context_bench.memory.scoring import MemoryChoice
from memory.histories import make_example

QA: dict[str, Any] = {
    "question": "Where does Ana live?",
    "time": "2024-10-01 08:00",
    "ground_truth": "B",
    "choices": {"A": "Nice", "B": "Lyon", "C": "Lille", "D": "Brest"},
    "target_step_id": [1],
}
THIRD = {
    "tid": 7,
    "message_list": [{"message": "It rains.", "place": "home", "time": "now"}, {"message": "x"}],
    "QA": QA,
}
FIRST = {
    "tid": 8,
    "message_list": [{"user": "Hi", "agent": "Hello"}, {"user_message": "I am Ana", "assistant_message": "Fine"}],
    "QA": {**QA, "target_step_id": [[1], [0]]},
}


def _write(folder: Path, document: Any) -> Path:
    (folder / "membench" / "third").mkdir(parents=True, exist_ok=True)
    (folder / "membench" / "third" / "simple.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def test_remarks_are_rendered_with_place_and_time(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path, {"simple": {"roles": [THIRD]}}))
    assert conversation["id"] == "simple-simple-roles-7"
    assert [turn["content"] for turn in conversation["turns"]] == ["It rains. (place: home; time: now)", "x"]
    (question,) = conversation["questions"]
    assert question["evidence_ids"] == ["1"]
    assert question["correct_letter"] == "B"
    assert question["answer"] == "Lyon"
    assert question["question"] == (
        "Time: 2024-10-01 08:00. Where does Ana live?\nA. Nice\nB. Lyon\nC. Lille\nD. Brest"
    )


def test_dialogues_have_both_sides_and_nested_targets_their_first(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path, {"noisy": {"roles": [FIRST]}}))
    assert [(turn["id"], turn["role"]) for turn in conversation["turns"]] == [
        ("0", "user"),
        ("0a", "assistant"),
        ("1", "user"),
        ("1a", "assistant"),
    ]
    assert conversation["questions"][0]["evidence_ids"] == ["1", "1a"]
    assert list(load(data_dir=tmp_path, types="simple")) == []


@pytest.mark.parametrize(("answer", "value"), [("B", 1.0), ("(b)", 1.0), ("Lyon", 1.0), ("A", 0.0), ("", 0.0)])
def test_the_letter_that_a_reply_chooses_is_scored(tmp_path: Path, answer: str, value: float) -> None:
    (conversation,) = load(data_dir=_write(tmp_path, {"simple": {"roles": [THIRD]}}))
    example = make_example(conversation["questions"][0])
    assert MemoryChoice().score(example, {"response": answer}) == {"memory_choice": value}


def test_other_questions_have_no_choice() -> None:
    assert MemoryChoice().score(make_example({}), {"response": "A"}).reason == "not a multiple-choice question"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([1], "not a file of"),
        ({"simple": {"roles": [{**THIRD, "QA": {**QA, "ground_truth": "E"}}]}}, "ground_truth must be one of ABCD"),
        ({"simple": {"roles": [{**THIRD, "message_list": [{"place": "x"}]}]}}, "no field 'message'"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, document: Any, problem: str) -> None:
    with pytest.raises(DataError, match=f"membench: .*{problem}"):
        list(load(data_dir=_write(tmp_path, document)))
