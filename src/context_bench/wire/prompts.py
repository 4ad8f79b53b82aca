"""The prompt of a request: the messages, tools and texts that a model reads, for all APIs.

One function counts the tokens of sent and received prompts, so that both sides are comparable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from context_bench.text import dump_json
from context_bench.utils.tokens import Tokenizer

Message = dict[str, Any]

_MAX_DEPTH = 8

_API_FIELDS = ("cache_control", "prompt_cache_breakpoint")
"""Fields of messages, blocks and tools that only the API uses, not the model."""


_OPAQUE = ("reasoning", "redacted_thinking", "compaction", "compaction_summary", "context_compaction", "item_reference")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The part of a request that a model reads. Two prompts are equal if their JSON is equal.

    `as_read()` gives all prompts with the same meaning for a model the same normalized form.
    """

    system: Any = None
    messages: list[Any] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)

    def texts(self) -> list[str]:
        """List all texts in order: system, then messages with tool results and arguments; without tool definitions."""
        return [text for part in (self.system, *self.messages) for text in _list_texts(part)]

    def messages_and_system(self) -> list[Any]:
        """List all messages in order; a separate system text comes first."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, *self.messages]

    def tokens(self, count: Tokenizer) -> int:
        """Count the tokens of the texts, and of the tools as JSON."""
        return sum(count(text) for text in (*self.texts(), *map(_dump, self.tools)) if text)

    def as_read(self) -> Prompt:
        """Return the normalized prompt: equal for all spellings that APIs treat as equal.

        Null fields are removed, and so is empty content next to tool calls. Content with a single text block becomes
        that text. Tool arguments become compact JSON. Keys are sorted, and whole numbers become integers. Cache
        breakpoints (`cache_control`) are removed.
        """
        try:
            system = _normalize_content(self.system) or None
            tools = [_normalize_tool(tool) for tool in self.tools]
            return Prompt(system, [_normalize_message(message) for message in self.messages], tools)
        except RecursionError:  # nested deeper than any API takes
            return self

    def count_opaque(self) -> int:
        """Count the blocks that a model reads but that cannot be counted in tokens: encrypted ones, or ones stored by
        the server. Such blocks are reasoning, compactions and references to stored items.
        """
        contents = [message.get("content") for message in self.messages if isinstance(message, Mapping)]
        blocks = [block for content in contents if isinstance(content, list) for block in content]
        opaque = [each for each in blocks if isinstance(each, Mapping) and each.get("type") in _OPAQUE]
        return sum(not any(_list_texts(block)) for block in opaque)

    def tool_names(self) -> list[str]:
        """List the names of all tools."""
        return [name for name, _ in map(_read_tool, self.tools) if name]


def read_messages(document: Mapping[str, Any]) -> Prompt | None:
    """Read the prompt of a request with `messages`, as in chat APIs; None without them."""
    if not isinstance(document.get("messages"), list):
        return None
    tools = document.get("tools")
    return Prompt(document.get("system"), document["messages"], tools if isinstance(tools, list) else [])


def choose_tool(tools: Any, name: Any, *, any_tool: bool) -> tuple[str, Any] | None:
    """Return name and schema of the tool with this name, or of the first tool if `any_tool`; None if not found."""
    known = [_read_tool(tool) for tool in tools] if isinstance(tools, list) else []
    return next(((each, schema) for each, schema in known if each and (any_tool or each == name)), None)


def dump_body(document: Any) -> bytes:
    """Write JSON in UTF-8; as ASCII escapes if a text has a lone surrogate, which UTF-8 cannot encode."""
    try:
        return orjson.dumps(document)
    except TypeError:
        return json.dumps(document).encode()


def read_document(body: str | bytes) -> dict[str, Any]:
    """Read a body as a JSON object; empty for anything else. Escaped lone surrogates are kept."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            return {}
    return document if isinstance(document, dict) else {}


def read_text(content: Any) -> str:
    """Return the joined text of a message's content, which is a text or a list of parts, some with text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        return "".join(text for text in texts if isinstance(text, str))
    return "" if content is None else str(content)


def _list_texts(part: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a message, its content or one block; no API nests them deeper than `_MAX_DEPTH`."""
    if isinstance(part, str):
        yield part
    elif depth == _MAX_DEPTH:
        return
    elif isinstance(part, list):
        for item in part:
            yield from _list_texts(item, depth + 1)
    elif isinstance(part, Mapping):
        if isinstance(part.get("text"), str):
            yield part["text"]
        yield from _list_texts(part.get("content"), depth + 1)
        if "input" in part:  # Anthropic's tool call
            yield _dump(part["input"])
        calls = part.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            yield _dump(call)


# --- normalization


def _normalize_message(message: Any) -> Any:
    if not isinstance(message, Mapping):
        return normalize(message)
    fields = {key: value for key, value in message.items() if value is not None and key not in _API_FIELDS}
    calls = fields.pop("tool_calls", None)
    content = _normalize_content(fields.pop("content", None))
    normalized = normalize(fields)
    if isinstance(calls, list) and calls:
        normalized["tool_calls"] = [_normalize_call(call) for call in calls]
        content = content or None
    return normalized if content is None else {**normalized, "content": content}


def _normalize_content(content: Any) -> Any:
    """Normalize the content of a message or tool result: None if empty, a text if it is one text block."""
    if not isinstance(content, list):
        return normalize(content)
    blocks = [_normalize_block(block) for block in content]
    if len(blocks) == 1 and isinstance(blocks[0], dict) and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"] if blocks[0]["type"] == "text" else blocks
    return blocks or None


def _normalize_block(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return normalize(block)
    fields = {key: value for key, value in block.items() if value is not None and key not in _API_FIELDS}
    if "content" not in fields:
        return normalize(fields)
    content = _normalize_content(fields.pop("content"))
    return {**normalize(fields), **({} if content is None else {"content": content})}


def _normalize_call(call: Any) -> Any:
    """Normalize an OpenAI tool call, whose arguments are JSON text."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return normalize(call)
    fields = normalize({key: value for key, value in call.items() if value is not None and key != "function"})
    normalized = normalize({key: value for key, value in function.items() if value is not None})
    if isinstance(normalized.get("arguments"), str):
        normalized["arguments"] = normalize_json(normalized["arguments"])
    return {**fields, "function": normalized}


def _normalize_tool(tool: Any) -> Any:
    """Normalize a tool definition; a null inside its schema is a value and is kept."""
    if not isinstance(tool, Mapping):
        return normalize(tool)
    fields = {key: value for key, value in tool.items() if value is not None and key not in _API_FIELDS}
    function = fields.get("function")
    if isinstance(function, Mapping):
        fields["function"] = {key: value for key, value in function.items() if value is not None}
    return normalize(fields)


def normalize(value: Any) -> Any:
    """Return a JSON value with sorted keys, and whole numbers as integers."""
    if isinstance(value, Mapping):
        return {key: normalize(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, list):
        return [normalize(item) for item in value]
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if whole else value


def normalize_json(text: str) -> str:
    """Normalize JSON text; return any other text unchanged."""
    try:
        return dump_json(normalize(orjson.loads(text)))
    except (orjson.JSONDecodeError, RecursionError, TypeError):
        return text


def _dump(value: Any) -> str:
    try:
        return dump_json(value)
    except (RecursionError, TypeError):  # nested deeper than any API takes
        return ""


def _read_tool(tool: Any) -> tuple[str, Any]:
    """Return the name and schema of a tool or of the function in it; "" without a name."""
    function = tool.get("function") if isinstance(tool, Mapping) else None
    inner = function if isinstance(function, Mapping) else tool if isinstance(tool, Mapping) else {}
    name = inner.get("name")
    return name if isinstance(name, str) else "", inner.get("parameters", inner.get("input_schema"))
