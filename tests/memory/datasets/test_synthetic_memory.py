"""Histories with exact gold: the same bytes for a seed, any length, every probe backed by the turns that it names."""

from __future__ import annotations

import calendar
import hashlib
import re
from collections import Counter
from datetime import date
from typing import Any

import orjson
import pytest

from context_bench.errors import UsageError
from context_bench.memory.conversations import Conversation, Question
from context_bench.memory.datasets.synthetic_memory import TYPES, load, make_conversation
from context_bench.utils.tokens import count_tokens

CONVERSATION = make_conversation(8_000, 0, 0)


def _list_questions(kind: str, conversation: Conversation = CONVERSATION) -> list[Question]:
    found = [question for question in conversation["questions"] if question["probe"]["kind"] == kind]
    assert found
    return found


def _read_evidence(question: Question, conversation: Conversation = CONVERSATION) -> list[Any]:
    by_id = {turn["id"]: turn for turn in conversation["turns"]}
    return [by_id[each] for each in question["evidence_ids"]]


def test_a_seed_gives_the_same_bytes_everywhere() -> None:
    digest = hashlib.sha256(orjson.dumps(CONVERSATION)).hexdigest()
    assert digest == hashlib.sha256(orjson.dumps(make_conversation(8_000, 0, 0))).hexdigest()
    assert digest != hashlib.sha256(orjson.dumps(make_conversation(8_000, 1, 0))).hexdigest()


@pytest.mark.parametrize("length", [4_000, 16_000, 200_000])
def test_the_history_has_about_the_length_that_was_asked_for(length: int) -> None:
    turns = make_conversation(length, 0, 0)["turns"]
    assert sum(count_tokens(turn["content"]) for turn in turns) == pytest.approx(
        length, rel=0.35 if length < 9000 else 0.03
    )


def test_every_type_of_question_is_asked() -> None:
    counts = Counter(question["type"] for question in CONVERSATION["questions"])
    assert set(counts) == set(TYPES)
    assert counts["single_hop"] == counts["abstention"] == 6
    assert counts["forget"] == 6


def test_ids_are_unique_and_turns_are_in_order() -> None:
    turns = CONVERSATION["turns"]
    assert len({turn["id"] for turn in turns}) == len(turns)
    assert len({question["id"] for question in CONVERSATION["questions"]}) == len(CONVERSATION["questions"])
    times = [turn["timestamp"] or "" for turn in turns]
    assert times == sorted(times)
    assert {turn["role"] for turn in turns} == {"user", "assistant"}


@pytest.mark.parametrize("kind", ["fact", "update", "as_of", "contradiction", "forget_neighbour", "leak", "secret"])
def test_the_evidence_states_the_answer(kind: str) -> None:
    for question in _list_questions(kind):
        (turn,) = _read_evidence(question)
        assert question["answer"] in turn["content"]
        assert turn["user"] == question["user"]


@pytest.mark.parametrize("kind", ["multi_hop", "aggregation", "temporal"])
def test_what_must_be_found_stands_in_the_evidence(kind: str) -> None:
    for question in _list_questions(kind):
        text = "\n".join(turn["content"] for turn in _read_evidence(question))
        assert all(each in text for each in question["probe"]["present"])


def test_an_old_value_was_true_on_the_day_that_is_asked_about() -> None:
    months = ["", *list(calendar.month_name)[1:]]
    for now, then in zip(_list_questions("update"), _list_questions("as_of")):
        (new,), (old,) = _read_evidence(now), _read_evidence(then)
        day, month, year = re.findall(r"on (\d+) (\w+) (\d+)\?", then["question"])[0]
        asked = date(int(year), months.index(month), int(day)).isoformat()
        assert old["timestamp"][:10] < asked < new["timestamp"][:10]
        assert now["probe"]["absent"] == [then["answer"]]
        assert then["probe"]["absent"] == [now["answer"]]


def test_days_are_counted_from_the_dates_of_the_turns() -> None:
    for question in _list_questions("temporal"):
        days = [date.fromisoformat(turn["timestamp"][:10]) for turn in _read_evidence(question)]
        if "between" in question["question"]:
            assert question["answers"][1] == str((days[1] - days[0]).days)
        elif "ago" in question["question"]:
            assert question["answers"][1] == str((date.fromisoformat(question["date"]) - days[0]).days)
            assert str(date.fromisoformat(question["date"]).year) in question["question"]
        else:
            assert question["answer"] in _read_evidence(question)[0]["content"]


def test_a_request_to_forget_comes_after_the_fact_and_does_not_repeat_it() -> None:
    turns = CONVERSATION["turns"]
    requests = [place for place, turn in enumerate(turns) if "forget" in turn]
    hidden = {question["probe"]["absent"][0] for question in _list_questions("forget")}
    assert len(requests) == len(hidden) == 2
    for value in hidden:
        (told,) = [place for place, turn in enumerate(turns) if value in turn["content"]]
        assert any(place > told and turns[place]["forget"]["what"] in turns[told]["content"] for place in requests)


def test_a_stranger_has_facts_about_people_of_the_same_name() -> None:
    for question in _list_questions("leak"):
        (canary,) = question["probe"]["absent"]
        (turn,) = [turn for turn in CONVERSATION["turns"] if canary in turn["content"]]
        assert turn["user"] != question["user"]
        name = re.findall(r"neighbour (\w+)", question["question"])[0]
        assert name in turn["content"]


def test_no_text_has_the_word_of_an_instruction_in_capitals() -> None:
    for question in _list_questions("instruction"):
        (word,) = question["probe"]["absent"]
        assert not any(word in turn["content"] for turn in CONVERSATION["turns"])
        assert any(word.lower() in turn["content"] for turn in CONVERSATION["turns"])


def test_no_value_is_told_twice() -> None:
    values = Counter(value for turn in CONVERSATION["turns"] for value in re.findall(r"\b\d{6}\b", turn["content"]))
    assert values
    assert set(values.values()) == {1}


def test_unanswerable_questions_are_paired_and_ask_for_what_nobody_told() -> None:
    for question in _list_questions("abstention"):
        assert question["unanswerable"]
        assert "answer" not in question
        thing = re.findall(r"for (the .+)\?", question["question"])[0]
        assert not any(thing in turn["content"] for turn in CONVERSATION["turns"])
        (partner,) = [
            each for each in CONVERSATION["questions"] if each.get("pair") == question["pair"] and each is not question
        ]
        assert not partner["unanswerable"]


def test_conversations_and_types_are_chosen() -> None:
    dataset = load(length=4_000, n=2, types="temporal,multi-hop")
    assert len(dataset) == 2
    conversations = list(dataset)
    assert [each["id"] for each in conversations] == ["synthetic-0-0", "synthetic-0-1"]
    assert {question["type"] for each in conversations for question in each["questions"]} == {"temporal", "multi_hop"}
    assert conversations == list(dataset)


@pytest.mark.parametrize("length", [0, 3_999, 10_000_001, 8000.0, True])
def test_a_length_that_cannot_be_made_is_refused(length: object) -> None:
    with pytest.raises(UsageError, match="length must be an integer from 4000 to 10000000"):
        load(length=length)


def test_an_unknown_type_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="has no questions of type 'tempral'; did you mean temporal"):
        load(types=["tempral"])
