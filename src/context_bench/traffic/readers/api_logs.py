"""Logs of API requests: chat completions, responses and Anthropic messages, and a tap's recordings.

A record is the request itself, or has it under `request` or `body`, as an object or as text. The reply is under
`response` or `reply`, as one body or as stream events. A folder of raw bodies from Claude Code
(`OTEL_LOG_RAW_API_BODIES=file:DIR`) is read as such a log too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, NamedTuple

from context_bench.traffic.readers.grouping import Logged, digest_states, find_session, group_requests
from context_bench.traffic.readers.sources import Head, Record, Source, is_too_deep
from context_bench.traffic.sessions import Request, Thread, Usage
from context_bench.wire.events import scan_events
from context_bench.wire.form import StreamedReply
from context_bench.wire.forms import FORMS, find_form
from context_bench.wire.prompts import read_document

NO_REQUEST = "no request to a model"
_TIMES = ("started_at", "startTime", "start_time", "timestamp", "started", "created_at", "request_created_at", "time")
_ANTHROPIC = ("system", "anthropic_version", "max_tokens_to_sample", "context_management", "thinking")
_BLOCKS = ("tool_use", "tool_result", "thinking")


class ApiLogs:
    """Reader of requests and replies in their API's form."""

    name = "api-log"
    title = "log of API requests"

    def sniff(self, head: Head) -> bool:
        return head.any(lambda record: not isinstance(parse_record(record), str))

    def read(self, source: Source) -> Iterator[Thread]:
        return group_requests(source, self.name, parse_record)


def read_object(value: Any) -> Mapping[str, Any] | None:
    """Return a JSON object, also from its text; None for anything else."""
    if isinstance(value, str):
        value = read_document(value) or None
        value = None if is_too_deep(value) else value
    return value if isinstance(value, Mapping) else None


def parse_record(record: Any) -> Logged | str:
    """Read the request in a log record, or return the reason why there is none."""
    if not isinstance(record, Mapping):
        return "no JSON object"
    wrapped = next((found for key in ("request", "body") if (found := read_object(record.get(key)))), record)
    body = read_object(wrapped.get("body")) or wrapped
    status = record.get("status")
    given = record.get("response") or record.get("reply")
    if isinstance(given, Mapping):
        status = given.get("status_code", status)
    if type(status) is int and status >= 400:
        return f"failed request (status {status})"
    path = str(record.get("path") or record.get("url") or wrapped.get("url") or "")
    return build_logged(body, given, path, find_session({**wrapped, **record}, body), read_time(record))


def build_logged(body: Mapping[str, Any], given: Any, path: str, session: str, started: float | None) -> Logged | str:
    """Build a request from its body and reply; the path determines the API, else the fields of body and reply do."""
    form = find_form("/v1" + path.partition("?")[0].rpartition("/v1")[2]) if path else None
    reply = read_reply(given)
    api = form.name if form is not None else find_api(body, reply)
    conversation, system = ("input", "instructions") if api == "responses" else ("messages", "system")
    messages = body.get(conversation)
    if api == "responses" and isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    others = [each for each in FORMS if each.name not in ("openai", "anthropic", "responses")]
    found = None if api else next(((each.name, told) for each in others if (told := each.read_prompt(body))), None)
    if found is not None:  # an API that only its form recognises
        api, prompt = found
        messages = prompt.messages
        body = {**body, system: prompt.system, "tools": prompt.tools}
    if not api or not isinstance(messages, list) or not all(isinstance(each, Mapping) for each in messages):
        return NO_REQUEST
    if not messages or (api != "responses" and not all(isinstance(each.get("role"), str) for each in messages)):
        return NO_REQUEST
    tools = body.get("tools")
    left_out = {conversation, system, "tools", "model", "response", "reply", "previous_response_id"}
    request = Request(
        api=api,
        model=str(body.get("model") or (reply or {}).get("model") or "") or None,
        history=list(messages),
        length=len(messages),
        system=body.get(system),
        tools=list(tools) if isinstance(tools, list) else [],
        settings={key: value for key, value in body.items() if key not in left_out},
        started=started,
        reply=reply,
        usage=Usage.read((reply or {}).get("usage")),
        id=str((reply or {}).get("id") or ""),
    )
    previous = body.get("previous_response_id")
    return Logged(request, session, previous if isinstance(previous, str) else "")


def find_api(body: Mapping[str, Any], reply: Mapping[str, Any] | None) -> str:
    """Return the API of a body by its fields, messages and reply; "" if unknown."""
    if "messages" not in body:
        asks = isinstance(body.get("input"), list) or "instructions" in body or "output" in (reply or {})
        return "responses" if asks and "input" in body else ""
    if not isinstance(body["messages"], list):
        return ""
    if reply is not None and ("choices" in reply or isinstance(reply.get("content"), list)):
        return "openai" if "choices" in reply else "anthropic"
    blocks = (
        block
        for message in body["messages"]
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for block in message["content"]
    )
    marked = any(
        isinstance(each, Mapping) and ("cache_control" in each or each.get("type") in _BLOCKS) for each in blocks
    )
    tools = body.get("tools")
    offered = isinstance(tools, list) and any(isinstance(each, Mapping) and "input_schema" in each for each in tools)
    return "anthropic" if marked or offered or any(field in body for field in _ANTHROPIC) else "openai"


def read_reply(given: Any) -> dict[str, Any] | None:
    """Read a recorded reply as an unstreamed body; None without a reply."""
    if isinstance(given, str) and not given.lstrip("\ufeff \n").startswith("{"):
        return _join_stream(given)
    response = read_object(given)
    if response is None:
        return None
    inner = response.get("body")
    if isinstance(inner, str) and not inner.lstrip().startswith("{"):
        return _join_stream(inner)
    return dict(read_object(inner) or response)


def _join_stream(text: str) -> dict[str, Any] | None:
    """Join the events of a stream, and keep the id and model of the first ones."""
    stream, told, known = StreamedReply(), dict[str, Any](), None
    for event in scan_events(text):
        with suppress(AttributeError, TypeError, KeyError, ValueError):
            known = next((form for form in reversed(FORMS) if form.add_event(stream, event)), known)
        held = next((event[key] for key in ("message", "response") if isinstance(event.get(key), Mapping)), event)
        told |= {key: held[key] for key in ("id", "model") if isinstance(held.get(key), str) and key not in told}
    if known is None or not (stream.texts or stream.calls):
        return None
    try:
        return {**told, **known.join_stream(stream)}
    except (ValueError, TypeError, KeyError):  # a call with cut arguments
        return {**told, "usage": stream.usage}


def read_time(record: Mapping[str, Any], names: tuple[str, ...] = _TIMES) -> float | None:
    """Return the first time in a record (date, seconds or milliseconds) as seconds since 1970; None without one."""
    for name in names:
        value = record.get(name)
        if isinstance(value, int | float) and 1e8 < value < 1e15:
            return float(value) / (1000 if value > 1e11 else 1)
        if isinstance(value, str) and (moment := parse_date(value)) is not None:
            return moment
    return None


def parse_date(text: str) -> float | None:
    """Parse a date and time; a time without a zone is UTC."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", text.strip().replace("Z", "+00:00"))
    text = re.sub(r"\.(\d{1,5})(?=\+|-|$)", lambda found: f".{found[1]:0<6}", text)
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        return None


# --- raw bodies of Claude Code


class RawBodies:
    """A folder of `<uuid>.request.json` and `<request id>.response.json`.

    File names do not pair them. A reply is matched to its request by the later requests that contain it. The last reply
    of a thread is the first reply written after its request.
    """

    name = "raw-bodies"
    title = "Claude Code's raw API bodies"
    paired = "replies: matched to requests by later requests, else by time"

    def sniff(self, head: Head) -> bool:
        return head.name.endswith((".request.json", ".response.json"))

    def read(self, source: Source) -> Iterator[Thread]:
        requests: list[_RawRequest] = []
        replies: list[tuple[int, int, float, bytes]] = []  # line, place, time and hash
        for line, place, value in source.records():
            document, modified = value["document"], value["modified"]
            if value["name"].endswith(".response.json"):
                said = [{"role": "assistant", "content": document.get("content")}]
                replies.append((line, place, modified, digest_states(said)[-1]))
            elif isinstance(document.get("messages"), list):
                requests.append(_RawRequest(line, place, modified, *_digest_turn(document["messages"])))
            else:
                source.skip(line, NO_REQUEST)
        requests.sort(key=lambda each: each.modified)
        answers = _pair_bodies(requests, replies)
        for line, place, _, _ in replies:
            if place not in answers.values():
                source.skip(line, "a reply without its request")

        def read_again(place: int) -> Any:
            asked = source.read_again(place)
            reply = source.read_again(answers[place])["document"] if place in answers else None
            return {"request": asked["document"], "reply": reply, "timestamp": asked["modified"]}

        records = (Record(each.line, each.place, read_again(each.place)) for each in requests)
        for thread in group_requests(source, self.name, parse_record, records, read_again):
            thread.reconstructed += (self.paired,)
            yield thread


class _RawRequest(NamedTuple):
    line: int
    place: int
    modified: float
    state: bytes  # hash of all messages
    asked: bytes  # hash of the messages before its last reply
    replied: bytes  # hash of that reply


def _digest_turn(messages: list[Any]) -> tuple[bytes, bytes, bytes]:
    states = digest_states(messages)
    spoke = [place for place, each in enumerate(messages) if isinstance(each, dict) and each.get("role") == "assistant"]
    if not spoke or not spoke[-1]:
        return states[-1], b"", b""
    return states[-1], states[spoke[-1] - 1], digest_states([messages[spoke[-1]]])[-1]


def _pair_bodies(requests: list[_RawRequest], replies: list[tuple[int, int, float, bytes]]) -> dict[int, int]:
    """Map the place of each request to the place of its reply."""
    by_state = {each.state: each.place for each in requests}
    followed = {each.replied: each.asked for each in requests if each.replied}
    answers: dict[int, int] = {}
    left = []
    for reply in sorted(replies, key=lambda each: each[2]):
        asked = by_state.get(followed.get(reply[3], b""))
        if asked is None or asked in answers:
            left.append(reply)
        else:
            answers[asked] = reply[1]
    for reply in left:
        waiting = [each for each in requests if each.place not in answers and each.modified <= reply[2]]
        if waiting:
            answers[waiting[-1].place] = reply[1]
    return answers
