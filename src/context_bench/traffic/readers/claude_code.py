"""Sessions of Claude Code in `~/.claude/projects`: main thread, sidechains and subagents.

A reply is stored as several rows with the same `message.id`, one for each block; the last row has its usage. A thread
is all rows that lead to the same first row by `parentUuid`, in file order. Neither the system text nor the tools are
stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from context_bench.traffic.readers.api_logs import read_time
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Message, Request, Thread, Usage

_NOT_STORED = ("system: not stored", "tools: not stored", "cache marks: not stored")
_CLEARED = "[Old tool result content cleared]"
_OWN_TYPES = {"user", "assistant", "system", "summary", "attachment", "progress", "file-history-snapshot"} | {
    *("queue-operation", "permission-mode", "ai-title", "custom-title", "agent-name", "agent-setting", "last-prompt"),
    *("pr-link", "bridge-session", "worktree-state", "mode"),
}


class ClaudeCode:
    """Reader of Claude Code's session files."""

    name = "claude-code"
    title = "Claude Code session"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda row: row.get("type") in _OWN_TYPES and ("sessionId" in row or "leafUuid" in row))

    def read(self, source: Source) -> Iterator[Thread]:
        session = _Session(source)
        for line, _, row in source.records():
            if not isinstance(row, Mapping):
                source.skip(line, "no JSON object")
            elif str(row.get("type")) not in _OWN_TYPES:
                source.skip(line, f"unknown line type {str(row.get('type'))[:40]!r}")
            else:
                with source.using(line):
                    session.add(row, line)
        for thread in session.threads.values():
            for request in thread.requests:
                request.usage = Usage.read((request.reply or {}).get("usage"))
            if thread.requests:
                yield Thread(
                    thread.session or source.path.stem,
                    f"{thread.session}/{thread.agent or thread.root}",
                    thread.requests,
                    self.name,
                    source.name,
                    thread.agent,
                    (*_NOT_STORED, "history: some lines are missing") if thread.has_gap else _NOT_STORED,
                )


@dataclass(slots=True)
class _Thread:
    root: str
    session: str = ""
    agent: str = ""
    history: list[Message] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)  # length of the history after each row
    requests: list[Request] = field(default_factory=list)
    replies: dict[tuple[str, str], Request] = field(default_factory=dict)
    has_gap: bool = False


class _Session:
    """Threads of a file, built row by row."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.threads: dict[str, _Thread] = {}
        self._of_row: dict[str, _Thread] = {}
        self._last: dict[tuple[Any, ...], _Thread] = {}

    def add(self, row: Mapping[str, Any], line: int) -> None:
        identity = row.get("uuid")
        if not isinstance(identity, str):
            return
        thread = self._find_thread(row, identity)
        self._of_row[identity] = thread
        message, kind = row.get("message"), row.get("type")
        if kind == "system":
            _follow_system(thread, row)
        elif kind in ("user", "assistant") and not isinstance(message, Mapping):
            self._source.skip(line, f"a line of type {kind!r} without a message")
        elif kind == "assistant" and isinstance(message, Mapping):
            self._add_reply(thread, row, dict(message), line)
        elif kind == "user" and isinstance(message, Mapping) and not row.get("isVisibleInTranscriptOnly"):
            _rewind(thread, row, message)
            _append_user(thread.history, message.get("content"))
        thread.places[identity] = len(thread.history)

    def _find_thread(self, row: Mapping[str, Any], identity: str) -> _Thread:
        above = row.get("parentUuid") or row.get("logicalParentUuid")
        line_of = row.get("sessionId"), row.get("agentId"), bool(row.get("isSidechain"))
        thread = self._of_row.get(above) if isinstance(above, str) else None
        if thread is None and above and line_of in self._last:  # the previous row is missing
            thread = self._last[line_of]
            thread.has_gap = True
        if thread is None:
            thread = self.threads[identity] = _Thread(identity)
        self._last[line_of] = thread
        thread.session = thread.session or str(row.get("sessionId") or "")
        if not thread.agent:
            thread.agent = str(row.get("agentId") or (thread.root if row.get("isSidechain") else ""))
        return thread

    def _add_reply(self, thread: _Thread, row: Mapping[str, Any], message: dict[str, Any], line: int) -> None:
        if message.get("model") == "<synthetic>" or row.get("isApiErrorMessage"):
            self._source.skip(line, "a message by Claude Code itself, not by a model")
            return
        key = str(message.get("id") or row.get("uuid")), str(row.get("requestId") or "")
        blocks = message.get("content")
        blocks = blocks if isinstance(blocks, list) else [{"type": "text", "text": str(blocks or "")}]
        request = thread.replies.get(key)
        if request is None:
            request = Request(
                api="anthropic",
                model=str(message.get("model") or "") or None,
                history=thread.history,
                length=len(thread.history),
                started=read_time(row),
                reply={**message, "content": []},
                id=key[0],
                line=line,
            )
            thread.replies[key] = request
            thread.requests.append(request)
            assert request.reply is not None
            thread.history.append({"role": "assistant", "content": request.reply["content"]})
        reply = request.reply or {}
        reply["content"].extend(blocks)
        reply |= {name: message[name] for name in ("usage", "stop_reason", "stop_sequence") if message.get(name)}


def _append_user(history: list[Message], content: Any) -> None:
    """Append user text or tool results; the API requires a single message after each reply."""
    blocks = content if isinstance(content, list) else [{"type": "text", "text": str(content or "")}]
    if history and history[-1]["role"] == "user":
        history[-1]["content"].extend(blocks)
    else:
        history.append({"role": "user", "content": list(blocks)})


def _rewind(thread: _Thread, row: Mapping[str, Any], message: Mapping[str, Any]) -> None:
    """Rewind the history if a prompt follows an earlier row: the user has discarded the rows after that row."""
    content = message.get("content")
    answers = isinstance(content, list) and any(
        isinstance(each, Mapping) and each.get("type") == "tool_result" for each in content
    )
    place = thread.places.get(str(row.get("parentUuid")))
    if place is None or answers or not thread.requests or place >= len(thread.history):
        return
    if any(each["role"] == "assistant" for each in thread.history[place:]):
        thread.history = thread.history[:place]
        last = thread.history.pop() if place else None
        if last is not None:
            thread.history.append({**last, "content": list(last["content"])})


def _follow_system(thread: _Thread, row: Mapping[str, Any]) -> None:
    """Apply a compaction, which restarts the history, or the clearing of old tool results."""
    if row.get("subtype") == "compact_boundary":
        thread.history = []
    elif row.get("subtype") == "microcompact_boundary":
        metadata = row.get("microcompactMetadata")
        cleared = set(metadata.get("compactedToolIds") or ()) if isinstance(metadata, Mapping) else set()
        thread.history = [_clear(message, cleared) for message in thread.history]


def _clear(message: Message, cleared: set[str]) -> Message:
    blocks = [
        {**block, "content": _CLEARED} if isinstance(block, dict) and block.get("tool_use_id") in cleared else block
        for block in message["content"]
    ]
    return message if blocks == message["content"] else {**message, "content": blocks}
