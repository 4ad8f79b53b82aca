"""Parts of recorded messages in every API's form: texts by role, tool calls and tool results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.errors import DataError
from context_bench.text import dump_json
from context_bench.traffic.sessions import Request
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.prompts import Message, read_text


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message that a model reads or writes."""

    kind: str  # system, user, assistant, thinking, call, result, or other: an image, a document, an encrypted item
    text: str
    tool: str = ""  # of a call or a result
    id: str = ""  # shared by a call and its result

    def tokens(self, count: Tokenizer) -> int:
        """Count the tokens that a model reads; thinking is not sent again."""
        if self.kind == "thinking":
            return 0
        named = {"call": (self.tool, self.id), "result": (self.id,)}.get(self.kind, ())
        return sum(count(text) for text in (self.text, *named) if text)


def list_parts(message: Any, tools: dict[str, str]) -> list[Part]:
    """List the parts of a message or input item; `tools` collects the tool name of each call by its id."""
    if isinstance(message, str):
        return [Part("user", message)]
    if not isinstance(message, Mapping):
        return []
    kind = message.get("type")
    if "role" not in message and isinstance(kind, str):
        return _read_item(message, kind, tools)
    role = message.get("role")
    speaker = role if role in ("user", "assistant") else "system" if role in ("system", "developer") else "user"
    content = message.get("content")
    if role in ("tool", "function"):
        identity = str(message.get("tool_call_id") or "")
        tool = tools.get(identity) or str(message.get("name") or "")
        return _read_result(content, tool, identity)
    parts: list[Part] = []
    for field in ("reasoning_content", "reasoning"):
        if isinstance(message.get(field), str):
            parts.append(Part("thinking", message[field]))
            break
    blocks = content if isinstance(content, list) else [] if content is None else [content]
    parts += [part for block in blocks for part in _read_block(block, speaker, tools)]
    calls = message.get("tool_calls")
    parts += [_read_call(call, tools) for call in (calls if isinstance(calls, list) else ()) if isinstance(call, dict)]
    return parts


class RecordedParts:
    """Reader of message parts that reads each message once, because later requests repeat it."""

    def __init__(self) -> None:
        self._known: dict[
            int, tuple[Any, list[Part]]
        ] = {}  # by id(); holding the object keeps its id from being reused
        self._tools: dict[str, str] = {}

    def list(self, messages: Iterable[Any]) -> Iterator[Part]:
        """Yield the parts of messages."""
        for message in messages:
            if id(message) not in self._known:
                self._known[id(message)] = message, list_parts(message, self._tools)
            yield from self._known[id(message)][1]


def list_messages(body: Mapping[str, Any]) -> list[Any]:
    """List the messages or input items of a request."""
    conversation = body.get("messages", body.get("input"))
    return conversation if isinstance(conversation, list) else [conversation] if conversation else []


def list_reply_messages(reply: Mapping[str, Any] | None) -> list[Any]:
    """List the messages or items of a reply in any form."""
    if not reply:
        return []
    if isinstance(reply.get("choices"), list):
        return [each["message"] for each in reply["choices"][:1] if isinstance(each, Mapping) and "message" in each]
    if isinstance(reply.get("output"), list):
        return list(reply["output"])
    return [reply]


def _read_block(block: Any, speaker: str, tools: dict[str, str]) -> list[Part]:
    if isinstance(block, str):
        return [Part(speaker, block)]
    if not isinstance(block, Mapping):
        return []
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text") or (kind is None and "text" in block):
        return [Part(speaker, _as_text(block.get("text")))]
    if kind in ("thinking", "reasoning"):
        return [Part("thinking", _as_text(block.get("thinking") or block.get("reasoning")))]
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        name, identity = str(block.get("name") or ""), str(block.get("id") or "")
        tools[identity] = name
        return [Part("call", dump_json(block.get("input")), name, identity)]
    if isinstance(kind, str) and kind.endswith("tool_result"):
        identity = str(block.get("tool_use_id") or "")
        return _read_result(block.get("content"), tools.get(identity, ""), identity)
    return [Part("other", "", str(kind or ""))]


def _read_call(call: Mapping[str, Any], tools: dict[str, str]) -> Part:
    function = call.get("function") or call.get("custom") or {}
    function = function if isinstance(function, Mapping) else {"name": function, "arguments": call.get("arguments")}
    name, identity = str(function.get("name") or ""), str(call.get("id") or "")
    tools[identity] = name
    return Part("call", _as_text(function.get("arguments", function.get("input"))), name, identity)


def _read_result(content: Any, tool: str, identity: str) -> list[Part]:
    if not isinstance(content, list):
        return [Part("result", _as_text(content), tool, identity)]
    texts = [block.get("text") for block in content if isinstance(block, Mapping)]
    others = [Part("other", "", tool, identity) for text in texts if not isinstance(text, str)]
    plain = [block for block in content if isinstance(block, str)]
    return [Part("result", "".join([*plain, *(t for t in texts if isinstance(t, str))]), tool, identity), *others]


def _read_item(item: Mapping[str, Any], kind: str, tools: dict[str, str]) -> list[Part]:
    """Read an input item of the Responses API other than a message."""
    identity = str(item.get("call_id") or item.get("id") or "")
    if kind.endswith("_call_output"):
        return _read_result(item.get("output"), tools.get(identity, ""), identity)
    if kind.endswith("_call"):
        name = str(item.get("name") or kind.removesuffix("_call"))
        tools[identity] = name
        given = next((item[field] for field in ("arguments", "input", "action") if field in item), None)
        return [Part("call", _as_text(given), name, identity)]
    if kind == "reasoning":
        summary = item.get("summary")
        return [Part("thinking", read_text(summary if isinstance(summary, list) else None))]
    return [Part("other", "", kind, identity)]


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else dump_json(value)


# --- as messages of a chat


def convert_to_chat(messages: Iterable[Any], system: Any = None) -> list[Message]:
    """Convert messages of any API to those of chat completions.

    Thinking is removed, because no chat API accepts it. Raise DataError for an image or document, which would be lost.
    """
    tools: dict[str, str] = {}
    text = read_text(system)
    chat: list[Message] = [{"role": "system", "content": text}] if text else []
    for message in messages:
        parts = list_parts(message, tools)
        lost = next((part for part in parts if part.kind == "other"), None)
        if lost is not None:
            raise DataError(f"it contains {lost.tool or 'an image'!r}, which chat completions cannot represent")
        chat += [
            {"role": "tool", "tool_call_id": part.id, "content": part.text} for part in parts if part.kind == "result"
        ]
        for role in ("system", "user"):
            if said := "".join(part.text for part in parts if part.kind == role):
                chat.append({"role": role, "content": said})
        said = "".join(part.text for part in parts if part.kind == "assistant")
        calls = [
            {"id": part.id, "type": "function", "function": {"name": part.tool, "arguments": part.text or "{}"}}
            for part in parts
            if part.kind == "call"
        ]
        if not said and not calls:
            continue
        before = chat[-1] if chat and chat[-1]["role"] == "assistant" else None
        if before is None or "tool_calls" in before or not calls or said:
            chat.append({"role": "assistant", "content": said or None, **({"tool_calls": calls} if calls else {})})
        else:
            before["tool_calls"] = calls  # the Responses API has separate items for text and calls
    return chat


def convert_tool_to_chat(tool: Any) -> dict[str, Any] | None:
    """Convert a tool definition to chat form; None for a tool that the API itself provides."""
    if not isinstance(tool, dict) or "function" in tool:
        return tool if isinstance(tool, dict) else None
    schema = tool.get("input_schema", tool.get("parameters"))
    if not isinstance(tool.get("name"), str) or not isinstance(schema, dict):
        return None
    about = {"description": tool["description"]} if tool.get("description") else {}
    return {"type": "function", "function": {"name": tool["name"], **about, "parameters": schema}}


# --- sizes


class PromptCounter:
    """Counts the prompts of a thread, each shared message only once."""

    def __init__(self, count: Tokenizer) -> None:
        self._count = count
        self._tools: dict[str, str] = {}
        self._known: dict[int, tuple[Any, int]] = {}  # by id(); holding the object keeps its id from being reused

    def count_prompt(self, request: Request) -> int:
        """Count the recorded tokens of a prompt: system, tools and messages."""
        beside = (request.system, *request.tools)
        return sum(map(self._count_value, beside)) + sum(map(self._count_message, request.messages))

    def _count_value(self, value: Any) -> int:
        return self._remember(value, lambda: self._count(read_text(value) or dump_json(value)) if value else 0)

    def _count_message(self, message: Any) -> int:
        parts = list_parts(message, self._tools) if id(message) not in self._known else []
        return self._remember(message, lambda: sum(part.tokens(self._count) for part in parts))

    def _remember(self, value: Any, count: Callable[[], int]) -> int:
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = value, count()
        return known[1]
