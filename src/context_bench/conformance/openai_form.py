"""OpenAI's chat completions as the checks speak them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.conformance.bench import CheckFailed
from context_bench.conformance.forms import KEY, Message, Said
from context_bench.wire.dialects import Dialect
from context_bench.wire.events import DONE
from context_bench.wire.replies import ToolCall

__all__ = ["OpenAI"]


class OpenAI:
    """Chat completions."""

    api: Dialect = "openai"
    path = "/v1/chat/completions"
    model = "gpt-4o-mini-2024-07-18"
    key = ("authorization", f"Bearer {KEY}")
    headers: Mapping[str, str] = {"openai-organization": "org-conformance", "openai-project": "proj-conformance"}
    settings: Mapping[str, Any] = {
        "temperature": 0.37,
        "top_p": 0.91,
        "max_tokens": 321,
        "stop": ["END", "\n\n"],
        "seed": 4242,
        "logprobs": True,
        "top_logprobs": 3,
        "presence_penalty": 0.25,
        "frequency_penalty": -0.25,
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "strict": True,
                "schema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
            },
        },
    }
    caller: Mapping[str, Any] = {"user": "user-conformance", "metadata": {"ticket": "T-1001"}}
    usage: Mapping[str, int] = {"prompt_tokens": 12345, "completion_tokens": 678, "total_tokens": 13023}

    def build_request(self, messages: Sequence[Message], **fields: Any) -> dict[str, Any]:
        """Build the body of a request."""
        if fields.get("stream"):
            fields = {**fields, "stream_options": {"include_usage": True}}
        return {"model": self.model, "messages": list(messages), **fields}

    def build_tool(self, name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Build a tool definition."""
        return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}

    def read_schema(self, tool: Mapping[str, Any]) -> Any:
        """Read the schema of a tool's arguments."""
        return tool["function"].get("parameters")

    def build_image(self, text: str, kind: str, data: str) -> Message:
        """Build a message with a text and an image."""
        url = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}", "detail": "low"}}
        return {"role": "user", "content": [{"type": "text", "text": text}, url]}

    def build_tool_exchange(self, calls: Sequence[ToolCall], results: Sequence[str]) -> list[Message]:
        """Build calls of the assistant and their results."""
        called = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
        answered = [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(calls, results)]
        return [{"role": "assistant", "content": None, "tool_calls": called}, *answered]

    def read_tool_ids(self, messages: Sequence[Message]) -> tuple[list[Any], list[Any]]:
        """Read the ids of the assistant's calls and of the tools' results in a conversation."""
        called = [message for message in messages if message.get("role") == "assistant"]
        answered = [message for message in messages if message.get("role") == "tool"]
        return (
            [call.get("id") for message in called for call in message.get("tool_calls") or ()],
            [message.get("tool_call_id") for message in answered],
        )

    def read_reply(self, document: Any) -> Said:
        """Read what a reply says."""
        try:
            choice = document["choices"][0]
            message = choice["message"]
            calls = [
                ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls") or ()
            ]
            return Said(message.get("content") or "", calls, document.get("usage") or {}, choice.get("finish_reason"))
        except (KeyError, IndexError, TypeError, AttributeError):
            raise CheckFailed("the reply is not a chat completion", None, document) from None

    def read_stream(self, events: Iterable[Any]) -> Said:
        """Read what the events of a stream say together."""
        said, calls = Said(ended=False), dict[int, list[str]]()
        for event in events:
            if event == DONE:
                said.ended = True
                continue
            said.usage = event.get("usage") or said.usage
            for choice in event.get("choices") or ():
                delta = choice.get("delta") or {}
                said.text += delta.get("content") or ""
                said.finish = choice.get("finish_reason") or said.finish
                for call in delta.get("tool_calls") or ():
                    _join(calls.setdefault(call.get("index", 0), ["", "", ""]), call)
        said.calls = [ToolCall(*parts) for _, parts in sorted(calls.items())]
        return said


def _join(parts: list[str], delta: Mapping[str, Any]) -> None:
    function = delta.get("function") or {}
    parts[0] += delta.get("id") or ""
    parts[1] += function.get("name") or ""
    parts[2] += function.get("arguments") or ""
