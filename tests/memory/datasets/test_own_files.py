"""Conversations of one's own: what is filled in, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError
from context_bench.memory.datasets.conversation_files import load_file as load

RECORD: dict[str, Any] = {
    "turns": [{"content": "I live in Lyon."}, {"role": "assistant", "content": "Nice.", "id": "b"}],
    "questions": [
        {"question": "Where?", "answer": "Lyon", "evidence_ids": [1], "type": "fact"},
        {"question": "Where does Bo live?", "unanswerable": True},
    ],
}


def _write(folder: Path, *records: Any, name: str = "chats.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_missing_ids_roles_and_pairs_are_filled_in(tmp_path: Path) -> None:
    (conversation,) = load(_write(tmp_path, RECORD))
    assert conversation["id"] == "1"
    assert [(turn["id"], turn["role"], turn["session"]) for turn in conversation["turns"]] == [
        ("1", "user", "1"),
        ("b", "assistant", "1"),
    ]
    first, second = conversation["questions"]
    assert (first["id"], first["type"], first["evidence_ids"]) == ("0", "fact", ["1"])
    assert (second["id"], second["type"]) == ("1", "question")
    assert first["pair"] == second["pair"]


def test_fields_of_the_user_are_kept_and_types_chosen(tmp_path: Path) -> None:
    path = _write(tmp_path, {**RECORD, "id": "mine", "meta": {"a": 1}}, RECORD)
    first, second = load(path, types="fact")
    assert (first["id"], first["meta"]) == ("mine", {"a": 1})
    assert [question["answer"] for question in second["questions"]] == ["Lyon"]
    assert len(list(load(path, n=1))) == 1


def test_a_json_list_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([RECORD, RECORD]), encoding="utf-8")
    assert len(list(load(path))) == 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"turns": []}, "turns must be a list that is not empty"),
        ({"questions": "?"}, "questions must be a list"),
        ({"turns": [{"text": "x"}]}, "turn 1 must be an object with a text `content`"),
        ({"turns": [{"content": "x", "role": "bot"}]}, "turn 1: role must be one of user, assistant, system"),
        ({"turns": [{"content": "x", "id": "a"}, {"content": "y", "id": "a"}]}, "two turns have the id 'a'"),
        ({"questions": [{"answer": "x"}]}, "question 1 must be an object with a text `question`"),
        ({"questions": [{"question": "?", "evidence_ids": ["z"]}]}, "question 1: evidence 'z' is not the id of a turn"),
        ({"questions": [{"question": "?", "id": 1}, {"question": "!", "id": 1}]}, "two questions have the same id"),
    ],
)
def test_a_wrong_record_names_file_line_and_what_is_wrong(tmp_path: Path, change: Any, problem: str) -> None:
    with pytest.raises(DataError, match=rf"chats\.jsonl, line 2: {problem}"):
        list(load(_write(tmp_path, RECORD, {**RECORD, **change})))


def test_a_record_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="a record must be an object"):
        list(load(_write(tmp_path, [1])))


def test_a_wrong_path_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "x.jsonl")
    with pytest.raises(DataError, match=r"must end in \.jsonl or \.json"):
        load(tmp_path / "x.csv")
