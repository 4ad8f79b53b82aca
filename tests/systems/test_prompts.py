"""From an example to the messages that a model is sent."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.errors import UsageError
from context_bench.systems.prompts import build_messages, merge, open_turns, task_text

USER, ASSISTANT = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    ("example", "text"),
    [
        ({"question": "Why?"}, "Why?"),
        ({"prompt": "Write."}, "Write."),
        ({"question": "Why?", "prompt": "Write."}, "Why?"),
        ({"question": "Which?", "choices": ["red", "green"]}, "Which?\n\nA. red\nB. green"),
        ({"question": "Which?", "choices": ["x"], "instruction": "One letter."}, "Which?\n\nA. x\n\nOne letter."),
        ({"question": None, "choices": None, "instruction": None}, ""),
        ({}, ""),
    ],
)
def test_what_is_asked(example: dict[str, Any], text: str) -> None:
    assert task_text(example) == text


def test_options_are_lettered_to_the_end() -> None:
    lines = task_text({"question": "?", "choices": [str(number) for number in range(10)]}).splitlines()
    assert lines[-1] == "J. 9"


def test_the_gold_is_never_sent() -> None:
    example = {
        "id": "ID",
        "context": "C",
        "question": "Q",
        "answer": "GOLD",
        "answers": ["GOLD"],
        "correct_letter": "GOLD",
    }
    for framing in ("system", "user", "tool"):
        assert "GOLD" not in str(build_messages({**example, "framing": framing}, "S"))


def test_by_default_the_context_is_the_system_message() -> None:
    messages = build_messages({"context": "C", "question": "Q"})
    assert messages == [{"role": "system", "content": "C"}, {"role": "user", "content": "Q"}]
    assert build_messages({"context": "C", "question": "Q", "framing": "system"}) == messages
    assert build_messages({"context": "C", "question": "Q"}, "S")[0] == {"role": "system", "content": "S\n\nC"}


def test_framed_by_the_user() -> None:
    messages = build_messages({"context": "C", "question": "Q", "framing": "user"}, "S")
    assert messages == [{"role": "system", "content": "S"}, {"role": "user", "content": "C\n\nQ"}]


def test_framed_as_the_result_of_a_tool() -> None:
    asked, called, result = build_messages({"context": "C", "question": "Q", "framing": "tool"})
    assert asked == {"role": "user", "content": "Q"}
    assert called["role"] == "assistant"
    assert (result["role"], result["content"]) == ("tool", "C")
    assert result["tool_call_id"] == called["tool_calls"][0]["id"]


@pytest.mark.parametrize("framing", ["system", "user", "tool"])
def test_without_a_question_the_context_is_the_message_and_without_a_context_the_question(framing: str) -> None:
    assert build_messages({"context": "C", "framing": framing}) == [{"role": "user", "content": "C"}]
    assert build_messages({"context": "", "question": "Q", "framing": framing}) == [{"role": "user", "content": "Q"}]


def test_an_unknown_framing() -> None:
    with pytest.raises(UsageError, match="framing must be one of system, user, tool \\(got 'letter'\\)"):
        build_messages({"context": "C", "question": "Q", "framing": "letter"})


def test_a_conversation_is_sent_as_it_is() -> None:
    turns = [USER, {**ASSISTANT, "tool_calls": [1]}, USER]
    messages = build_messages({"context": "C", "question": "Q", "turns": turns}, "S")
    assert messages == [{"role": "system", "content": "S"}, *turns]
    messages[1]["content"] = "changed"
    assert USER["content"] == "u"


@pytest.mark.parametrize(
    ("turns", "count"),
    [
        ([], 0),
        ([USER], 1),
        ([USER, ASSISTANT], 0),
        ([USER, ASSISTANT, USER], 1),
        ([USER, USER], 2),
        ([{"role": "system", "content": "s"}, USER, USER, ASSISTANT], 1),
    ],
)
def test_turns_that_wait_for_a_reply(turns: list[dict[str, Any]], count: int) -> None:
    assert open_turns(turns) == count


def test_what_a_system_returned_replaces_what_was_there() -> None:
    example = {"id": 1, "context": "long", "question": "Q", "choices": ["a"]}
    assert merge(example, {"context": "short"}) == {**example, "context": "short"}
    assert merge(example, {"context": "short", "question": "R"})["question"] == "R"
    assert example["context"] == "long"


def test_a_new_context_stands_for_the_conversation_too() -> None:
    example = {"id": 1, "context": "long", "turns": [USER]}
    assert "turns" not in merge(example, {"context": "short"})
    assert merge(example, {"context": "long"})["turns"] == [USER]
    assert merge(example, {"context": "short", "turns": [ASSISTANT]})["turns"] == [ASSISTANT]


def test_a_context_that_was_changed_stands_for_the_conversation() -> None:
    example = {"id": 1, "context": "long", "turns": [{"role": "user", "content": "long"}]}
    assert "turns" not in merge(example, {"context": "short"})
    assert "turns" not in merge(example, {**example, "context": "short"})
    assert merge(example, {**example})["turns"] == example["turns"]
    changed = [{"role": "user", "content": "short"}]
    assert merge(example, {**example, "context": "short", "turns": changed})["turns"] == changed
