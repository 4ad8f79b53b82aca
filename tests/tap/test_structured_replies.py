"""Replies of a script to requests that demand JSON, a schema or a tool."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.tap.answering import Incoming
from context_bench.tap.rules import fill_schema
from context_bench.tap.scripted import Scripted

FACTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "facts": {"type": "array", "items": {"$ref": "#/$defs/Fact"}},
        "sure": {"type": "boolean"},
        "kind": {"enum": ["person", "place"]},
        "year": {"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 1}]},
    },
    "$defs": {
        "Fact": {"type": "object", "properties": {"text": {"type": ["null", "string"]}, "weight": {"type": "number"}}}
    },
}
FILLED = {"facts": [{"text": "Hi", "weight": 0}], "sure": False, "kind": "person", "year": 1}


def answer(script: Scripted, path: str = "/v1/chat/completions", **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **fields}
    reply = asyncio.run(script.answer(Incoming("POST", path, "", {}, json.dumps(body).encode())))
    assert isinstance(reply.body, bytes)
    assert reply.status == 200
    return json.loads(reply.body)


def text(document: Any) -> Any:
    return json.loads(document["choices"][0]["message"]["content"])


def schema(name: str = "Facts") -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": FACTS}}


def test_a_schema_is_filled_with_what_the_script_says() -> None:
    assert fill_schema(FACTS, "Hi") == FILLED
    document = answer(Scripted.from_text("echo"), response_format=schema())
    assert text(document) == FILLED
    assert document["usage"]["completion_tokens"] > 0


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    tree = {"$ref": "#/$defs/T", "$defs": {"T": {"type": "object", "properties": {"next": {"$ref": "#/$defs/T"}}}}}
    assert "next" in fill_schema(tree, "x")


def test_json_without_a_schema_is_an_object() -> None:
    assert text(answer(Scripted.from_text("echo"), response_format={"type": "json_object"})) == {
        "text": "Hi",
        "memory": [{"text": "Hi"}],  # the form that mem0 reads
    }


def test_a_script_that_answers_in_json_is_left_alone() -> None:
    assert text(answer(Scripted.from_text('text:{"memory": []}'), response_format={"type": "json_object"})) == {
        "memory": []
    }


def test_rules_are_chosen_by_the_name_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "rules.jsonl"
    path.write_text(
        '{"schema": "People", "reply": "{\\\\"people\\\\": []}"}\n{"reply": "anything else"}\n'.replace("\\\\", "\\")
    )
    script = Scripted.from_text(str(path))
    assert text(answer(script, response_format=schema("People"))) == {"people": []}
    assert text(answer(script, response_format=schema("Places")))["facts"][0]["text"] == "anything else"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "keep"}}])
def test_a_tool_that_is_demanded_is_called(choice: Any) -> None:
    tools = [{"type": "function", "function": {"name": "keep", "parameters": FACTS}}]
    message = answer(Scripted.from_text("echo"), tools=tools, tool_choice=choice)["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert call["function"]["name"] == "keep"
    assert json.loads(call["function"]["arguments"]) == FILLED


def test_a_tool_that_is_demanded_in_the_other_api() -> None:
    tools = [{"name": "keep", "input_schema": FACTS}]
    choice = {"type": "tool", "name": "keep"}
    document = answer(Scripted.from_text("echo"), "/v1/messages", tools=tools, tool_choice=choice, max_tokens=9)
    (block,) = [each for each in document["content"] if each["type"] == "tool_use"]
    assert block["input"] == FILLED


@pytest.mark.parametrize(
    "fields",
    [{}, {"tools": [{"type": "function", "function": {"name": "keep"}}]}, {"response_format": {"type": "text"}}],
)
def test_who_demands_nothing_gets_the_answer_as_it_is(fields: dict[str, Any]) -> None:
    assert answer(Scripted.from_text("echo"), **fields)["choices"][0]["message"]["content"] == "Hi"
