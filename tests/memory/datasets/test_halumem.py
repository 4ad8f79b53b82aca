"""HaluMem, on records made after the authors' description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError, UsageError
from context_bench.memory.datasets.long_conversations import load_halumem as load

POINT: dict[str, Any] = {
    "index": 1,
    "memory_content": "Ana lives in Lyon",
    "memory_type": "Persona Memory",
    "memory_source": "primary",
    "is_update": "True",
    "original_memories": ["Ana lives in Nice"],
    "timestamp": "",
    "importance": 0.8,
}
SESSION: dict[str, Any] = {
    "dialogue": [
        {"role": "user", "content": "I live in Lyon.", "timestamp": "Dec 15, 2025, 06:11:23", "dialogue_turn": 0},
        {"role": "assistant", "content": "Fine.", "timestamp": "Dec 15, 2025, 06:12:00", "dialogue_turn": 0},
    ],
    "memory_points": [POINT],
    "questions": [
        {
            "question": "Where?",
            "answer": "Lyon",
            "difficulty": "easy",
            "question_type": "Basic Fact Recall",
            "evidence": [{"memory_content": "Ana lives in Lyon", "memory_type": "Persona Memory"}],
        }
    ],
}
RECORD = {"uuid": "u1", "persona_info": "x", "sessions": [SESSION, {**SESSION, "is_generated_qa_session": True}]}


def _write(folder: Path, record: Any = RECORD) -> Path:
    (folder / "halumem").mkdir(exist_ok=True)
    (folder / "halumem" / "HaluMem-Medium.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8")
    return folder


def test_dialogues_points_and_questions_are_read_and_sessions_made_to_ask_are_not(tmp_path: Path) -> None:
    (conversation,) = load(data_dir=_write(tmp_path))
    assert conversation["id"] == "u1"
    assert [(turn["id"], turn["timestamp"]) for turn in conversation["turns"]] == [
        ("s1:1", "2025-12-15T06:11:23"),
        ("s1:2", "2025-12-15T06:12:00"),
    ]
    (point,) = conversation["meta"]["memory_points"]
    assert point["is_update"] is True
    assert (point["replaces"], point["importance"]) == (["Ana lives in Nice"], 0.8)
    (question,) = conversation["questions"]
    assert (question["type"], question["evidence_texts"]) == ("Basic Fact Recall", ["Ana lives in Lyon"])
    assert question["evidence_ids"] == []


def test_types_are_chosen_and_variants_checked(tmp_path: Path) -> None:
    assert list(load(data_dir=_write(tmp_path), types="Other")) == []
    assert len(list(load(data_dir=tmp_path, types="Basic Fact Recall"))) == 1
    with pytest.raises(UsageError, match="halumem has the variants medium, long"):
        load("short", data_dir=tmp_path)
    with pytest.raises(UsageError, match="no file for halumem"):
        load("long", data_dir=tmp_path)
    with pytest.raises(DataError, match="no field 'uuid'"):
        list(load(data_dir=_write(tmp_path, {"sessions": []})))
