"""Logs of Inspect (`.eval` archives and `.json`): each model event of a sample is a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.readers.api_logs import build_logged, find_api, parse_date, read_object
from context_bench.traffic.readers.grouping import Logged, group_requests
from context_bench.traffic.readers.sources import Head, Record, Source
from context_bench.traffic.sessions import Message, Request, Thread, Usage

_ATTACHED = "attachment://"
_USAGE = ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write", "output_tokens")


class InspectLogs:
    """Reader of Inspect's evaluation logs."""

    name = "inspect"
    title = "Inspect log"

    def sniff(self, head: Head) -> bool:
        if {"header.json", "_journal/start.json"} & set(head.members):
            return True
        return head.any(
            lambda record: isinstance(record.get("eval"), Mapping) and "run_id" in record["eval"]
        ) or head.any(lambda record: {"epoch", "events"} <= record.keys())

    def read(self, source: Source) -> Iterator[Thread]:
        for number, sample in enumerate(_list_samples(source), 1):
            held = sample.get("events")
            if not isinstance(held, list):
                source.skip(number, "a sample without events")
                continue
            events = [event for event in held if isinstance(event, Mapping)]
            asked = [event for event in events if event.get("event") == "model"]
            attached = sample.get("attachments")
            reader = _Sample(source.path.stem, sample, attached if isinstance(attached, Mapping) else {})
            records = (Record(place + 1, place, event) for place, event in enumerate(asked))
            yield from group_requests(source, self.name, reader.parse, records, asked.__getitem__)


def _list_samples(source: Source) -> Iterator[Mapping[str, Any]]:
    if source.archive is None or source.member:
        document = source.document()
        found = document.get("samples", [document]) if isinstance(document, Mapping) else []
        yield from (sample for sample in found if isinstance(sample, Mapping)) if isinstance(found, list) else ()
        return
    for name in source.archive.namelist():
        if name.startswith("samples/") and name.endswith(".json"):
            with Source(source.path, name, source.archive) as member:
                sample = member.document()
            if isinstance(sample, Mapping):
                yield sample
            else:
                source.skip(0, f"{name} cannot be read")


class _Sample:
    """A sample whose long texts are stored separately."""

    def __init__(self, log: str, sample: Mapping[str, Any], attached: Mapping[str, Any]) -> None:
        self._attached = attached
        self._session = f"{log}/sample-{sample.get('id')}-epoch-{sample.get('epoch')}"
        data = sample.get("events_data")
        pool = data.get("messages") if isinstance(data, Mapping) else sample.get("message_pool")
        self._pool = pool if isinstance(pool, list) else []

    def parse(self, event: Any) -> Logged | str:
        """Read the request of a model event, from the provider's own body if stored."""
        if event.get("cache") == "read":
            return "answered from Inspect's own cache"
        if event.get("error") or not isinstance(event.get("output"), Mapping):
            return "a request that failed"
        output = self._resolve(event["output"])
        call = event.get("call")
        call = self._resolve(call) if isinstance(call, Mapping) else {}
        body, started = call.get("request"), parse_date(str(event.get("timestamp") or ""))
        replied = read_object(call.get("response")) or {}
        logged: Logged | str = "no body"
        if isinstance(body, Mapping) and find_api(body, replied):
            logged = build_logged(body, dump_json(replied), "", self._session, started)
        if isinstance(logged, str):
            logged = Logged(self._build_request(event, output, started), self._session)
        logged.request.model = str(event.get("model") or "").rpartition("/")[2] or logged.request.model
        logged.request.usage = Usage.of_names(output.get("usage"), _USAGE) or logged.request.usage
        return logged

    def _build_request(self, event: Mapping[str, Any], output: Mapping[str, Any], started: float | None) -> Request:
        given = event.get("input") or self._find_in_pool(event.get("input_refs"))
        messages = [_convert(each) for each in self._resolve(given) if isinstance(each, Mapping)]
        tools = [
            {"type": "function", "function": dict(each)} for each in event.get("tools") or () if isinstance(each, dict)
        ]
        choices = [
            {"index": place, "message": _convert(each["message"]), "finish_reason": each.get("stop_reason")}
            for place, each in enumerate(output.get("choices") or ())
            if isinstance(each, Mapping) and isinstance(each.get("message"), Mapping)
        ]
        config = event.get("config")
        return Request(
            api="openai",
            model=None,
            history=messages,
            length=len(messages),
            tools=tools,
            settings=dict(config) if isinstance(config, Mapping) else {},
            started=started,
            reply={"choices": choices},
        )

    def _find_in_pool(self, ranges: Any) -> list[Any]:
        found: list[Any] = []
        for each in ranges if isinstance(ranges, list) else ():
            found += self._pool[slice(*each)] if isinstance(each, list) else self._pool[each : each + 1]
        return found

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, str):
            key = value.removeprefix(_ATTACHED)
            return self._attached.get(key, value) if value.startswith(_ATTACHED) else value
        if isinstance(value, Mapping):
            return {name: self._resolve(each) for name, each in value.items()}
        return [self._resolve(each) for each in value] if isinstance(value, list) else value


def _convert(message: Mapping[str, Any]) -> Message:
    """Convert an Inspect message, in which tool calls have other fields, to a chat message."""
    content = message.get("content")
    converted: Message = {"role": message.get("role"), "content": content}
    if message.get("role") == "tool":
        converted["tool_call_id"] = message.get("tool_call_id")
    calls = [each for each in message.get("tool_calls") or () if isinstance(each, Mapping)]
    if calls:
        converted["tool_calls"] = [
            {
                "id": call.get("id"),
                "type": "function",
                "function": {"name": call.get("function"), "arguments": dump_json(call.get("arguments") or {})},
            }
            for call in calls
        ]
    return converted
