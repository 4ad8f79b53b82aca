"""LoCoMo: records made after the layout of the file, and the real file where it is at hand."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError, UsageError
from context_bench.memory.conversations import Conversation
from context_bench.memory.datasets.long_conversations import ERROR_KINDS
from context_bench.memory.datasets.long_conversations import load_locomo as load
from memory.real_records import read_locomo

RECORD: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_10_date_time": "12:05 am on 2 June, 2023",
        "session_10": [{"speaker": "Ben", "dia_id": "D10:1", "text": "I sold the car."}],
        "session_2_date_time": "1:56 pm on 8 May, 2023",
        "session_2": [
            {"speaker": "Ana", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red car", "query": "Fiat Panda"},
            {"speaker": "Ben", "dia_id": "D2:2", "text": "Nice."},
        ],
        "session_11_date_time": "1:56 pm on 9 June, 2023",
    },
    "observation": {"secret": "hidden"},
    "qa": [
        {"question": "When?", "answer": 2022, "evidence": ["D2:1; D:10:1", "D2:01"], "category": 2},
        {"question": "What does Ana sell?", "evidence": ["D99:1"], "category": 5, "adversarial_answer": "a boat"},
        {"question": "What does Ben sell?", "answer": "a car", "evidence": ["D10:1"], "category": 4},
    ],
}


def _load(folder: Path, record: dict[str, Any] = RECORD, **settings: Any) -> Conversation:
    (folder / "locomo").mkdir(exist_ok=True)
    (folder / "locomo" / "locomo10.json").write_text(json.dumps([record]), encoding="utf-8")
    (conversation,) = load(data_dir=folder, **settings)
    return conversation


def test_sessions_come_in_the_order_of_their_numbers_with_their_dates(tmp_path: Path) -> None:
    turns = _load(tmp_path)["turns"]
    assert [turn["id"] for turn in turns] == ["D2:1", "D2:2", "D10:1"]
    assert [turn["timestamp"] for turn in turns] == ["2023-05-08T13:56:00"] * 2 + ["2023-06-02T00:05:00"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "assistant"]


def test_captions_are_shown_and_the_query_never(tmp_path: Path) -> None:
    conversation = _load(tmp_path)
    assert conversation["turns"][0]["content"] == "Look! [shares a red car]"
    assert "Panda" not in json.dumps(conversation)
    assert "hidden" not in json.dumps(conversation)


def test_evidence_is_read_however_it_is_written_and_only_where_the_turn_exists(tmp_path: Path) -> None:
    first, second, _ = _load(tmp_path)["questions"]
    assert first["evidence_ids"] == ["D2:1", "D10:1"]
    assert first["evidence_sessions"] == ["session_2", "session_10"]
    assert first["answer"] == "2022"
    assert second["evidence_ids"] == []


def test_category_five_is_unanswerable_and_paired(tmp_path: Path) -> None:
    _, false, true = _load(tmp_path)["questions"]
    assert false["unanswerable"]
    assert false["type"] == "adversarial"
    assert false["answer"] == "No information available"
    assert false["pair"] == true["pair"]


def test_category_five_as_a_choice_offers_both_answers(tmp_path: Path) -> None:
    question = _load(tmp_path, refusal="choice")["questions"][1]
    assert sorted(question["options"].values()) == ["Not mentioned in the conversation", "a boat"]
    assert f"(a) {question['options']['a']} (b) {question['options']['b']}" in question["question"]
    orders = {_load(tmp_path, refusal="choice", seed=seed)["questions"][1]["options"]["a"] for seed in range(12)}
    assert len(orders) == 2


def test_types_are_chosen_by_name(tmp_path: Path) -> None:
    assert [each["type"] for each in _load(tmp_path, types="single-hop")["questions"]] == ["single_hop"]


def test_wrong_settings_and_missing_files_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="refusal must be one of free, choice"):
        load(data_dir=tmp_path, refusal="x")
    with pytest.raises(UsageError, match=r"no file for locomo; expected DIR/locomo/locomo10\.json"):
        load(data_dir=tmp_path)
    monkeypatch.delenv("CONTEXT_BENCH_DATA", raising=False)
    with pytest.raises(
        UsageError, match=r"locomo is read from local files: get it from https://github\.com/snap-research"
    ):
        load()


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"sample_id": "x"}, "no field 'conversation'; it has sample_id"),
        ({**RECORD, "qa": [{"question": "?", "evidence": [], "category": 9}]}, "no field 9"),
        ({**RECORD, "conversation": {"session_1_date_time": "yesterday", "session_1": []}}, "the layout is unknown"),
    ],
)
def test_a_record_of_another_layout_names_its_place(tmp_path: Path, record: dict[str, Any], problem: str) -> None:
    with pytest.raises(DataError, match=rf"locomo: .*locomo10\.json, line 1: {problem}"):
        _load(tmp_path, record)


def test_the_real_file_has_all_questions_and_known_errors() -> None:
    conversations = read_locomo()
    questions = [question for conversation in conversations for question in conversation["questions"]]
    assert len(conversations) == 10
    assert sum(len(conversation["turns"]) for conversation in conversations) == 5_882
    assert Counter(question["category"] for question in questions) == {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}
    assert sum(bool(question["evidence_ids"]) for question in questions) == 1_982
    errors = Counter(question["known_error"] for question in questions if "known_error" in question)
    assert errors == {"W": 57, "H": 33, "T": 26, "A": 24, "M": 13, "I": 3}
    assert set(errors) == set(ERROR_KINDS)
    corrupted = [question["category"] for question in questions if question.get("known_error", "W") != "W"]
    assert Counter(corrupted) == {1: 28, 2: 26, 3: 9, 4: 36}


def test_every_false_question_of_the_real_file_has_a_partner() -> None:
    for conversation in read_locomo():
        pairs: dict[str, list[bool]] = {}
        for question in conversation["questions"]:
            if "pair" in question:
                pairs.setdefault(question["pair"], []).append(question["unanswerable"])
        assert all(sorted(each) == [False, True] for each in pairs.values())
        assert len(pairs) == sum(question["unanswerable"] for question in conversation["questions"])
