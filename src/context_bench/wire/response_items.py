"""Items of OpenAI's Responses API: conversion to and from chat messages, and the events that stream them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from context_bench.wire.form import Reply, ToolCall, cut_arguments, cut_text
from context_bench.wire.prompts import Message, read_text

COMPACTIONS = ("compaction", "compaction_summary", "context_compaction")
"""Items that replace everything before them."""

_OPAQUE = ("reasoning", "item_reference", *COMPACTIONS)  # kept as blocks, with all fields that a model may read
_SERVER_FIELDS = ("id", "status", "type", "created_by")  # item fields that no model reads
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


def list_items(given: Any) -> list[Any]:
    """List the items of an input or output; an input may be a single text."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given) if isinstance(given, list) else []


def read_items(given: Any) -> list[Message]:
    """Convert items to chat messages. Tool calls are added to the preceding assistant message."""
    messages: list[Message] = []
    for item in list_items(given):
        call = _read_call(item)
        if call is None:
            messages.append(_read_message(item))
        elif messages and messages[-1].get("role") == "assistant" and not _is_block(messages[-1]):
            messages[-1] = {**messages[-1], "tool_calls": [*messages[-1].get("tool_calls", ()), call]}
        else:
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
    return messages


def _is_block(message: Message) -> bool:
    """Whether a message represents an item of another kind, and so cannot have calls."""
    content = message.get("content")
    return isinstance(content, list) and any(block.get("type") in _OPAQUE for block in content if _is_object(block))


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _read_call(item: Mapping[str, Any]) -> dict[str, Any] | None:
    if item.get("type") == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {"id": item.get("call_id"), "type": "function", "function": function}
    if item.get("type") == "custom_tool_call":
        custom = {"name": item.get("name"), "input": item.get("input")}
        return {"id": item.get("call_id"), "type": "custom", "custom": custom}
    return None


def _read_message(item: Mapping[str, Any]) -> Message:
    kind, rest = item.get("type"), {name: value for name, value in item.items() if name not in _SERVER_FIELDS}
    if kind in (None, "message") and "role" in item:
        return {**rest, "content": _read_content(item.get("content"))}
    if kind in ("function_call_output", "custom_tool_call_output"):
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": _read_content(item.get("output"))}
    if kind is None and item.keys() == {"id"}:
        kind = "item_reference"
    if kind in _OPAQUE:
        # Without its content, the server looks it up by id.
        kept = rest if rest.get("encrypted_content") or rest.get("content") else {"id": item.get("id"), **rest}
        content = {"content": _read_content(rest["content"])} if rest.get("content") else {}
        return {"role": "assistant", "content": [{"type": kind, **kept, **content}]}
    role = "tool" if str(kind).endswith("_output") else "assistant"
    return {"role": item.get("role", role), "content": [{"type": kind, "input": rest}]}


def _read_content(content: Any) -> Any:
    """Convert the parts of a content: input and output texts become text blocks, others stay unchanged."""
    if not isinstance(content, list):
        return content
    return [_read_part(part) for part in content]


def _read_part(part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    if part.get("type") == "refusal":
        return {"type": "refusal", "text": part.get("refusal")}
    if part.get("type") in _TEXTS:
        more = {name: value for name, value in part.items() if value and name not in ("type", "text", "logprobs")}
        return {"type": "text", "text": part.get("text"), **more}
    return dict(part)


def write_items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Convert chat messages to items: tool calls and results become separate items."""
    items: list[dict[str, Any]] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            output = read_text(content) if not isinstance(content, list) else _write_content(content, "input_text")
            items.append({"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output})
            continue
        calls = message.get("tool_calls") or ()
        if content or not calls:
            kind = "output_text" if role == "assistant" else "input_text"
            items.append({"type": "message", "role": role, "content": _write_content(content or "", kind)})
        for call in calls:
            if isinstance(call.get("custom"), Mapping):
                items.append({"type": "custom_tool_call", "call_id": call["id"], **call["custom"]})
                continue
            function = call["function"]
            item = {"name": function["name"], "arguments": function.get("arguments") or "{}"}
            items.append({"type": "function_call", "call_id": call["id"], **item})
    return items


def _write_content(content: Any, kind: str) -> Any:
    """Convert a content; images in chat form get the form of this API."""
    if not isinstance(content, list):
        return content
    parts = []
    for part in content:
        if part.get("type") == "text":
            part = {**part, "type": kind}
        elif part.get("type") == "image_url":
            image = part["image_url"]
            part = {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
        parts.append(part)
    return parts


# --- answers of the tap


def write_output(text: str, calls: Sequence[ToolCall], identity: str) -> list[dict[str, Any]]:
    """Return the items of an answer: its text, unless it has only calls, and its calls."""
    items: list[dict[str, Any]] = []
    if text or not calls:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        head = {"id": f"msg_{identity}", "type": "message", "status": "completed", "role": "assistant"}
        items.append({**head, "content": [part]})
    for number, call in enumerate(calls):
        named = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        items.append({"id": f"fc_{identity}_{number}", "type": "function_call", "status": "completed", **named})
    return items


def write_events(reply: Reply, whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed answer; `whole` is the same reply without streaming."""
    begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    calls = iter(reply.answer.tool_calls)
    for place, item in enumerate(whole["output"]):
        at = {"item_id": item["id"], "output_index": place}
        empty = {**item, "status": "in_progress", **({"content": []} if "content" in item else {"arguments": ""})}
        yield {"type": "response.output_item.added", "output_index": place, "item": empty}
        if "content" in item:
            yield from _write_text_events(reply, item["content"][0], {**at, "content_index": 0})
        else:
            for piece in cut_arguments(next(calls)):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
            done = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **at, **done}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _write_text_events(reply: Reply, part: Mapping[str, Any], at: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
    for piece in cut_text(reply, 0, part["text"]):
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}
