"""ConvoMem, on shards made after the authors' description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.errors import DataError, UsageError
from context_bench.memory.datasets.question_histories import load_convomem as load


def _conversation(name: str, *texts: str) -> dict[str, Any]:
    messages = [{"speaker": "User" if i % 2 == 0 else "Assistant", "text": text} for i, text in enumerate(texts)]
    return {"id": name, "containsEvidence": True, "messages": messages}


def _item(person: str, *conversations: dict[str, Any]) -> dict[str, Any]:
    evidence = [{"speaker": "User", "text": conversation["messages"][0]["text"]} for conversation in conversations]
    return {
        "question": f"What about {person}?",
        "answer": "tea",
        "message_evidences": evidence,
        "conversations": list(conversations),
        "personId": person,
    }


ITEMS = [
    _item("ana", _conversation("1", "I drink tea.", "Fine."), _conversation("2", "Now coffee.", "Noted.")),
    *(_item(f"p{i}", _conversation(f"x{i}", f"remark {i}", "ok")) for i in range(5)),
]


def _write(folder: Path, kind: str = "changing_evidence", document: Any = None) -> Path:
    place = folder / "convomem" / "core_benchmark" / "evidence_questions" / kind / "2_evidence"
    place.mkdir(parents=True, exist_ok=True)
    (place / "shard.json").write_text(json.dumps({"evidence_items": ITEMS} if document is None else document))
    return folder


def test_evidence_lies_among_others_in_its_own_order(tmp_path: Path) -> None:
    first = next(iter(load(size=5, data_dir=_write(tmp_path))))
    (question,) = first["questions"]
    texts = {turn["id"]: turn["content"] for turn in first["turns"]}
    assert [texts[each] for each in question["evidence_ids"]] == ["I drink tea.", "Now coffee."]
    assert len({turn["session"] for turn in first["turns"]}) == 5
    assert first["meta"] == {"conversations": 5, "wanted": 5}
    assert next(iter(load(size=5, data_dir=tmp_path))) == first
    assert next(iter(load(size=5, data_dir=tmp_path, seed=1))) != first


def test_a_history_cannot_have_more_than_there_are(tmp_path: Path) -> None:
    first = next(iter(load(size=300, data_dir=_write(tmp_path))))
    assert first["meta"] == {"conversations": 7, "wanted": 300}


@pytest.mark.parametrize(
    ("folder", "kind", "rule", "unanswerable"),
    [
        ("changing_evidence", "changing", "update", False),
        ("user_evidence", "user", "exact", False),
        ("assistant_facts_evidence", "assistant_facts", "exact", False),
        ("preference_evidence", "preference", "rubric", False),
        ("implicit_connection_evidence", "implicit_connection", "rubric", False),
        ("abstention_evidence", "abstention", "exact", True),
    ],
)
def test_the_folder_names_the_type(tmp_path: Path, folder: str, kind: str, rule: str, unanswerable: bool) -> None:
    (question,) = next(iter(load(data_dir=_write(tmp_path, folder))))["questions"]
    assert (question["type"], question["rule"], question["unanswerable"]) == (kind, rule, unanswerable)
    assert list(load(data_dir=tmp_path, types="user")) == [] or kind == "user"


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="size must be an integer of at least 1"):
        load(size=0, data_dir=tmp_path)
    with pytest.raises(DataError, match="not a file of evidence_items"):
        list(load(data_dir=_write(tmp_path, document=[])))
    with pytest.raises(DataError, match="nor a folder names one of"):
        list(load(data_dir=_write(tmp_path / "x", "riddles")))
