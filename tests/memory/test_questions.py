"""Conversations of one's own: what is filled in, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError, UsageError
from context_bench.memory.questions import Questions, open_conversations
from context_bench.types import Example

RECORD: dict[str, Any] = {
    "id": "c1",
    "turns": [{"content": "I live in Lyon."}, {"role": "assistant", "content": "Nice.", "id": "b"}],
    "questions": [{"question": "Where?", "answer": "Lyon", "evidence_ids": ["t1"], "type": "fact"}],
}


def _read(path: Path) -> tuple[list[Example], Questions]:
    opened, tag = open_conversations(str(path))
    questions = Questions(opened, tag, len)
    return list(questions), questions


def _write(folder: Path, *records: Any) -> Path:
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_missing_ids_and_roles_are_filled_in(tmp_path: Path) -> None:
    (example,), questions = _read(_write(tmp_path, RECORD))
    assert (example["id"], example["dataset"], example["answer"]) == ("c1/q1", "chats", "Lyon")
    assert example["memory"]["evidence_turns"] == {"t1": "I live in Lyon."}
    assert [(turn["id"], turn["role"]) for turn in questions.find("c1").turns] == [("t1", "user"), ("b", "assistant")]


def test_a_json_list_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([RECORD, {**RECORD, "id": "c2"}]), encoding="utf-8")
    assert [example["id"] for example in _read(path)[0]] == ["c1/q1", "c2/q1"]
    path.write_text(json.dumps(RECORD), encoding="utf-8")
    with pytest.raises(DataError, match="must contain a list"):
        _read(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"id": "c1"}, "conversation 2 of chats: duplicate id 'c1'"),
        ({"turns": [{"text": "x"}]}, "turn 1: must be an object with 'role' and 'content'"),
        ({"turns": [{"content": "x", "id": "a"}, {"content": "y", "id": "a"}]}, "two turns have the id 'a'"),
        ({"questions": [{"answer": "x"}]}, "question 1: must be an object with 'question'"),
        ({"questions": [{"question": "?", "id": 1}] * 2}, "two questions have the id '1'"),
    ],
)
def test_a_wrong_record_names_the_conversation_and_what_is_wrong(tmp_path: Path, change: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        _read(_write(tmp_path, RECORD, {**RECORD, "id": "c2", **change}))


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path, RECORD)
    path.write_text(path.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"chats\.jsonl, line 2: broken JSON"):
        _read(path)


def test_a_missing_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        open_conversations(str(tmp_path / "x.jsonl"))
