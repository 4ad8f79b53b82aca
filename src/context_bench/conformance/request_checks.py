"""Check that requests (tools, settings, unknown fields, images, headers) reach the model intact, and usage returns."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from context_bench.conformance.bench import Bench, BenchExchange, CheckFailed, Said, check, require, user_message
from context_bench.wire.form import Answer, ToolCall
from context_bench.wire.forms import read_prompt
from context_bench.wire.prompts import Message

_FREE = {"description", "title", "examples", "$comment", "default", "additionalProperties"}
"""Keys that only explain a schema, or give its defaults; a proxy that leaves these out breaks nothing."""

_UNORDERED = {"required", "enum"}
_NAMED = {"properties", "$defs", "definitions"}  # where the keys are names of the user's, whatever they spell


def find_flaw(sent: Any, arrived: Any, where: str = "the arguments", *, names: bool = False) -> str | None:
    """Describe how the received schema differs in meaning from the sent schema; None if both mean the same."""
    if isinstance(sent, Mapping):
        if not isinstance(arrived, Mapping):
            return f"the schema is gone from {where}"
        keys = [key for key in {**sent, **arrived} if names or key not in _FREE]
        return _first(_find_flaw_at(key, sent, arrived, where, names) for key in keys)
    if isinstance(sent, list) and isinstance(arrived, list) and len(sent) == len(arrived):
        return _first(find_flaw(one, other, where) for one, other in zip(sent, arrived))
    return None if sent == arrived else f"{sent!r} became {arrived!r} in {where}"


def _find_flaw_at(key: str, sent: Mapping[str, Any], arrived: Mapping[str, Any], where: str, names: bool) -> str | None:
    if key not in arrived:
        return f"{key!r} is gone from {where}"
    if key not in sent:
        return f"{key!r} was added to {where}"
    one, other = sent[key], arrived[key]
    if not names and key in _UNORDERED and isinstance(one, list) and isinstance(other, list):
        one, other = sorted(one, key=repr), sorted(other, key=repr)
    return find_flaw(one, other, f"{key!r} of {where}", names=not names and key in _NAMED)


def _first(flaws: Any) -> str | None:
    return next((flaw for flaw in flaws if flaw is not None), None)


_CALLS = [
    ToolCall(
        "call_Zk3xPq81",
        "book_table",
        '{"guests": 4, "name": "Zoë \\"Zed\\" O\'Neill", "when": {"day": "2026-11-20", "slots": [1.0, 2.5, null]}}',
    ),
    ToolCall(
        "call_7hTTwB02", "send_note", '{"id": 9007199254740993, "text": "line\\nbreak, 漢字, \\u0001 and </tag>"}'
    ),
]

_SCHEMAS: dict[str, dict[str, Any]] = {
    "book_table": {
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "minimum": 1, "description": "How many people come."},
            "name": {"type": "string", "description": "Who books."},
            "room": {"type": "string", "enum": ["garden", "hall", "bar"]},
            "when": {
                "type": "object",
                "properties": {"day": {"type": "string"}, "slots": {"type": "array", "items": {"type": "number"}}},
                "required": ["day"],
            },
        },
        "required": ["guests", "name"],
        "additionalProperties": False,
    },
    "send_note": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "text": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["id"],
    },
}


@check("tool calls in replies intact", "Do ids, names and JSON arguments of tool calls come back unchanged?")
async def calls_plain(bench: Bench) -> None:
    _compare(bench, (await bench.ask(Answer(tool_calls=_CALLS), tools=_build_tools())).read_reply())


@check("streamed tool calls intact", "Do the pieces of streamed tool calls join to the same ids, names and arguments?")
async def calls_streamed(bench: Bench) -> None:
    _compare(bench, (await bench.ask(Answer(tool_calls=_CALLS), tools=_build_tools(), stream=True)).read_reply())


def _compare(bench: Bench, said: Said) -> None:
    """Fail if a call was lost or changed; if only the spelling of its JSON differs, add a note."""
    sent, arrived = _describe_calls(_CALLS), _describe_calls(said.calls)
    require(len(said.calls) == len(_CALLS), "the number of tool calls was changed", sent, arrived)
    for ours, theirs in zip(_CALLS, said.calls):
        require(ours.id == theirs.id, "the id of a tool call was changed", sent, arrived)
        require(ours.name == theirs.name, "the name of a called tool was changed", sent, arrived)
        try:
            same = json.loads(theirs.arguments) == json.loads(ours.arguments)
        except (ValueError, TypeError):
            raise CheckFailed("the arguments of a tool call are no longer JSON", sent, arrived) from None
        require(same, "the arguments of a tool call were changed", sent, arrived)
        if bench.form.samples.keeps_arguments and ours.arguments != theirs.arguments:
            bench.note("writes the JSON of tool arguments in another way")


def _describe_calls(calls: list[ToolCall]) -> list[dict[str, str]]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def _build_tools() -> list[dict[str, Any]]:
    described = [(name, f"Use it to {name.replace('_', ' ')}.", schema) for name, schema in _SCHEMAS.items()]
    return [
        {"type": "function", "function": {"name": name, "description": text, "parameters": schema}}
        for name, text, schema in described
    ]


@check("tools reach upstream", "Do all tools reach the model, with valid schemas of the same meaning?")
async def schemas(bench: Bench) -> None:
    exchange = await bench.ask(Answer("ok"), user_message("Book a table for four."), tools=_build_tools())
    prompt, own = exchange.prompt, read_prompt(exchange.sent)
    tools = own.tools if own else []
    received = dict(zip(prompt.tool_names(), (tool for tool in prompt.tools if isinstance(tool, Mapping))))
    for name, tool in zip(_SCHEMAS, tools):
        require(name in received, f"the tool {name!r} did not reach the upstream", tool, sorted(received))
        flaw = find_flaw(_SCHEMAS[name], bench.form.read_schema(received[name]))
        require(flaw is None, f"the schema of {name!r}: {flaw}", tool, received[name])
        if received[name] != tool:
            bench.note("rewords the descriptions of tools")
    exchange.read_reply()


@check(
    "tool results keep their ids", "Do calls and results of a conversation reach the model with ids that still pair?"
)
async def pairs(bench: Bench) -> None:
    results = ["Booked for four.", "The note was sent."]
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in _CALLS
    ]
    history: list[Message] = [{"role": "assistant", "content": None, "tool_calls": calls}]
    history += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in zip(_CALLS, results)]
    exchange = await bench.ask(Answer("Done."), user_message("Book and tell them."), *history, tools=_build_tools())
    messages = exchange.prompt.messages
    ids = [call.id for call in _CALLS]
    for whose, found in zip(("the assistant's calls", "the tools' results"), bench.form.read_tool_ids(messages)):
        require(found == ids, f"{whose} did not reach the upstream with their ids", history, messages)
    exchange.read_reply()


_UNKNOWN: dict[str, Any] = {"x_context_bench": {"list": [1, 2.5, None, True, "é"], "empty": {}}, "x_flag": False}
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel


def _require_fields(what: str, exchange: BenchExchange, fields: Mapping[str, Any]) -> None:
    """Fail unless these fields reached the upstream, and the client got the reply."""
    upstream = exchange.upstream
    arrived = {name: upstream[name] for name in fields if name in upstream}
    wrong = [name for name in fields if name not in arrived or arrived[name] != fields[name]]
    require(not wrong, f"{what} lost or changed: {', '.join(wrong)}", dict(fields), arrived)
    exchange.read_reply()


@check("model name passed", "Does the request upstream ask for the same model?")
async def model(bench: Bench) -> None:
    _require_fields("model name", await bench.ask(Answer("ok")), {"model": bench.model})


@check("settings passed", "Do temperature, limits, stop words and the form of the answer reach the model?")
async def settings(bench: Bench) -> None:
    sent, (limit, *others) = bench.form.samples.settings, bench.form.limit_fields
    exchange = await bench.ask(Answer("ok"), **sent)
    upstream = exchange.upstream
    renamed = [name for name in others if upstream.get(name) == sent[limit]]
    if limit not in upstream and renamed:
        bench.note(f"forwards {limit} as {renamed[0]}")  # the API's own new name for it
        sent = {name: value for name, value in sent.items() if name != limit}
    _require_fields("settings", exchange, sent)


@check("unknown request fields passed", "Do fields that the proxy does not know reach the model?")
async def unknown_request(bench: Bench) -> None:
    _require_fields("fields", await bench.ask(Answer("ok"), **_UNKNOWN), _UNKNOWN)


@check("user and metadata passed", "Do the fields that name the caller reach the model's provider?")
async def caller(bench: Bench) -> None:
    _require_fields("fields", await bench.ask(Answer("ok"), **bench.form.samples.caller), bench.form.samples.caller)


@check("unknown reply fields passed", "Do reply fields that are unknown to the proxy come back?")
async def unknown_reply(bench: Bench) -> None:
    exchange = await bench.ask(Answer("ok", extra=_UNKNOWN))
    exchange.read_reply()
    document = exchange.arrived.document()
    arrived = {name: document[name] for name in _UNKNOWN if name in document}
    require(arrived == _UNKNOWN, "fields of the reply were lost or changed", _UNKNOWN, arrived)


@check("usage passed on", "Does the usage that the model's provider bills come back?")
async def usage(bench: Bench) -> None:
    expected = dict(bench.form.samples.usage)
    said = (await bench.ask(Answer("ok", extra={"usage": expected}))).read_reply()
    arrived = {name: said.usage.get(name) for name in expected}
    require(arrived == expected, "the usage was lost or changed", expected, said.usage or None)


@check("images passed", "Does an image in a message reach the model, byte for byte?")
async def images(bench: Bench) -> None:
    message = bench.form.build_image("What is in the picture?", "image/png", _PNG)
    exchange = await bench.ask(Answer("A dot."), message)
    (part,) = [part for part in message["content"] if "text" not in part]
    received = exchange.prompt.messages
    require(_holds(received, part), "the image did not reach the upstream unchanged", part, received)
    exchange.read_reply()


def _holds(value: Any, part: Any) -> bool:
    """Whether a document contains a part, at any depth."""
    if value == part:
        return True
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return any(_holds(each, part) for each in inner)


@check("key passed", "Does the model's provider receive the client's key?")
async def key(bench: Bench) -> None:
    name = bench.form.key_header[0].lower()
    sent = bench.headers[name]
    arrived = (await bench.ask(Answer("ok"))).call.headers.get(name)
    # The other key is never shown, because it may be a real one.
    shown = "nothing" if arrived is None else f"another {name}, which is not shown"
    require(arrived == sent, "the upstream did not receive the client's key", f"{name}: {sent}", shown)


@check("API headers passed", "Do the headers that the API defines reach the model's provider?")
async def api_headers(bench: Bench) -> None:
    call = (await bench.ask(Answer("ok"))).call
    arrived = {name: call.headers[name] for name in bench.form.samples.headers if name in call.headers}
    wrong = [name for name, value in bench.form.samples.headers.items() if arrived.get(name) != value]
    require(not wrong, f"headers lost or changed: {', '.join(wrong)}", dict(bench.form.samples.headers), arrived)


@check("several choices relayed", "Do all answers come back when a request asks for two?", api="openai")
async def choices(bench: Bench) -> None:
    exchange = await bench.ask(Answer("heads", choices=["tails"]), user_message("Toss a coin."), n=2)
    exchange.read_reply()
    document = exchange.arrived.document()
    texts = [choice["message"].get("content") for choice in document["choices"]]
    require(exchange.upstream.get("n") == 2, "the model was not asked for two", 2, exchange.upstream.get("n"))
    require(texts == ["heads", "tails"], "choices were lost or changed", ["heads", "tails"], texts)


_ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the bug."}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAABconformance=="},
    {"type": "custom_tool_call", "call_id": "call_c", "name": "apply_patch", "input": "*** Begin Patch"},
    {"type": "custom_tool_call_output", "call_id": "call_c", "output": "Done."},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABcompacted=="},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]},
]


@check(
    "agent items passed", "Do reasoning, custom tools and compactions reach the model word for word?", api="responses"
)
async def items(bench: Bench) -> None:
    exchange = await bench.ask(Answer("ok"), input=_ITEMS, include=["reasoning.encrypted_content"])
    received = exchange.upstream.get("input")
    lost = [item["type"] for item in _ITEMS if not _holds(received, item)]
    require(not lost, f"items lost or changed: {', '.join(lost)}", _ITEMS, received)
    exchange.read_reply()


@check("compaction relayed", "Does a request to /v1/responses/compact get its encrypted item back?", api="responses")
async def compaction(bench: Bench) -> None:
    bench.upstream.expect(Answer("ok"))
    headers = {"content-type": "application/json", **bench.headers}
    body = json.dumps({"model": bench.model, "input": _ITEMS[:1]}).encode()
    arrived = await bench.client.send("POST", "/v1/responses/compact", body, headers)
    require(arrived.status == 200, f"the reply has status {arrived.status}", "status 200", arrived.text())
    last = arrived.document()["output"][-1]
    hidden = b64encode(b"ok").decode()  # as our upstream hides its text
    require(last.get("encrypted_content") == hidden, "the compaction was lost or changed", hidden, last)
