"""A model's reply as the client that asked for it reads it: strict, since what is not a reply must not be scored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from context_bench.wire.requests import read_text
from context_bench.wire.usage import read_anthropic_usage, read_openai_usage

__all__ = ["ModelReply", "NotAReply", "read_chat_completion", "read_message"]


@dataclass(slots=True)
class ModelReply:
    """A model's answer.

    Attributes:
        text: What it says, all parts joined.
        tool_calls: What it calls, in OpenAI's form.
        finish: Why it ended, in the words of its API; None when it does not say.
        usage: Token counts by our names (see `wire.usage`).
        timings: Of a stream, the times of its tokens.
    """

    text: str
    tool_calls: list[Any] = field(default_factory=list)
    finish: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def metadata(self) -> dict[str, Any]:
        """The numbers that a row keeps, and why the reply ended."""
        facts = {**self.usage, **self.timings}
        if self.finish:
            facts["finish_reason"] = self.finish
        return facts


class NotAReply(ValueError):
    """JSON that is not a reply of the API that was asked.

    `usage` is what it tells nevertheless; `wrong_form` says that it has neither a reply nor an error of that API.
    """

    def __init__(self, what: str, document: Any, usage: dict[str, Any], form: str) -> None:
        super().__init__(f"JSON that is not a {what}: {_show_start(document)}")
        self.usage = usage
        self.wrong_form = not isinstance(document, dict) or not document.keys() & {form, "error"}


def read_chat_completion(document: Any) -> ModelReply:
    """Read the first choice of OpenAI's chat completion; NotAReply when it has none."""
    usage = read_openai_usage(document.get("usage")) if isinstance(document, dict) else {}
    try:
        choice = document["choices"][0]
        message = choice["message"]
        if type(message) is not dict:
            message = dict(message)
        timings = dict(document["timings_of_stream"]) if "timings_of_stream" in document else {}
        calls = message.get("tool_calls") or []
        content = message.get("content")
        text = content if type(content) is str else read_text(content)
        return ModelReply(text, calls, choice.get("finish_reason"), _check_usage(usage, text or calls), timings)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise NotAReply("chat completion", document, usage, "choices") from None


def read_message(document: Any) -> ModelReply:
    """Read Anthropic's message; NotAReply when it is none."""
    usage = read_anthropic_usage(document.get("usage")) if isinstance(document, dict) else {}
    try:
        blocks = list(document["content"])
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [_to_openai_call(block) for block in blocks if block["type"] == "tool_use"]
        return ModelReply(text, calls, document.get("stop_reason"), _check_usage(usage, text or calls))
    except (KeyError, TypeError):
        raise NotAReply("message", document, usage, "content") from None


def _check_usage(usage: dict[str, Any], written: Any) -> dict[str, Any]:
    """Ignore a count of 0 for an answer that says something."""
    if usage.get("completion_tokens") != 0 or not written:
        return usage
    ignored = {**usage.get("ignored_usage", {}), "completion_tokens": "0"}
    return {**{key: value for key, value in usage.items() if key != "completion_tokens"}, "ignored_usage": ignored}


def _to_openai_call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = orjson.dumps(block["input"]).decode()
    return {"id": block["id"], "type": "function", "function": {"name": block["name"], "arguments": arguments}}


def _show_start(document: Any) -> str:
    """Show the start of a server's answer as text, however deep it is nested."""
    try:
        return orjson.dumps(document)[:200].decode("utf-8", "replace")
    except TypeError:  # more levels than can be written
        return f"a {type(document).__name__} of too many levels"
