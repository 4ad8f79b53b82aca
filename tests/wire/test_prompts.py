"""What a request asks a model to read, in the forms of both APIs."""

from __future__ import annotations

import json

import pytest

from context_bench.utils.tokens import count_tokens
from context_bench.wire.forms import read_prompt
from context_bench.wire.prompts import Prompt


def words(text: str) -> int:
    return len(text.split())


OPENAI = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "one two"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "three four five"}, {"type": "image_url", "image_url": {}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "six"},
    ],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
ANTHROPIC = {
    "system": [{"type": "text", "text": "one two"}],
    "messages": [
        {"role": "user", "content": "three four"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "five six seven"}]}
            ],
        },
    ],
    "tools": [{"name": "g", "input_schema": {}}],
}


def test_texts_of_openai_in_order() -> None:
    prompt = read_prompt(json.dumps(OPENAI))
    assert prompt is not None
    assert prompt.texts() == [
        "one two",
        "three four five",
        '{"id":"c","function":{"name":"f","arguments":"{}"}}',
        "six",
    ]
    assert prompt.tool_names() == ["f"]


def test_texts_of_anthropic_in_order() -> None:
    prompt = read_prompt(ANTHROPIC)
    assert prompt is not None
    assert prompt.texts() == ["one two", "three four", '{"a":1}', "five six seven"]
    assert prompt.tool_names() == ["g"]


def test_tokens_are_texts_and_tools() -> None:
    prompt = read_prompt(OPENAI)
    assert prompt is not None
    # 2 + 3 + 1 (the call is one word of JSON) + 1, and the tool as one word of JSON.
    assert prompt.tokens(words) == 8


@pytest.mark.parametrize("body", ["", "no json", "[]", "{}", '{"messages": "text"}', b"\xff", '{"messages": null}'])
def test_what_holds_no_prompt(body: str | bytes) -> None:
    assert read_prompt(body) is None


def test_equal_when_the_json_is() -> None:
    compact, spaced = json.dumps(OPENAI, separators=(",", ":")), json.dumps(OPENAI, indent=4)
    assert read_prompt(compact) == read_prompt(spaced)
    changed = {**OPENAI, "tools": []}
    assert read_prompt(changed) != read_prompt(compact)
    assert read_prompt({**OPENAI, "temperature": 1}) == read_prompt(compact)  # it is not read


@pytest.mark.parametrize("tools", [None, "text", [1, None, {"function": 3}, {"name": 4}]])
def test_hostile_tools(tools: object) -> None:
    prompt = read_prompt({"messages": [], "tools": tools})
    assert prompt is not None
    assert prompt.tool_names() == []


def test_hostile_messages() -> None:
    prompt = Prompt(messages=[1, None, {"content": 5}, {"content": [3, {"text": 4}]}, {"tool_calls": None}])
    assert prompt.texts() == []
    assert prompt.tokens(words) == 0


@pytest.mark.parametrize("depth", [100, 300, 1000, 100_000])
def test_deep_nesting_ends_nothing(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    body = f'{{"messages": [{{"content": {deep}, "tool_calls": [{deep}]}}], "tools": [{deep}]}}'
    prompt = read_prompt(body)
    assert prompt is None or prompt.tokens(words) >= 0


def test_half_a_surrogate_pair_is_read() -> None:
    prompt = read_prompt('{"messages": [{"role": "user", "content": "one \\ud800 two"}]}')
    assert prompt is not None
    assert prompt.texts() == ["one \ud800 two"]
    assert prompt.tokens(count_tokens) > 2
