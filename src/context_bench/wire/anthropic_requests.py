"""Messages and tools in Anthropic's form, made from OpenAI's, which examples are written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from context_bench.errors import UsageError
from context_bench.wire.requests import read_text

__all__ = ["convert_messages", "convert_tool", "declare_used_tools", "join_system"]

Message = dict[str, Any]

_NO_PARAMETERS = {"type": "object", "properties": {}}


def join_system(turns: Iterable[Message]) -> str | None:
    """Join the texts of all system messages, which this API takes apart from the others; None without any."""
    return "\n\n".join(read_text(turn.get("content")) for turn in turns if _is_system(turn)) or None


def convert_messages(turns: Iterable[Message]) -> list[Message]:
    """Convert all but the system messages: tool calls and results become content blocks.

    The results of one step stand together in one message, as this API wants them.
    """
    messages: list[Message] = []
    results: list[dict[str, Any]] = []
    for turn in turns:
        if _is_system(turn):
            continue
        if turn.get("role") != "tool":
            results = []
            messages.append(_convert_message(turn))
            continue
        if not results:
            messages.append({"role": "user", "content": results})
        block = {"type": "tool_result", "tool_use_id": turn.get("tool_call_id"), "content": turn.get("content") or ""}
        results.append(block)
    return messages


def convert_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a tool on offer; one that has Anthropic's form already is returned as it is."""
    if "input_schema" in tool or tool.get("type", "function") != "function":
        return dict(tool)
    function = tool.get("function", tool)
    schema = function.get("parameters") or _NO_PARAMETERS
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def declare_used_tools(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Make a bare declaration of each tool that converted messages call."""
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    names = {block.get("name"): None for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"}
    return [{"name": name, "input_schema": _NO_PARAMETERS} for name in names]


def _is_system(message: Message) -> bool:
    return message.get("role") in ("system", "developer")


def _convert_message(turn: Message) -> Message:
    content = turn.get("content") or ""
    if not turn.get("tool_calls"):
        return {"role": turn.get("role"), "content": content}
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else list(content)
    return {"role": "assistant", "content": [*blocks, *map(_convert_call, turn["tool_calls"])]}


def _convert_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            arguments = None
    if not isinstance(arguments, dict):
        raise UsageError(f"the arguments of a call of {function['name']!r} are not a JSON object")
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}
