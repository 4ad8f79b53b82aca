"""Spans of OpenTelemetry's GenAI conventions: OTLP in JSON, or output of the console exporter.

Their messages have a special form, and are converted to chat completions. Capturing content is opt-in: spans without
messages are counted separately.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.text import dump_json
from context_bench.traffic.readers.api_logs import read_time
from context_bench.traffic.readers.grouping import Logged, group_requests
from context_bench.traffic.readers.sources import Head, Source, is_too_deep
from context_bench.traffic.sessions import Message, Request, Thread, Usage
from context_bench.utils.tokens import read_token_count
from context_bench.wire.prompts import read_text

_OTHER_OPERATIONS = ("embeddings", "execute_tool", "create_agent", "invoke_agent")
_SETTINGS = ("temperature", "top_p", "max_tokens", "frequency_penalty", "presence_penalty", "seed")
_REBUILT = "messages: converted from the form of spans"


class OtelSpans:
    """Reader of OpenTelemetry's GenAI spans."""

    name = "otel"
    title = "OpenTelemetry GenAI spans"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda record: any("gen_ai." in str(span.get("attributes")) for span in _list_spans(record)))

    def read(self, source: Source) -> Iterator[Thread]:
        return group_requests(source, self.name, _parse, source.records(_list_spans))


def _list_spans(record: Any) -> list[Any]:
    """List the spans in an export, or a single span."""
    if not isinstance(record, Mapping) or "resourceSpans" not in record:
        return [record] if isinstance(record, Mapping) else []
    return [
        span
        for resource in record["resourceSpans"] or ()
        for scope in resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans") or ()
        for span in scope.get("spans") or ()
    ]


def _parse(span: Any) -> Logged | str:
    told = _read_attributes(span.get("attributes")) if isinstance(span, Mapping) else {}
    if not any(str(name).startswith("gen_ai.") for name in told):
        return "a span without a model call"
    if told.get("gen_ai.operation.name") in _OTHER_OPERATIONS:
        return f"a span of the operation {told['gen_ai.operation.name']}"
    messages, replied = _find_messages(span, told)
    if not messages:
        return "a span without its messages (their capture is opt-in)"
    system = read_text(_read_json(told.get("gen_ai.system_instructions"), text_field="content"))
    messages = [{"role": "system", "content": system}, *messages] if system else messages
    tools = _read_json(told.get("gen_ai.tool.definitions"))
    prefix = "gen_ai.request."
    request = Request(
        api="openai",
        model=str(told.get("gen_ai.request.model") or told.get("gen_ai.response.model") or "") or None,
        history=messages,
        length=len(messages),
        tools=tools if isinstance(tools, list) else [],
        settings={name: told[prefix + name] for name in _SETTINGS if told.get(prefix + name) is not None},
        started=_read_start(span),
        reply={"choices": [{"index": 0, "message": replied, "finish_reason": None}]} if replied else None,
        usage=_read_usage(told),
        id=str(told.get("gen_ai.response.id") or ""),
    )
    context = span.get("context")
    trace = span.get("traceId") or (context.get("trace_id") if isinstance(context, Mapping) else None)
    return Logged(request, str(told.get("gen_ai.conversation.id") or trace or ""), "", (_REBUILT,))


def _read_start(span: Mapping[str, Any]) -> float | None:
    nanoseconds = span.get("startTimeUnixNano")
    if str(nanoseconds or "").isdecimal():
        return read_time({"time": int(str(nanoseconds)[:30]) / 1e9})
    return read_time(span)


def _read_usage(told: Mapping[str, Any]) -> Usage | None:
    def find(*names: str) -> int | None:
        values = (told.get(f"gen_ai.usage.{name}") for name in names)
        return next((read_token_count(int(str(value)[:30])) for value in values if str(value).isdecimal()), None)

    prompt = find("input_tokens", "prompt_tokens")
    if prompt is None:
        return None
    read = find("cache_read.input_tokens", "cache_read_input_tokens")
    written = find("cache_creation.input_tokens", "cache_creation_input_tokens")
    return Usage.of_prompt(prompt, read, written or 0, 0, find("output_tokens", "completion_tokens"))


def _read_attributes(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    pairs = given if isinstance(given, list) else []
    return {str(each.get("key")): _read_value(each.get("value")) for each in pairs if isinstance(each, Mapping)}


def _read_value(value: Any) -> Any:
    """Read an OTLP value, which is wrapped in its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind == "arrayValue":
        return [_read_value(each) for each in held.get("values") or ()]
    if kind == "kvlistValue":
        return _read_attributes(held.get("values"))
    return int(held) if kind == "intValue" else held


def _read_json(value: Any, text_field: str = "") -> Any:
    if isinstance(value, str):
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        value = value if is_too_deep(read) else read
    if text_field and isinstance(value, list):
        return [{"text": each.get(text_field)} if isinstance(each, Mapping) else each for each in value]
    return value


def _find_messages(span: Mapping[str, Any], told: Mapping[str, Any]) -> tuple[list[Message], Message | None]:
    """Return the messages and reply of a span, from current attributes, older ones or events."""
    given = _read_json(told.get("gen_ai.input.messages") or told.get("gen_ai.prompt"))
    written = _read_json(told.get("gen_ai.output.messages") or told.get("gen_ai.completion"))
    if given is None:
        given, written = _read_indexed(told, "gen_ai.prompt."), _read_indexed(told, "gen_ai.completion.")
    if not given:
        given, written = _read_events(span)
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if isinstance(written, str):
        written = [{"role": "assistant", "content": written}]
    asked = [each for message in given or () if isinstance(message, Mapping) for each in _convert(message)]
    replied = [each for message in written or () if isinstance(message, Mapping) for each in _convert(message)]
    return asked, replied[0] if replied else None


def _read_indexed(told: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Read `gen_ai.prompt.0.role` and the like."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in told.items():
        place, _, field = name.removeprefix(prefix).partition(".")
        if name.startswith(prefix) and place.isdigit():
            found.setdefault(int(place), {})[field] = value
    return [found[place] for place in sorted(found)]


def _read_events(span: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Read events such as `gen_ai.user.message` and `gen_ai.choice`."""
    asked: list[dict[str, Any]] = []
    replied: list[dict[str, Any]] = []
    for event in span.get("events") or ():
        name, told = str(event.get("name")), _read_attributes(event.get("attributes"))
        if name == "gen_ai.choice":
            message = _read_json(told.get("message"))
            replied.append({"role": "assistant", **(message if isinstance(message, Mapping) else told)})
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            asked.append({"role": name.split(".")[1], **told})
    return asked, replied


def _convert(message: Mapping[str, Any]) -> list[Message]:
    """Convert a message with `parts` to chat messages; one with `content` is unchanged."""
    role = str(message.get("role") or "user")
    parts = message.get("parts")
    if not isinstance(parts, list):
        calls = _read_json(message.get("tool_calls"))
        plain: Message = {"role": role, "content": message.get("content")}
        if role == "tool":
            plain["tool_call_id"] = message.get("tool_call_id") or message.get("id")
        return [{**plain, "tool_calls": calls} if isinstance(calls, list) else plain]
    converted: list[Message] = []
    calls, texts = [], []
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "tool_call_response":
            answer = part.get("response", part.get("result"))
            text = answer if isinstance(answer, str) else dump_json(answer)
            converted.append({"role": "tool", "tool_call_id": part.get("id"), "content": text})
        elif kind == "tool_call":
            given = part.get("arguments")
            function = {"name": part.get("name"), "arguments": given if isinstance(given, str) else dump_json(given)}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif kind == "text":
            texts.append(str(part.get("content") or ""))
    if texts or calls:
        said: Message = {"role": role, "content": "".join(texts) or None}
        converted.append({**said, "tool_calls": calls} if calls else said)
    return converted
