"""What a request asks a model to read, in the forms of OpenAI and Anthropic alike: its messages, tools and texts.

One function counts its tokens, whoever sent it and whoever received it, so that the two sides compare.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from context_bench.results import dump_json
from context_bench.utils.tokens import Tokenizer

__all__ = ["Prompt", "read_document", "read_prompt"]

_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Prompt:
    """The part of a request that a model reads. Two prompts are equal when their JSON is."""

    system: Any = None
    messages: list[Any] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)

    def texts(self) -> list[str]:
        """Every text in it, in order: system, messages with the results and arguments of tools; not the tools."""
        return [text for part in (self.system, *self.messages) for text in _texts(part)]

    def tokens(self, count: Tokenizer) -> int:
        """Its size: the texts of its messages, and its tools as JSON."""
        return sum(count(text) for text in (*self.texts(), *map(_json, self.tools)) if text)

    def tool_names(self) -> list[str]:
        """The names of the tools on offer."""
        return [name for tool in self.tools if isinstance(tool, Mapping) and (name := _tool_name(tool))]


def read_prompt(body: str | bytes | Mapping[str, Any]) -> Prompt | None:
    """The prompt in a request's body; None when it holds none."""
    return (
        _read_text(body) if isinstance(body, str) else _read(read_document(body) if isinstance(body, bytes) else body)
    )


@lru_cache(maxsize=8)
def _read_text(body: str) -> Prompt | None:
    """A row asks for the same few bodies again and again, and they are large."""
    return _read(read_document(body))


def _read(document: Mapping[str, Any]) -> Prompt | None:
    if not isinstance(document.get("messages"), list):
        return None
    tools = document.get("tools")
    return Prompt(document.get("system"), document["messages"], tools if isinstance(tools, list) else [])


def read_document(body: str | bytes) -> dict[str, Any]:
    """A body as a JSON object; empty when it is none. Escaped halves of surrogate pairs are kept."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return {}
    return document if isinstance(document, dict) else {}


def _texts(part: Any, depth: int = 0) -> Iterator[str]:
    """The texts of a message, of its content, or of one block of it; no API nests them deeper than the limit."""
    if isinstance(part, str):
        yield part
    elif depth == _DEEPEST:
        return
    elif isinstance(part, list):
        for item in part:
            yield from _texts(item, depth + 1)
    elif isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            yield part["text"]
        yield from _texts(part.get("content"), depth + 1)
        if "input" in part:  # Anthropic's call of a tool
            yield _json(part["input"])
        calls = part.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            yield _json(call)


def _json(value: Any) -> str:
    try:
        return dump_json(value)
    except (RecursionError, TypeError):  # nested deeper than any API takes
        return ""


def _tool_name(tool: Mapping[str, Any]) -> str | None:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return name if isinstance(name, str) else None
