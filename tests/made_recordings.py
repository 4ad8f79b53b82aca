"""Recordings of each format, made from its documentation."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

CHAT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Why?"}], "temperature": 0}
CHAT_USAGE = {
    "prompt_tokens": 2000,
    "completion_tokens": 30,
    "prompt_tokens_details": {"cached_tokens": 1408, "cache_write_tokens": 500},
}
CHAT_REPLY = {
    "id": "chatcmpl-1",
    "choices": [{"message": {"role": "assistant", "content": "So."}}],
    "usage": CHAT_USAGE,
}
MARKED = {"type": "text", "text": "Read.", "cache_control": {"type": "ephemeral"}}
MESSAGES = {
    "model": "claude-sonnet-4",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "Be brief."}],
    "messages": [{"role": "user", "content": [MARKED]}],
    "tools": [{"name": "read", "input_schema": {"type": "object"}}],
}
MESSAGES_REPLY = {
    "id": "msg_1",
    "type": "message",
    "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}],
    "usage": {"input_tokens": 7, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 40, "output_tokens": 2},
}
RESPONSES = {"model": "gpt-5", "instructions": "Be brief.", "input": "Why?", "store": True}
RESPONSES_REPLY: dict[str, Any] = {
    "id": "resp_1",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}],
    "usage": {"input_tokens": 20, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 5}},
}


CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}]
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "a.py"}
SAID = {"role": "assistant", "content": "So."}
CONVERSATION = [*ASKED, CALLED, RESULT]


def write_lines(*records: Any) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


def count_tokens(total: int, prompt: int, cached: int, output: int) -> dict[str, Any]:
    last = {"input_tokens": prompt, "cached_input_tokens": cached, "output_tokens": output}
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": last}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}, "timestamp": "2026-01-02T03:04:09Z"}


def item(**payload: Any) -> dict[str, Any]:
    return {"type": "response_item", "payload": payload, "timestamp": "2026-01-02T03:04:05Z"}


def ask(text: str) -> dict[str, Any]:
    return item(type="message", role="user", content=[{"type": "input_text", "text": text}])


def say(text: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


ROLLOUT = [
    {"type": "session_meta", "payload": {"id": "thread-1", "base_instructions": {"text": "Be brief."}}},
    {"type": "turn_context", "payload": {"model": "gpt-5.3-codex", "effort": "high"}},
    ask("Why?"),
    {"type": "event_msg", "payload": {"type": "token_count", "info": None}},
    item(type="reasoning", summary=[], encrypted_content="x"),
    item(type="function_call", name="shell", arguments="{}", call_id="c1"),
    count_tokens(1000, 1000, 0, 50),
    count_tokens(1000, 1000, 0, 50),  # written twice
    item(type="function_call_output", call_id="c1", output="a.py"),
    say("So."),
    count_tokens(2200, 1200, 1024, 9),
    {"type": "compacted", "payload": {"replacement_history": [{"role": "user", "content": "A summary"}]}},
    ask("And?"),
    say("Thus."),
    count_tokens(2500, 300, 128, 5),
]


LITELLM_USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 64}}
LITELLM_REPLY = {"id": "chatcmpl-1", "choices": [{"message": SAID}], "usage": LITELLM_USAGE}
SPEND_LOG = {
    "request_id": "r1",
    "call_type": "acompletion",
    "model": "openai/gpt-4o",
    "startTime": "2026-01-02 03:04:05.5",
    "session_id": "s1",
    "spend": 0.1,
    "status": "success",
    "messages": json.dumps(ASKED),
    "response": json.dumps(LITELLM_REPLY),
    "proxy_server_request": json.dumps({"model": "gpt-4o", "messages": ASKED, "tools": [{"type": "function"}]}),
}
PAYLOAD = {
    "id": "r2",
    "trace_id": "t1",
    "call_type": "completion",
    "litellm_call_id": "x",
    "model": "gpt-4o",
    "model_parameters": {"temperature": 0, "tools": [{"type": "function"}]},
    "messages": ASKED,
    "response": LITELLM_REPLY,
    "startTime": 1767323045.5,
}


SPAN_MESSAGES = [
    {"role": "user", "parts": [{"type": "text", "content": "Why?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "bash", "arguments": {"command": "ls"}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "a.py"}]},
]
SPAN_REPLY = [{"role": "assistant", "parts": [{"type": "text", "content": "So."}], "finish_reason": "stop"}]
NEW_ATTRIBUTES = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "Be brief."}]),
    "gen_ai.input.messages": json.dumps(SPAN_MESSAGES),
    "gen_ai.output.messages": json.dumps(SPAN_REPLY),
    "gen_ai.conversation.id": "conv-1",
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.cache_read.input_tokens": 64,
    "gen_ai.usage.cache_creation.input_tokens": 10,
    "gen_ai.usage.output_tokens": 5,
}
OLD_ATTRIBUTES = {
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "Be brief.",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": "Why?",
    "gen_ai.completion.0.content": "So.",
    "gen_ai.usage.prompt_tokens": 20,
    "gen_ai.usage.completion_tokens": 5,
}


def export(attributes: dict[str, Any]) -> dict[str, Any]:
    kinds = {int: "intValue", str: "stringValue"}
    listed = [{"key": key, "value": {kinds[type(value)]: str(value)}} for key, value in attributes.items()]
    span = {"traceId": "trace-1", "startTimeUnixNano": "1767323045500000000", "attributes": listed}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span, {"traceId": "t", "name": "GET /", "attributes": []}]}]}]}


def entry(url: str, body: Any, text: str, **content: Any) -> dict[str, Any]:
    return {
        "startedDateTime": "2026-01-02T03:04:05.500Z",
        "request": {
            "method": "POST",
            "url": url,
            "headers": [{"name": "X-Claude-Code-Session-Id", "value": "s1"}],
            "postData": {"mimeType": "application/json", "text": json.dumps(body)},
        },
        "response": {"status": 200, "content": {"text": text, **content}},
    }


def make_sample() -> dict[str, Any]:
    usage = {"input_tokens": 7, "input_tokens_cache_read": 50, "input_tokens_cache_write": 40, "output_tokens": 2}
    output = {"choices": [{"message": SAID, "stop_reason": "stop"}], "usage": usage}
    call = {"id": "c1", "function": "bash", "arguments": {"command": "ls"}}
    asked = [{"role": "system", "content": "attachment://h1"}, ASKED[1]]
    model = {"event": "model", "model": "anthropic/claude", "tools": [{"name": "bash"}], "output": output}
    later = [*asked, {"role": "assistant", "content": None, "tool_calls": [call]}, {**RESULT, "function": "bash"}]
    events = [
        {"event": "sample_init"},
        {**model, "input": asked, "timestamp": "2026-01-02T03:04:05.500000+00:00"},
        {**model, "input": later, "timestamp": "2026-01-02T03:04:06+00:00"},
        {**model, "input": later, "cache": "read"},
    ]
    return {"id": 1, "epoch": 1, "events": events, "attachments": {"h1": "Be brief."}}


def write_har(count: int) -> bytes:
    body = {"model": "m", "messages": ASKED}
    entries = [entry("https://x/v1/chat/completions", body, json.dumps(LITELLM_REPLY)) for _ in range(count)]
    return json.dumps({"log": {"entries": entries}}, indent=1).encode()


def write_eval(count: int) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        for number in range(count // 2):  # a sample has two
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps({**make_sample(), "id": number}))
    return packed.getvalue()


def alternate(count: int) -> list[dict[str, Any]]:
    return [*ASKED, *([SAID, ASKED[1]] * count)]


MADE: dict[str, Callable[[int], bytes]] = {
    "codex": lambda count: write_lines(
        *ROLLOUT[:2],
        *(each for n in range(count) for each in (ask("Why?"), say("So."), count_tokens(n + 1, 1000, 0, 5))),
    ).encode(),
    "litellm": lambda count: write_lines(*[SPEND_LOG] * count).encode(),
    "otel": lambda count: write_lines(*[export(NEW_ATTRIBUTES)] * count).encode(),
    "har": write_har,
    "swe-agent": lambda count: json.dumps({"trajectory": [{"query": ASKED}] * count, "info": {}}, indent=2).encode(),
    "mini-swe-agent": lambda count: json.dumps({"info": {}, "messages": alternate(count)}, indent=2).encode(),
    "openhands": lambda count: json.dumps(
        [
            {"id": n, "source": "agent" if n % 2 else "user", "action": "message", "args": {"content": "Why?"}}
            for n in range(2 * count)
        ],
        indent=2,
    ).encode(),
    "inspect": write_eval,
    "tokbench": lambda count: json.dumps(
        {
            "schema": "forge-subagent-transcript/v1",
            "prompt": "Why?",
            "messages": [{"role": "assistant", "content": [], "usage": {"input": 5, "output": 1}}] * count,
        },
        indent=2,
    ).encode(),
}  # fmt: skip
"""A file of each format with so many requests."""


SESSION = "11111111-2222-3333-4444-555555555555"


def row(kind: str, uuid: str, parent: str | None, content: Any = None, **more: Any) -> dict[str, Any]:
    found = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION, **more}
    found["timestamp"] = "2026-01-02T03:04:05.678Z"
    if content is not None:
        found["message"] = {"role": kind, "content": content}
    return found


def reply(uuid: str, parent: str, identity: str, block: dict[str, Any], usage: tuple[int, ...], **more: Any) -> Any:
    new, written, read, output = usage
    found = row("assistant", uuid, parent, [block], requestId=f"req_{identity}", **more)
    found["message"] |= {"id": identity, "model": "claude-sonnet-4-20250514", "stop_reason": "tool_use"}
    lifetimes = {"ephemeral_5m_input_tokens": written - 10, "ephemeral_1h_input_tokens": 10} if written else {}
    found["message"]["usage"] = {
        "input_tokens": new,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
        "cache_creation": lifetimes,
    }
    return found


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(identity: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": "Read", "input": {"path": "a.py"}}


def result(identity: str, words: str) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": identity, "content": words}]


ROWS = [
    {"type": "summary", "summary": "A title", "leafUuid": "a2"},
    row("user", "u1", None, "Fix it"),
    reply("a1", "u1", "msg_1", text("Reading."), (3, 100, 0, 1)),
    reply("a2", "a1", "msg_1", call("t1"), (3, 100, 0, 40)),
    row("user", "u2", "a2", result("t1", "old text")),
    row("progress", "p1", "u2"),
    reply("a3", "p1", "msg_2", text("Done."), (5, 20, 100, 7)),
    row("user", "s1", None, "Search", isSidechain=True),
    reply("s2", "s1", "msg_3", text("Found."), (9, 0, 0, 2), isSidechain=True),
]
