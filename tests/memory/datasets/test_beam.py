"""BEAM, on a folder made after the authors' layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError, UsageError
from context_bench.memory.datasets.long_conversations import load_beam as load


def _message(number: int, text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "id": number, "content": text, **more}


CHAT: list[Any] = [
    {
        "batch_number": 1,
        "time_anchor": "March-15-2024",
        "turns": [
            [_message(0, "I use Flask. ->-> 1,1", time_anchor="March-16-2024"), _message(1, "Fine.", "assistant")],
            [_message(2, "Now Django ->-> 1,12")],
        ],
    }
]
QUESTIONS: dict[str, Any] = {
    "knowledge_update": [
        {
            "question": "Which framework?",
            "answer": "Django",
            "rubric": ["says Django"],
            "source_chat_ids": {"old": [0], "new": [2]},
        }
    ],
    "abstention": [
        {"question": "Which editor?", "ideal_response": "Not known.", "rubric": ["refuses"], "source_chat_ids": []}
    ],
    "event_ordering": [{"question": "Order?", "answer": ["a", "b"], "rubric": ["a", "b"], "source_chat_ids": [2, 99]}],
}


def _write(
    folder: Path, number: int = 1, chat: Any = CHAT, questions: Any = QUESTIONS, file: str = "chat.json"
) -> Path:
    place = folder / "beam" / "chats" / "100K" / str(number)
    (place / "probing_questions").mkdir(parents=True, exist_ok=True)
    (place / "chat.json").write_text("[]", encoding="utf-8")
    (place / file).write_text(json.dumps(chat), encoding="utf-8")
    (place / "probing_questions" / "probing_questions.json").write_text(json.dumps(questions), encoding="utf-8")
    return folder


def test_messages_are_dated_and_cleaned(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path))
    turns = conversation["turns"]
    assert conversation["id"] == "100K-1"
    assert [turn["content"] for turn in turns] == ["I use Flask.", "Fine.", "Now Django"]
    assert [turn["timestamp"] for turn in turns] == ["2024-03-16T00:00:00"] * 3
    assert [turn["id"] for turn in turns] == ["0", "1", "2"]


def test_questions_have_rubric_gold_and_evidence(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path))
    update, abstention, order = conversation["questions"]
    assert (update["id"], update["answer"], update["rubric"]) == ("knowledge_update-0", "Django", ["says Django"])
    assert update["evidence_ids"] == ["0", "2"]
    assert abstention["unanswerable"]
    assert abstention["answer"] == "Not known."
    assert "pair" in abstention
    assert (order["answer"], order["evidence_ids"]) == ("a\nb", ["2"])


def test_a_shortened_chat_is_the_one_of_its_size(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path, file="chat_trunecated.json"))
    assert len(conversation["turns"]) == 3


def test_plans_of_the_largest_size_are_read(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path, chat=[{"plan-1": CHAT, "plan-2": None}]))
    assert len(conversation["turns"]) == 3


def test_chats_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        _write(tmp_path, number)
    assert [each["id"] for each in load(data_dir=tmp_path)] == ["100K-1", "100K-2", "100K-10"]
    assert [len(each["questions"]) for each in load(data_dir=tmp_path, n=1, types="event-ordering")] == [1]


def test_what_is_missing_or_wrong_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="beam has the sizes 100K, 500K, 1M, 10M"):
        load("2M", data_dir=tmp_path)
    with pytest.raises(UsageError, match="no file for beam"):
        load("1M", data_dir=_write(tmp_path))
    with pytest.raises(DataError, match="an ability must be one of"):
        list(load(data_dir=_write(tmp_path, questions={"riddles": [{}]})))
    (tmp_path / "beam/chats/100K/1/probing_questions/probing_questions.json").unlink()
    with pytest.raises(DataError, match=r"probing_questions\.json: no such file"):
        list(load(data_dir=tmp_path))
