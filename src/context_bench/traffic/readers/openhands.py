"""Event lists of OpenHands, and the results of its evaluations (`output.jsonl`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.readers.api_logs import read_time
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Message, Request, Thread, Usage

_SILENT = {"change_agent_state", "recall", "null", "agent_state_changed", "condensation", "system"}
_REBUILT = ("system: not stored", "tools: not stored", "messages: rebuilt from events")


class OpenHands:
    """Reader of an agent's events, as a list or under `history`."""

    name = "openhands"
    title = "OpenHands trajectory"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda each: _is_event(each) and ("source" in each or "cause" in each)) or head.any(
            lambda each: isinstance(each.get("history"), list) and any(map(_is_event, each["history"][:3]))
        )

    def read(self, source: Source) -> Iterator[Thread]:
        run = _Run()
        for line, _, value in source.records():
            if not isinstance(value, Mapping):
                source.skip(line, "no JSON object")
            elif isinstance(value.get("history"), list):
                whole = _Run()
                for event in value["history"]:
                    pair = event if isinstance(event, list) else [event]
                    for each in filter(_is_event, pair):
                        with source.using(line):
                            whole.add(each, line)
                whole.add_usages(value.get("metrics"))
                name = str(value.get("instance_id") or f"{source.path.stem}-{line}")
                if whole.requests:
                    yield Thread(name, name, whole.requests, self.name, source.name, "", _REBUILT)
                else:
                    source.skip(line, "a run without agent actions")
            elif _is_event(value):
                with source.using(line):
                    run.add(value, line)
            else:
                source.skip(line, "not an OpenHands event")
        if run.requests:
            name = source.path.stem
            yield Thread(name, name, run.requests, self.name, source.name, "", _REBUILT)


def _is_event(value: Any) -> bool:
    return isinstance(value, Mapping) and ("action" in value or "observation" in value)


class _Run:
    """Conversation built from events."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._history: list[Message] = []
        self._replied: set[str] = set()  # one reply may cause several events

    def add(self, event: Mapping[str, Any], line: int) -> None:
        metadata = event.get("tool_call_metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        given = event.get("args")
        arguments: Mapping[str, Any] = given if isinstance(given, Mapping) else event
        observed = event.get("observation")
        if observed is not None:
            if observed not in _SILENT:
                text = str(event.get("content") or event.get("message") or "")
                if metadata.get("tool_call_id"):
                    self._history.append({"role": "tool", "tool_call_id": metadata["tool_call_id"], "content": text})
                else:
                    self._history.append({"role": "user", "content": text})
        elif event.get("action") in _SILENT:
            return
        elif event.get("source") in ("user", "environment") or not self._history:
            self._history.append(
                {"role": "user", "content": str(arguments.get("content") or event.get("message") or "")}
            )
        else:
            self._add_reply(event, arguments, metadata, line)

    def _add_reply(
        self, event: Mapping[str, Any], arguments: Mapping[str, Any], metadata: Mapping[str, Any], line: int
    ) -> None:
        raw = metadata.get("model_response")
        reply: dict[str, Any] = dict(raw) if isinstance(raw, Mapping) else {}
        identity = str(reply.get("id") or "")
        if identity and identity in self._replied:
            return
        self._replied.add(identity)
        choices = reply.get("choices")
        said = choices[0].get("message") if isinstance(choices, list) and choices else None
        if not isinstance(said, Mapping):
            done = {
                key: arguments[key] for key in ("command", "code", "path", "content", "outputs") if arguments.get(key)
            }
            thought = str(arguments.get("thought") or "")
            said = {"role": "assistant", "content": "\n".join(filter(None, (thought, dump_json(done) if done else "")))}
            reply = {"choices": [{"index": 0, "message": said, "finish_reason": None}]}
        self.requests.append(
            Request(
                api="openai",
                model=str(reply.get("model") or "") or None,
                history=self._history,
                length=len(self._history),
                started=read_time(event),
                reply=reply,
                usage=Usage.read(reply.get("usage")),
                id=identity,
                line=line,
            )
        )
        self._history.append({key: value for key, value in said.items() if value is not None})

    def add_usages(self, metrics: Any) -> None:
        """Add the usages of an evaluation's result, which are stored separately: by reply id, else in order."""
        told = metrics.get("token_usages") if isinstance(metrics, Mapping) else None
        usages = [each for each in told if isinstance(each, Mapping)] if isinstance(told, list) else []
        by_id = {each.get("response_id"): each for each in usages if each.get("response_id")}
        in_order = usages if len(usages) == len(self.requests) else []
        for place, request in enumerate(self.requests):
            found = by_id.get(request.id) or (in_order[place] if in_order else None)
            if request.usage is None and found is not None:
                names = ("prompt_tokens", "cache_read_tokens", "cache_write_tokens", "completion_tokens")
                request.usage = Usage.of_names(found, names, with_cache=True)
