"""Anthropic's messages as the checks speak them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.conformance.bench import CheckFailed
from context_bench.conformance.forms import KEY, Message, Said
from context_bench.wire.dialects import Dialect
from context_bench.wire.replies import ToolCall

__all__ = ["Anthropic"]


class Anthropic:
    """Messages."""

    api: Dialect = "anthropic"
    path = "/v1/messages"
    model = "claude-haiku-4-5-20251001"
    key = ("x-api-key", KEY)
    headers: Mapping[str, str] = {"anthropic-version": "2023-06-01", "anthropic-beta": "token-counting-2024-11-01"}
    settings: Mapping[str, Any] = {
        "temperature": 0.37,
        "top_p": 0.91,
        "top_k": 17,
        "max_tokens": 321,
        "stop_sequences": ["END", "\n\n"],
        "service_tier": "standard_only",
    }
    caller: Mapping[str, Any] = {"metadata": {"user_id": "user-conformance"}}
    usage: Mapping[str, int] = {"input_tokens": 12345, "output_tokens": 678, "cache_read_input_tokens": 4321}

    def build_request(self, messages: Sequence[Message], **fields: Any) -> dict[str, Any]:
        """Build the body of a request; the system prompt has a field of its own."""
        system = [message["content"] for message in messages if message["role"] == "system"]
        rest = [message for message in messages if message["role"] != "system"]
        body = {"model": self.model, "max_tokens": 1024, "messages": rest, **fields}
        return {**body, "system": "\n\n".join(system)} if system else body

    def build_tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Build a tool definition."""
        return {"name": name, "description": description, "input_schema": schema}

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        """Read the schema of a tool's arguments."""
        return tool.get("input_schema")

    def build_image(self, text: str, kind: str, data: str) -> Message:
        """Build a message with a text and an image."""
        source = {"type": "base64", "media_type": kind, "data": data}
        return {"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": text}]}

    def build_tool_exchange(self, calls: Sequence[ToolCall], results: Sequence[str]) -> list[Message]:
        """Build calls of the assistant and their results."""
        called = [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
            for call in calls
        ]
        answered = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in zip(calls, results)
        ]
        return [{"role": "assistant", "content": called}, {"role": "user", "content": answered}]

    def read_tool_ids(self, messages: Sequence[Message]) -> tuple[list[Any], list[Any]]:
        """Read the ids of the calls and of the results in a conversation."""
        contents = [message.get("content") for message in messages]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        called = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        return called, [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]

    def read_reply(self, document: Any) -> Said:
        """Read what a reply says."""
        try:
            blocks = document["content"]
            text = "".join(block["text"] for block in blocks if block["type"] == "text")
            calls = [
                ToolCall(block["id"], block["name"], json.dumps(block["input"], ensure_ascii=False))
                for block in blocks
                if block["type"] == "tool_use"
            ]
            return Said(text, calls, document.get("usage") or {}, document.get("stop_reason"))
        except (KeyError, TypeError, AttributeError):
            raise CheckFailed("the reply is not a message", None, document) from None

    def read_stream(self, events: Iterable[Any]) -> Said:
        """Read what the events of a stream say together."""
        said, calls = Said(ended=False), dict[int, list[str]]()
        for event in events:
            kind, delta = event.get("type"), event.get("delta") or {}
            if kind == "message_stop":
                said.ended = True
            elif kind == "content_block_start" and event["content_block"].get("type") == "tool_use":
                calls[event["index"]] = [event["content_block"]["id"], event["content_block"]["name"], ""]
            elif kind == "content_block_delta" and delta.get("type") == "input_json_delta":
                calls[event["index"]][2] += delta["partial_json"]
            elif kind == "content_block_delta":
                said.text += delta.get("text", "")
            usage = (event.get("message") or {}).get("usage") or event.get("usage") or {}
            said.usage = {**said.usage, **usage}
            said.finish = delta.get("stop_reason") or said.finish
        said.calls = [ToolCall(*parts) for _, parts in sorted(calls.items())]
        return said
