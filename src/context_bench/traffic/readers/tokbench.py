"""Transcripts of tokbench: each has one phase of a task, as messages of the agent `pi`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.readers.api_logs import read_time
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Message, Request, Thread, Usage
from context_bench.wire.prompts import read_text

_SCHEMA = "forge-subagent-transcript/"


class Tokbench:
    """Reader of transcripts with the schema `forge-subagent-transcript`."""

    name = "tokbench"
    title = "tokbench transcript"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda record: str(record.get("schema", "")).startswith(_SCHEMA))

    def read(self, source: Source) -> Iterator[Thread]:
        document = source.document()
        run = _Run(document)
        messages = document.get("messages")
        for number, message in enumerate(messages if isinstance(messages, list) else (), 1):
            with source.using(number):
                run.add(message, number)
        missing = ("system: not stored", "tools: not stored", "cache marks: not stored")
        if run.requests:
            name = source.path.stem
            yield Thread(name, name, run.requests, self.name, source.name, "", missing)


class _Run:
    """Conversation built message by message."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.requests: list[Request] = []
        self._document = document
        self._history: list[Message] = [{"role": "user", "content": str(document.get("prompt") or "")}]

    def add(self, message: Mapping[str, Any], number: int) -> None:
        anthropic = "anthropic" in str(message.get("api") or self._document.get("provider"))
        if message.get("role") == "assistant":
            self._add_reply(message, number, anthropic)
        elif anthropic or (self.requests and self.requests[-1].api == "anthropic"):
            _append_block(self._history, message)
        elif message.get("role") == "toolResult":
            text = read_text(message.get("content"))
            self._history.append({"role": "tool", "tool_call_id": message.get("toolCallId"), "content": text})
        else:
            self._history.append({"role": "user", "content": read_text(message.get("content"))})

    def _add_reply(self, message: Mapping[str, Any], number: int, anthropic: bool) -> None:
        said = _write_blocks(message) if anthropic else _write_chat(message)
        first = {"time": self._document.get("startedAt")}
        self.requests.append(
            Request(
                api="anthropic" if anthropic else "openai",
                model=str(message.get("model") or self._document.get("model") or "") or None,
                history=self._history,
                length=len(self._history),
                started=read_time(message if self.requests else first),
                reply={**said, "stop_reason": message.get("stopReason")}
                if anthropic
                else {"choices": [{"message": said}]},
                usage=Usage.of_names(message.get("usage"), ("input", "cacheRead", "cacheWrite", "output")),
                id=str(message.get("responseId") or ""),
                line=number,
            )
        )
        self._history.append(said)


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [each for each in content if isinstance(each, Mapping)] if isinstance(content, list) else []


def _write_blocks(message: Mapping[str, Any]) -> Message:
    blocks: list[dict[str, Any]] = []
    for block in _blocks(message):
        if block.get("type") == "toolCall":
            call = {"id": block.get("id"), "name": block.get("name"), "input": block.get("arguments") or {}}
            blocks.append({"type": "tool_use", **call})
        elif block.get("type") == "thinking":
            thought = {"thinking": block.get("thinking"), "signature": block.get("thinkingSignature")}
            blocks.append({"type": "thinking", **thought})
        else:
            blocks.append({"type": "text", "text": str(block.get("text") or "")})
    return {"role": "assistant", "content": blocks}


def _write_chat(message: Mapping[str, Any]) -> Message:
    blocks = _blocks(message)
    calls = [
        {
            "id": block.get("id"),
            "type": "function",
            "function": {"name": block.get("name"), "arguments": dump_json(block.get("arguments") or {})},
        }
        for block in blocks
        if block.get("type") == "toolCall"
    ]
    said: Message = {
        "role": "assistant",
        "content": read_text([b for b in blocks if b.get("type") == "text"]) or None,
    }
    thought = "".join(str(block.get("thinking") or "") for block in blocks if block.get("type") == "thinking")
    if thought:
        said["reasoning_content"] = thought
    return {**said, "tool_calls": calls} if calls else said


def _append_block(history: list[Message], message: Mapping[str, Any]) -> None:
    """Append a tool result or user text; the results of one step are one message."""
    block: dict[str, Any] = {"type": "text", "text": read_text(message.get("content"))}
    if message.get("role") == "toolResult":
        block = {
            "type": "tool_result",
            "tool_use_id": message.get("toolCallId"),
            "content": [{"type": "text", "text": block["text"]}],
            "is_error": bool(message.get("isError")),
        }
    if history[-1]["role"] == "user" and isinstance(history[-1]["content"], list):
        history[-1]["content"].append(block)
    else:
        history.append({"role": "user", "content": [block]})
