"""Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from context_bench.errors import UsageError
from context_bench.text import dump_json
from context_bench.utils.tokens import read_token_count
from context_bench.wire.form import (
    Completion,
    Demand,
    ModelReply,
    NotAReply,
    Recorded,
    Reply,
    Samples,
    StreamedReply,
    check_usage,
    cut_arguments,
    cut_text,
    ignore_zeros,
    split_counts,
)
from context_bench.wire.prompts import Message, Prompt, choose_tool, dump_body, normalize_json, read_messages, read_text

_VERSION = "2023-06-01"
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_NO_PARAMETERS = {"type": "object", "properties": {}}


def read_anthropic_usage(usage: Any) -> dict[str, Any]:
    """Read token counts; this API counts cached tokens separately, so the prompt is the sum of three counts."""
    if not isinstance(usage, (dict, Mapping)):
        return {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts, refused = split_counts(usage, names)
    rounds = usage.get("iterations")
    for each in rounds if isinstance(rounds, list) else ():
        if isinstance(each, Mapping) and each.get("type") == "compaction":  # billed in addition to the totals
            counts.update({name: counts.get(name, 0) + more for name, more in split_counts(each, names)[0].items()})
    ignored = {"ignored_usage": refused} if refused else {}
    if "input_tokens" not in counts:
        return ignored
    new, read, written = (counts.get(name, 0) for name in names[:3])
    if new + read + written == 0:
        return {"ignored_usage": ignore_zeros(counts, refused)[1]}
    numbers = {"prompt_tokens": new + read + written, "cached_tokens": read, "cache_creation_tokens": written}
    by_lifetime = usage.get("cache_creation")
    if isinstance(by_lifetime, Mapping) and (
        for_an_hour := read_token_count(by_lifetime.get("ephemeral_1h_input_tokens"))
    ):
        numbers["cache_creation_1h_tokens"] = min(written, for_an_hour)
    if "output_tokens" in refused:
        return {**numbers, **ignored}
    completion = counts.get("output_tokens", 0)
    total = numbers["prompt_tokens"] + completion
    return {**numbers, "completion_tokens": completion, "total_tokens": total, **ignored}


class _AnthropicMessages:
    """`/v1/messages`."""

    name = "anthropic"
    title = "Anthropic"
    route = "/messages"
    count_route: str | None = "/messages/count_tokens"
    key_variable = "ANTHROPIC_API_KEY"
    key_header = ("x-api-key", "{key}")
    headers: Mapping[str, str] = {"anthropic-version": _VERSION}
    default_model = "claude-haiku-4-5"
    default_max_tokens: int | None = 1024
    limit_fields: tuple[str, ...] = ("max_tokens",)
    prompt_fields: tuple[str, ...] = ("messages", "system", "tools")
    samples = Samples(
        model="claude-haiku-4-5-20251001",
        headers={"anthropic-version": _VERSION, "anthropic-beta": "token-counting-2024-11-01"},
        settings={
            "temperature": 0.37,
            "top_p": 0.91,
            "top_k": 17,
            "max_tokens": 321,
            "stop_sequences": ["END", "\n\n"],
            "service_tier": "standard_only",
        },
        caller={"metadata": {"user_id": "user-conformance"}},
        usage={"input_tokens": 12345, "output_tokens": 678, "cache_read_input_tokens": 4321},
        finish="max_tokens",
        end="message_stop",
        keeps_arguments=False,
    )

    # --- requests

    def build_request(
        self,
        model: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        temperature: float | None = None,
        max_tokens: int | None = None,
        limit_field: str | None = None,  # noqa: ARG002 - this API has only one name
        stream: bool = False,
    ) -> dict[str, Any]:
        """Build the body of a request, with system texts in `system`, and tool calls and results as blocks."""
        converted = _convert_messages(messages)
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": max_tokens,
            "system": "\n\n".join(read_text(each.get("content")) for each in messages if _is_system(each)) or None,
            "messages": converted,
            "temperature": temperature,
            "tools": [_convert_tool(tool) for tool in tools] or None,
        }
        if not tools and (used := _declare_used_tools(converted)):
            # The API rejects tool calls in the conversation unless their tools are declared.
            body |= {"tools": used, "tool_choice": {"type": "none"}}
        if stream:
            body["stream"] = True
        return {key: value for key, value in body.items() if value is not None}

    def build_image(self, text: str, kind: str, data: str) -> Message:
        source = {"type": "base64", "media_type": kind, "data": data}
        return {"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": text}]}

    def mark_request(self, body: Mapping[str, Any], mark: str) -> dict[str, Any]:
        return {**body, "metadata": {"user_id": mark, **(body.get("metadata") or {})}}

    def read_prompt(self, document: Mapping[str, Any]) -> Prompt | None:
        """Read the prompt of a request. The API drops everything before a compaction block with a summary."""
        prompt = read_messages(document)
        blocks = [
            (place, number)
            for place, message in enumerate(prompt.messages if prompt else ())
            if isinstance(message, Mapping) and isinstance(message.get("content"), list)
            for number, block in enumerate(message["content"])
            if isinstance(block, Mapping) and block.get("type") == "compaction" and block.get("content")
        ]
        if prompt is None or not blocks:
            return prompt
        place, number = blocks[-1]
        first = {**prompt.messages[place], "content": prompt.messages[place]["content"][number:]}
        return replace(prompt, messages=[first, *prompt.messages[place + 1 :]])

    def expand(
        self,
        document: Mapping[str, Any],
        find_exchange: Callable[[str], Recorded | None],  # noqa: ARG002 - each request contains its whole conversation
    ) -> Mapping[str, Any] | None:
        return document

    def find_demand(self, document: Mapping[str, Any]) -> Demand | None:
        choice = document.get("tool_choice")
        if not isinstance(choice, Mapping):
            return None
        found = choose_tool(document.get("tools"), choice.get("name"), any_tool=choice.get("type") == "any")
        return Demand(*found, is_tool=True) if found else None

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        return tool.get("input_schema")

    def read_tool_ids(self, messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        contents = [message.get("content") for message in messages]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        called = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        return called, [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]

    # --- replies

    def read_reply(self, document: Any) -> ModelReply:
        usage = read_anthropic_usage(document.get("usage")) if isinstance(document, dict) else {}
        try:
            blocks = list(document["content"])
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            calls = [
                {
                    "id": block["id"],
                    "type": "function",
                    "function": {"name": block["name"], "arguments": orjson.dumps(block["input"]).decode()},
                }
                for block in blocks
                if block["type"] == "tool_use"
            ]
            timings = dict(document.get("timings_of_stream", {}))
            return ModelReply(text, calls, document.get("stop_reason"), check_usage(usage, text or calls), timings)
        except (KeyError, TypeError):
            raise NotAReply("message", document, usage, "content") from None

    def read_completion(self, document: Mapping[str, Any]) -> Completion | None:
        if not isinstance(document.get("content"), list):
            return None
        identity = document.get("id")
        found = Completion(identity if isinstance(identity, str) else "", [read_text(document["content"])])
        for block in document["content"]:
            if isinstance(block, Mapping) and block.get("type") == "tool_use":
                name = block.get("name")
                arguments = normalize_json(dump_json(block.get("input")))
                found.calls.append((name if isinstance(name, str) else "", arguments))
        return found

    def list_edits(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the edits in `context_management`, and one compaction for each compaction block."""
        told = document.get("context_management")
        edits = told.get("applied_edits") if isinstance(told, Mapping) else None
        found = [dict(edit) for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list) else []
        content = document.get("content")
        blocks = [*(content if isinstance(content, list) else ()), document.get("content_block")]
        compactions = [each for each in blocks if isinstance(each, Mapping) and each.get("type") == "compaction"]
        return [*found, *({"type": "compaction"} for _ in compactions)]

    def add_event(self, stream: StreamedReply, event: Mapping[str, Any]) -> bool:
        kind = event.get("type")
        if kind == "message_start":
            stream.add_id(event["message"].get("id"))
            stream.add_text(None)
        elif kind == "content_block_start":
            block = event["content_block"]
            if block.get("type") == "tool_use":
                stream.add_call(event.get("index", 0), block.get("id"), block.get("name"), None)
            else:
                stream.add_text(block.get("text"))
        elif kind == "content_block_delta":
            delta = event["delta"]
            if delta.get("type") == "input_json_delta":
                stream.add_call(event.get("index", 0), None, None, delta.get("partial_json"))
            else:
                stream.add_text(delta.get("text"))
        elif kind == "message_delta":
            stream.finish = (event.get("delta") or {}).get("stop_reason") or stream.finish
        elif kind == "message_stop":
            stream.ended = True
        elif kind == "error" and isinstance(event.get("error"), Mapping):
            stream.error = str(event["error"].get("message"))
        elif kind not in ("content_block_stop", "ping"):
            return False
        if isinstance(usage := self.find_usage(event), Mapping):
            stream.usage = {**(stream.usage or {}), **usage}
        return True

    def join_stream(self, stream: StreamedReply) -> dict[str, Any]:
        blocks: list[dict[str, Any]] = [{"type": "text", "text": stream.text}] if stream.text else []
        for call in stream.list_calls():
            arguments = json.loads(call.arguments or "{}")
            blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
        return {"content": blocks, "stop_reason": stream.finish, "usage": stream.usage}

    def find_usage(self, document: Mapping[str, Any]) -> Any:
        message = document.get("message")
        return message.get("usage") if isinstance(message, Mapping) else document.get("usage")

    def read_usage(self, usage: Any) -> dict[str, Any]:
        return read_anthropic_usage(usage)

    # --- answers of the tap

    def write_reply(self, reply: Reply) -> dict[str, Any]:
        answer = reply.answer
        blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        blocks += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in answer.tool_calls
        ]
        return {
            "id": f"msg_{reply.id}",
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": blocks,
            "stop_reason": _STOP_REASONS.get(reply.finish, reply.finish),
            "stop_sequence": None,
            "usage": {"input_tokens": reply.usage[0], "output_tokens": reply.usage[1]},
            **answer.extra,
        }

    def write_events(self, reply: Reply) -> Iterator[bytes]:
        for document in _make_events(reply, self.write_reply(reply)):
            yield b"event: %s\ndata: %s\n\n" % (document["type"].encode(), dump_body(document))

    def write_error(self, kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}}


ANTHROPIC_MESSAGES = _AnthropicMessages()


def _is_system(message: Message) -> bool:
    return message.get("role") in ("system", "developer")


def _convert_messages(turns: Iterable[Message]) -> list[Message]:
    """Convert all messages except system messages; the tool results of one step become one message."""
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
        raise UsageError(f"the arguments of the call to {function['name']!r} are not a JSON object")
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _convert_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a tool definition; one in this API's form is returned unchanged."""
    if "input_schema" in tool or tool.get("type", "function") != "function":
        return dict(tool)
    function = tool.get("function", tool)
    schema = function.get("parameters") or _NO_PARAMETERS
    return {"name": function["name"], "description": function.get("description", ""), "input_schema": schema}


def _declare_used_tools(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Make a minimal definition of each tool that the converted messages call."""
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    names = {block.get("name"): None for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"}
    return [{"name": name, "input_schema": _NO_PARAMETERS} for name in names]


def _make_events(reply: Reply, whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    calls = iter(reply.answer.tool_calls)
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in cut_text(reply, 0, block["text"])]
        else:
            empty = {**block, "input": {}}
            pieces = cut_arguments(next(calls))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": reply.usage[1]}}
    yield {"type": "message_stop"}
