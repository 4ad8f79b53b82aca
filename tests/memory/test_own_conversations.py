"""Files of the user's own: recognised by what they hold, and facts planted into them with exact gold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate_memory
from context_bench.cli.listings import summarize_component
from context_bench.errors import DataError, UsageError
from context_bench.memory.datasets import DATASETS, UNVERIFIED
from context_bench.memory.own_conversations import MOST_PLANTS, plant, read_recorded, recognise
from context_bench.memory.questions import Questions, open_conversations
from context_bench.output.memory import list_outcomes
from context_bench.reporters import TableReporter
from memory.real_records import find_locomo

TURNS = [
    {"role": role, "content": f"Remark {place} about the weather.", "session": f"s{place // 4}"}
    for place in range(12)
    for role in ("user", "assistant")
]
TALK: dict[str, Any] = {"id": "c1", "turns": TURNS}


def _call(*messages: tuple[str, str]) -> dict[str, Any]:
    said = [{"role": role, "content": content} for role, content in messages]
    return {
        "request": {"model": "m", "messages": said},
        "response": {
            "id": f"r{len(said)}",
            "choices": [{"message": {"role": "assistant", "content": f"Reply {len(said)}"}}],
        },
    }


def _record(path: Path) -> Path:
    first = ("user", "My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD.")
    calls = [_call(first), _call(first, ("assistant", "Reply 1"), ("user", "And now?"))]
    path.write_text("".join(json.dumps(call) + "\n" for call in calls), encoding="utf-8")
    return path


def test_locomo_is_recognised_by_its_records() -> None:
    path = find_locomo() / "locomo" / "locomo10.json"
    assert recognise(path) == "locomo"
    opened, tag = open_conversations(str(path), n=1, types=["temporal"])
    (conversation,) = opened
    assert (tag, conversation["id"], len(conversation["questions"])) == ("locomo", "conv-26", 37)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({"question_id": "1", "haystack_sessions": [], "question": "?"}, "longmemeval"),
        ({"uuid": "1", "sessions": []}, "halumem"),
        ({**TALK, "questions": []}, "conversations"),
        ({"turns": []}, "conversations"),
    ],
)
def test_other_layouts_are_recognised(record: Any, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    assert recognise(path) == kind


def test_what_is_not_known_says_what_to_type(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps([{"evidence_items": [], "x": 1}]), encoding="utf-8")
    with pytest.raises(DataError, match="--dataset beam --data-dir DIR"):
        open_conversations(str(path))


def test_recorded_traffic_is_a_conversation_with_each_message_once(tmp_path: Path) -> None:
    path = _record(tmp_path / "calls.jsonl")
    assert recognise(path) == "traffic"
    (talk,) = read_recorded(path)
    said = [(turn["role"], turn["content"]) for turn in talk["turns"]]
    assert [role for role, _ in said] == ["user", "assistant", "user", "assistant"]
    assert [text for _, text in said[1:]] == ["Reply 1", "And now?", "Reply 3"]
    assert "abcdefghijklmnop" not in said[0][1], "a key is masked"
    opened, tag = open_conversations(str(path))
    with pytest.raises(DataError, match="--plant N"):
        list(Questions(opened, tag, len))
    opened, tag = open_conversations(str(path), plant=1)
    assert len(list(Questions(opened, tag, len))) == 2  # a fact, and its twin that was never told


def test_a_folder_is_recorded_traffic_unless_it_has_the_name_of_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("calls", "synthetic-memory"):
        (tmp_path / name).mkdir()
        _record(tmp_path / name / "calls.jsonl")
    monkeypatch.chdir(tmp_path)
    assert len(list(open_conversations("calls", plant=1)[0])) == 1
    opened, _ = open_conversations("synthetic-memory", n=2)
    assert [conversation["id"] for conversation in opened] == ["synthetic-0-0", "synthetic-0-1"]


def test_what_is_planted_is_asked_for_with_exact_gold() -> None:
    grown = plant(TALK, 8, seed=1)
    told = [turn for turn in grown["turns"] if turn["id"].startswith("plant-")]
    assert [turn for turn in grown["turns"] if turn not in told] == [
        {**turn, "id": f"t{place}"} for place, turn in enumerate(TURNS, 1)
    ]
    by_id = {turn["id"]: turn["content"] for turn in told}
    kinds = {question["probe"]["kind"] for question in grown["questions"]}
    assert kinds >= {"fact", "update", "forget", "secret", "contradiction", "instruction", "abstention"}
    assert "as_of" not in kinds, "nobody knows the dates of these turns"
    for question in grown["questions"]:
        said = " ".join(by_id[each] for each in question["evidence_ids"])
        assert all(text in said for text in question["probe"]["present"]), question
        assert "user" not in question
        assert "date" not in question
    assert plant(TALK, 8, seed=1) == grown
    assert plant(TALK, 8, seed=2) != grown
    for turn in told:  # beside a turn of the same session
        place = grown["turns"].index(turn)
        assert grown["turns"][place - 1]["session"] == turn["session"]


def test_planting_goes_into_the_first_user_s_words() -> None:
    turns = [{**turn, "user": f"u{place % 4}", "speaker": "Ana"} for place, turn in enumerate(TURNS)]
    grown = plant({"id": "c", "turns": turns, "questions": [{"question": "?", "id": "mine"}]}, 3, seed=0)
    assert grown["questions"][0]["id"] == "mine"
    assert {question["user"] for question in grown["questions"][1:]} == {"u0"}
    assert {(each["user"], each["speaker"]) for each in grown["turns"] if each["id"].startswith("plant")} == {
        ("u0", "Ana")
    }


def test_too_many_are_refused_and_too_short_a_talk_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    short = {"id": "short", "turns": TURNS[:2]}
    path.write_text("".join(json.dumps({**each, "questions": []}) + "\n" for each in (short, TALK)), encoding="utf-8")
    with pytest.raises(UsageError, match=f"at most {MOST_PLANTS}"):
        open_conversations(str(path), plant=MOST_PLANTS + 1)
    with pytest.warns(UserWarning, match="no facts planted into conversation 'short'"):
        result = evaluate_memory(["bm25"], str(path), plant=8, budgets=[500], answers=["reader"], progress=False)
    values = result.summary["bm25[budget=500]"]
    # The questions repeat the words of the facts: a word search finds each, and forgets and withholds none.
    assert (values["probe_fact"], values["probe_forget"], values["probe_secret"]) == (1.0, 0.0, 0.0)
    assert plant(TALK, MOST_PLANTS, seed=0)["questions"]
    path.write_text(json.dumps({"id": "short", "turns": [{"content": "Hello."}], "questions": []}))
    with (
        pytest.warns(UserWarning, match="it has 1 of the 4 turns"),
        pytest.raises(DataError, match="they are too short for --plant"),
    ):
        evaluate_memory(["bm25"], str(path), plant=8, progress=False)
    with pytest.raises(DataError, match="no conversation found"):
        evaluate_memory(["bm25"], [], progress=False)


HISTORY = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "What is my dog called?",
    "question_date": "2023/05/30 (Tue) 23:40",
    "answer": "Rex",
    "haystack_session_ids": ["s1"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21"],
    "haystack_sessions": [[{"role": "user", "content": "My dog is called Rex.", "has_answer": True}]],
    "answer_session_ids": ["s1"],
}


def test_what_never_read_a_real_record_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "longmemeval_s.json"
    path.write_text(json.dumps([HISTORY]), encoding="utf-8")
    said = "longmemeval follows its authors' format but was never tested on real records: check some with diff."
    for data, doubted in ((str(path), True), ("synthetic-memory:length=4000", False)):
        result = evaluate_memory(["bm25"], data, max_conversations=1, budgets=[500], progress=False)
        assert (said in " ".join(TableReporter().render(result).split())) is doubted
        assert (said in list_outcomes(result)) is doubted
    for name in DATASETS:
        listed = "not tested on real records" in summarize_component("memory_dataset", name)
        assert listed is (name in UNVERIFIED)
