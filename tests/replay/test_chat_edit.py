"""Requests of other APIs through functions over chat messages: what is edited, and what comes back as it was."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from context_bench.errors import DataError
from context_bench.replay.chat_edit import edit_as_chat

CACHED = {"cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "s"}
ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "system": [{"type": "text", "text": "Be brief.", **CACHED}],
    "tools": [{"name": "read", "description": "Read.", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "Read both."},
        {
            "role": "assistant",
            "content": [
                THOUGHT,
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "t2", "name": "read", "input": {"path": "b"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "of a"},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "of b"}], **CACHED},
                {"type": "text", "text": "And now?"},
            ],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "m",
    "instructions": "Be brief.",
    "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}],
    "input": [
        {"role": "user", "content": "Read both."},
        {"type": "reasoning", "id": "r1", "summary": []},
        {"type": "function_call", "call_id": "t1", "name": "read", "arguments": '{"path":"a"}'},
        {"type": "function_call", "call_id": "t2", "name": "read", "arguments": '{"path":"b"}'},
        {"type": "function_call_output", "call_id": "t1", "output": "of a"},
        {"type": "function_call_output", "call_id": "t2", "output": "of b"},
        {"role": "user", "content": "And now?"},
    ],
}
BODIES = pytest.mark.parametrize(("api", "body"), [("anthropic", ANTHROPIC), ("responses", RESPONSES)])


@BODIES
def test_what_is_left_alone_comes_back_as_it_was(api: str, body: dict[str, Any]) -> None:
    seen: list[Any] = []

    def look(messages: list[Any], tools: list[Any]) -> tuple[list[Any], list[Any]]:
        seen.extend(messages)
        return copy.deepcopy(messages), copy.deepcopy(tools)

    assert edit_as_chat(api, body, look) == body
    assert [each["role"] for each in seen] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [call["id"] for call in seen[2]["tool_calls"]] == ["t1", "t2"]


@BODIES
def test_a_shortened_result_keeps_its_place_and_its_breakpoint(api: str, body: dict[str, Any]) -> None:
    def shorten(messages: list[Any], tools: list[Any]) -> tuple[list[Any], list[Any]]:
        return [{**each, "content": "cut"} if each.get("tool_call_id") == "t2" else each for each in messages], tools

    expected = copy.deepcopy(body)
    if api == "anthropic":
        expected["messages"][2]["content"][1]["content"] = "cut"
    else:
        expected["input"][5]["output"] = "cut"
    assert edit_as_chat(api, body, shorten) == expected


@BODIES
def test_messages_that_are_dropped_added_and_rewritten(api: str, body: dict[str, Any]) -> None:
    def rewrite(messages: list[Any], tools: list[Any]) -> tuple[list[Any], list[Any]]:
        told = {"role": "system", "content": "Be kind."}
        return [told, {"role": "user", "content": "Summary."}, messages[-1]], tools

    made = edit_as_chat(api, body, rewrite)
    where, told = ("messages", "system") if api == "anthropic" else ("input", "instructions")
    said = [each["content"] for each in made[where]]
    assert said[-2] == "Summary."
    assert said[-1] in ("And now?", [{"type": "text", "text": "And now?"}])
    assert "Be kind." in (made.get(told), said[0])
    assert "Be brief." not in str(made)
    assert made["tools"] == body["tools"]


def test_an_image_is_an_error() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}
    body = {"messages": [{"role": "user", "content": [image]}]}
    with pytest.raises(DataError, match="which chat completions cannot represent"):
        edit_as_chat("anthropic", body, lambda messages, tools: (messages, tools))
