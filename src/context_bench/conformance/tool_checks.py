"""Checks of tools: what is on offer, what is called, and what came of it all stay what they were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from context_bench.conformance.bench import Bench, user_message
from context_bench.conformance.check_definition import CheckFailed, check, require
from context_bench.conformance.forms import Said
from context_bench.conformance.tool_schemas import find_flaw
from context_bench.wire.replies import Answer, ToolCall

__all__ = ["calls_plain", "calls_streamed", "pairs", "schemas"]

_CALLS = [
    ToolCall(
        "call_Zk3xPq81",
        "book_table",
        '{"guests": 4, "name": "Zoë \\"Zed\\" O\'Neill", "when": {"day": "2026-11-20", "slots": [1.0, 2.5, null]}}',
    ),
    ToolCall(
        "call_7hTTwB02", "send_note", '{"id": 9007199254740993, "text": "line\\nbreak, 漢字, \\u0001 and </tag>"}'
    ),
]

_SCHEMAS: dict[str, dict[str, Any]] = {
    "book_table": {
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "minimum": 1, "description": "How many people come."},
            "name": {"type": "string", "description": "Who books."},
            "room": {"type": "string", "enum": ["garden", "hall", "bar"]},
            "when": {
                "type": "object",
                "properties": {"day": {"type": "string"}, "slots": {"type": "array", "items": {"type": "number"}}},
                "required": ["day"],
            },
        },
        "required": ["guests", "name"],
        "additionalProperties": False,
    },
    "send_note": {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "text": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["id"],
    },
}


@check("tool calls in replies intact", "Do ids, names and JSON arguments of tool calls come back as they were?")
async def calls_plain(bench: Bench) -> None:
    _compare(bench, (await bench.ask(Answer(tool_calls=_CALLS), tools=_build_tools(bench))).read_reply())


@check("streamed tool calls intact", "Do the pieces of streamed tool calls join to the same ids, names and arguments?")
async def calls_streamed(bench: Bench) -> None:
    _compare(bench, (await bench.ask(Answer(tool_calls=_CALLS), tools=_build_tools(bench), stream=True)).read_reply())


def _compare(bench: Bench, said: Said) -> None:
    """Fail where a call was lost or changed; a difference in the spelling of the same JSON is a note."""
    sent, arrived = _describe_calls(_CALLS), _describe_calls(said.calls)
    require(len(said.calls) == len(_CALLS), "the number of tool calls was changed", sent, arrived)
    for ours, theirs in zip(_CALLS, said.calls):
        require(ours.id == theirs.id, "the id of a tool call was changed", sent, arrived)
        require(ours.name == theirs.name, "the name of a called tool was changed", sent, arrived)
        try:
            same = json.loads(theirs.arguments) == json.loads(ours.arguments)
        except (ValueError, TypeError):
            raise CheckFailed("the arguments of a tool call are not JSON any more", sent, arrived) from None
        require(same, "the arguments of a tool call were changed", sent, arrived)
        if bench.form.api == "openai" and ours.arguments != theirs.arguments:
            bench.note("writes the JSON of tool arguments in another way")


def _describe_calls(calls: list[ToolCall]) -> list[dict[str, str]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def _build_tools(bench: Bench) -> list[dict[str, Any]]:
    return [
        bench.form.build_tool(name, f"Use it to {name.replace('_', ' ')}.", schema) for name, schema in _SCHEMAS.items()
    ]


@check("tools reach upstream", "Are all tools on offer upstream, with schemas that are valid and ask for the same?")
async def schemas(bench: Bench) -> None:
    tools = _build_tools(bench)
    exchange = await bench.ask(Answer("ok"), user_message("Book a table for four."), tools=tools)
    prompt = exchange.prompt
    received = dict(zip(prompt.tool_names(), (tool for tool in prompt.tools if isinstance(tool, Mapping))))
    for name, tool in zip(_SCHEMAS, tools):
        require(name in received, f"the tool {name!r} did not reach the upstream", tool, sorted(received))
        flaw = find_flaw(_SCHEMAS[name], bench.form.read_schema(received[name]))
        require(flaw is None, f"the schema of {name!r}: {flaw}", tool, received[name])
        if received[name] != tool:
            bench.note("rewords the descriptions of tools")
    exchange.read_reply()


@check(
    "tool results keep their ids", "Do calls and results of a conversation reach the model with ids that still pair?"
)
async def pairs(bench: Bench) -> None:
    results = ["Booked for four.", "The note was sent."]
    history = bench.form.build_tool_exchange(_CALLS, results)
    exchange = await bench.ask(
        Answer("Done."), user_message("Book and tell them."), *history, tools=_build_tools(bench)
    )
    messages = exchange.prompt.messages
    ids = [call.id for call in _CALLS]
    for whose, found in zip(("the assistant's calls", "the tools' results"), bench.form.read_tool_ids(messages)):
        require(found == ids, f"{whose} are not upstream with their ids", history, messages)
    exchange.read_reply()
