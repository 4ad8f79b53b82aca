"""Rollouts of Codex CLI in `~/.codex/sessions`.

A request ends at each new token count; its input is everything in the thread before the model's following output.
Each token count is written twice. Newer files have the system text; no file has the schemas of built-in tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.traffic.readers.api_logs import read_time
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Request, Thread, Usage

_TYPES = {"session_meta", "response_item", "turn_context", "event_msg", "compacted", "world_state"} | {
    *("inter_agent_communication", "inter_agent_communication_metadata", "security_risk_score"),
}


class Codex:
    """Reader of Codex CLI's session files."""

    name = "codex"
    title = "Codex rollout"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda row: row.get("type") in _TYPES and isinstance(row.get("payload"), Mapping))

    def read(self, source: Source) -> Iterator[Thread]:
        rollout = _Rollout(source.path.stem.removesuffix(".jsonl"))
        for line, _, row in source.records():
            payload = row.get("payload") if isinstance(row, Mapping) else None
            if not isinstance(payload, Mapping):
                source.skip(line, "a line without a payload")
            elif str(row.get("type")) not in _TYPES:
                source.skip(line, f"unknown line type {str(row.get('type'))[:40]!r}")
            else:
                with source.using(line):
                    rollout.add(row["type"], payload, read_time(row), line)
        if rollout.requests:
            missing = () if rollout.system else ("system: not stored",)
            reconstructed = (*missing, "tools: not stored", "requests: split at each token count")
            agent = rollout.id if rollout.parent else ""
            yield Thread(
                rollout.parent or rollout.id, rollout.id, rollout.requests, self.name, source.name, agent, reconstructed
            )


class _Rollout:
    def __init__(self, name: str) -> None:
        self.id, self.parent, self.system = name, "", ""
        self.requests: list[Request] = []
        self._history: list[Any] = []
        self._asked: int | None = None  # length of the history when the model began to write
        self._started: float | None = None  # time of the model's last input
        self._model: str | None = None
        self._settings: dict[str, Any] = {}
        self._total: Any = None

    def add(self, kind: str, payload: Mapping[str, Any], at: float | None, line: int) -> None:
        if kind == "session_meta":
            self.id = str(payload.get("id") or payload.get("session_id") or self.id)
            self.parent = str(payload.get("parent_thread_id") or "")
            told = payload.get("base_instructions")
            self.system = str(told.get("text") or "") if isinstance(told, Mapping) else str(told or "")
        elif kind == "turn_context":
            self._model = str(payload.get("model") or "") or self._model
            self._settings = {"reasoning": {"effort": payload["effort"]}} if payload.get("effort") else {}
        elif kind == "compacted":
            replaced = payload.get("replacement_history")
            summary = {"type": "message", "role": "user", "content": str(payload.get("message") or "")}
            self._history = list(replaced) if isinstance(replaced, list) else [summary]
            self._asked = None
        elif kind == "response_item":
            if not _is_written(payload):
                self._started = at
            elif self._asked is None:
                self._asked = len(self._history)
            self._history.append(dict(payload))
        elif kind == "event_msg" and payload.get("type") == "token_count" and isinstance(payload.get("info"), Mapping):
            self._end_request(payload["info"], at, line)

    def _end_request(self, info: Mapping[str, Any], at: float | None, line: int) -> None:
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        if not isinstance(last, Mapping) or (total is not None and total == self._total):
            return
        self._total = total
        names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
        length = len(self._history) if self._asked is None else self._asked
        self.requests.append(
            Request(
                api="responses",
                model=str(info.get("model") or "") or self._model,
                history=self._history,
                length=length,
                system=self.system or None,
                settings=self._settings,
                started=self._started if self._started is not None else at,
                reply={"output": self._history[length:]},
                usage=Usage.of_names(last, names, with_cache=True),
                line=line,
            )
        )
        self._asked = self._started = None


def _is_written(item: Mapping[str, Any]) -> bool:
    """Whether a model wrote an item."""
    kind = str(item.get("type"))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")
