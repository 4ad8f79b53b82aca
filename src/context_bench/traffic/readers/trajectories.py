"""Trajectories of SWE-agent and mini-swe-agent: all messages before a reply form its request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from context_bench.traffic.readers.api_logs import read_object, read_time
from context_bench.traffic.readers.sources import Head, Source
from context_bench.traffic.sessions import Message, Request, Thread, Usage, append_shared

_KEPT_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content")


class SweAgent:
    """Reader of `.traj` files: a step's `query` is its exact input; older files have `messages` or only a history."""

    name = "swe-agent"
    title = "SWE-agent trajectory"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda record: isinstance(record.get("trajectory"), list))

    def read(self, source: Source) -> Iterator[Thread]:
        document = source.document()
        requests: list[Request] = []
        model = _find_model(document)
        reconstructed = ["tools: not stored", "usage: only totals are stored"]
        for number, step in enumerate(document["trajectory"], 1):
            given = step.get("query") or step.get("messages") if isinstance(step, Mapping) else None
            if not isinstance(given, list):
                continue
            messages = [_keep_fields(each) for each in given if isinstance(each, Mapping)]
            reply = None
            if not step.get("query"):  # `messages` is the state after the step
                spoke = max((at for at, each in enumerate(messages) if each.get("role") == "assistant"), default=None)
                reply = None if spoke is None else messages[spoke]
                messages = messages[:spoke]
            reply = reply or {"role": "assistant", "content": step.get("response") or step.get("thought")}
            request = Request("openai", model, messages, len(messages), reply=_wrap(reply), line=number)
            append_shared(requests, request)
        if not requests:
            held = document.get("history")
            history = [each for each in held if isinstance(each, Mapping)] if isinstance(held, list) else []
            asked = (place for place, each in enumerate(history) if not each.get("is_demo"))
            requests = list(_split(map(_keep_fields, history), model, set(asked)))
            reconstructed.append("messages: the whole history; the agent may have sent less")
        elif not any(isinstance(step, Mapping) and step.get("query") for step in document["trajectory"]):
            reconstructed.append("messages: the state after each step, without that step's messages")
        if requests:
            yield Thread(source.path.stem, source.path.stem, requests, self.name, source.name, "", tuple(reconstructed))


def _find_model(document: Mapping[str, Any]) -> str | None:
    found: Any = read_object(document.get("replay_config")) or {}
    for key in ("agent", "model", "name"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, str) else None


class MiniSweAgent:
    """Reader of `.traj.json` files of mini-swe-agent (newer ones have API replies), or of a bare message list."""

    name = "mini-swe-agent"
    title = "mini-swe-agent trajectory"

    def sniff(self, head: Head) -> bool:
        if head.any(lambda record: str(record.get("trajectory_format", "")).startswith("mini-swe-agent")):
            return True
        if head.any(lambda record: isinstance(record.get("messages"), list) and "info" in record):
            return True
        speaks = [isinstance(each, Mapping) and {"role", "content"} <= each.keys() for each in head.records]
        return len(speaks) > 1 and all(speaks)

    def read(self, source: Source) -> Iterator[Thread]:
        document = source.document() if not source.in_lines else [record.value for record in source.records()]
        if isinstance(document, list) and len(document) == 1 and "messages" in document[0]:
            document = document[0]
        messages = document.get("messages") if isinstance(document, Mapping) else document
        found: Any = document.get("info") if isinstance(document, Mapping) else None
        for key in ("config", "model", "model_name"):
            found = found.get(key) if isinstance(found, Mapping) else None
        model = found if isinstance(found, str) else None
        history = [each for each in messages if isinstance(each, Mapping)] if isinstance(messages, list) else []
        requests = list(_split(history, model, set(range(len(history)))))
        if requests:
            reconstructed = ("tools: not stored", "messages: all messages before each reply")
            yield Thread(source.path.stem, source.path.stem, requests, self.name, source.name, "", reconstructed)


def _split(messages: Iterable[Mapping[str, Any]], model: str | None, asked: set[int]) -> Iterator[Request]:
    """Yield a request for each reply; its input is all messages before it."""
    history: list[Message] = []
    for place, message in enumerate(messages):
        if message.get("role") == "assistant" and place in asked:
            extra = message.get("extra")
            extra = extra if isinstance(extra, Mapping) else {}
            raw = read_object(extra.get("response")) or {}
            yield Request(
                api="openai",
                model=str(raw.get("model") or model or "") or None,
                history=history,
                length=len(history),
                started=read_time(extra),
                reply=dict(raw) or _wrap(_keep_fields(message)),
                usage=Usage.read(raw.get("usage")),
                id=str(raw.get("id") or ""),
                line=place + 1,
            )
        history.append(_keep_fields(message))


def _wrap(message: Message) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": None}]}


def _keep_fields(message: Mapping[str, Any]) -> Message:
    """Return the fields of a message that were sent; only the agent uses the other fields."""
    kept = {name: message[name] for name in _KEPT_FIELDS if message.get(name) is not None}
    ids = message.get("tool_call_ids")
    if kept.get("role") == "tool" and isinstance(ids, list) and ids:
        kept.setdefault("tool_call_id", ids[0])
    return {"content": None, **kept}
