"""Which calls gave the answer, from the record of an exchange."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_bench.tap.exchanges import find_answering_calls, find_answers, is_known, is_same_to_a_model


def body(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}]})


def call(text: str, answer: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    reply = json.dumps({"id": name, "choices": [{"message": {"content": answer}}]})
    return {"path": "/v1/chat/completions", "body": body(text), "status": 200, "reply": reply, **more}


def exchange(*calls: dict[str, Any], text: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    returned = {"id": name, "text": text, "calls": []}
    return {"sent": body("sent"), "calls": list(calls), "unmatched": 0, "returned": returned, **more}


def answering(record: dict[str, Any]) -> list[int] | None:
    found = find_answering_calls(record)
    return None if found is None else [record["calls"].index(each) for each in found]


def test_the_one_that_came_back_first_or_last() -> None:
    calls = call("a", "Rome", "1"), call("b", "Yes", "2")
    assert answering(exchange(*calls, text="Rome", name="1")) == [0]
    assert answering(exchange(*calls, text="Yes", name="2")) == [1]


def test_what_was_refused_or_asks_no_model_gave_no_answer() -> None:
    refused, counting = call("a", "Rome", "1", status=500), call("a", "Rome", "1", path="/v1/messages/count_tokens")
    assert answering(exchange(refused, counting, call("b", "Rome", "2"), text="Rome", name="1")) == [2]
    assert answering(exchange(refused, counting, text="Rome", name="1")) == []


def test_the_only_call_answered_however_the_answer_was_rewritten() -> None:
    assert answering(exchange(call("a", "Rome", "1"), text="Something else", name="9")) == [0]
    assert answering(exchange(call("a", "Rome", "1"), returned=None)) == [0]


def test_of_calls_with_the_same_answer_the_one_that_asks_what_was_sent() -> None:
    assert answering(exchange(call("other", "Rome"), call("sent", "Rome"), text="Rome")) == [1]
    assert answering(exchange(call("other", "Rome"), call("other", "Rome"), text="Rome")) == [0]  # all ask the same
    assert answering(exchange(call("other", "Rome"), call("another", "Rome"), text="Rome")) is None


def test_what_was_seen_with_certainty_stands_beside_strangers() -> None:
    calls = call("a", "Rome", "1"), call("b", "Yes", "2")
    assert answering(exchange(*calls, text="Rome", name="1", unmatched=1)) == [0]
    assert answering(exchange(calls[0], text="Else", name="9", unmatched=1)) is None


def test_a_call_that_cannot_be_read() -> None:
    odd = call("a", "Rome", "1") | {"body": '{"input": "a"}', "path": "/v1/responses"}
    assert answering(exchange(odd, text="Rome", name="1")) is None


def test_why_it_is_not_known() -> None:
    known, either = exchange(call("a", "Rome", "1"), text="Rome", name="1"), exchange(call("a"), call("b"), text="x")
    assert find_answers([known]) == [known["calls"]]
    assert find_answers([known, either]) == "which of several calls gave the answer could not be told"
    lost = exchange(unmatched=1)
    assert find_answers([known, lost]) == "which requests at the tap belong to this example could not be told"


def test_a_tap_that_nobody_called_knows_of_a_cache_that_says_so() -> None:
    assert not is_known(exchange(silent=True))
    assert is_known(exchange(silent=True, cache_hit=True))


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "default": None}}}


def request(message: Any = None, **fields: Any) -> str:
    return json.dumps({"messages": [message or {"role": "user", "content": "hi"}], **fields})


def assistant(**fields: Any) -> str:
    return request({"role": "assistant", **fields})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (assistant(content=None, tool_calls=[CALL]), assistant(tool_calls=[CALL])),
        (assistant(content="", tool_calls=[CALL]), assistant(content=None, tool_calls=[CALL])),
        (assistant(content=[], tool_calls=[CALL]), assistant(tool_calls=[CALL])),
        (assistant(content=None), assistant()),
        (assistant(content="x", tool_calls=None, refusal=None), assistant(content="x", tool_calls=[])),
        (assistant(content="x"), assistant(content=[{"type": "text", "text": "x"}])),
        (assistant(content="x"), assistant(content=[{"text": "x", "type": "text", "cache_control": {"type": "e"}}])),
        (
            assistant(tool_calls=[CALL]),
            assistant(tool_calls=[{**CALL, "function": {"arguments": '{"b":2.0,"a":1}', "name": "f"}}]),
        ),
        (request(tools=[TOOL]), request(tools=[{**TOOL, "function": dict(reversed(TOOL["function"].items()))}])),  # type: ignore[attr-defined]
        (request(tools=[{"x": 1}]), request(tools=[{"x": 1.0, "cache_control": {}, "strict": None}])),
        (request(system="s"), request(system=[{"type": "text", "text": "s"}])),
        (request(system=""), request()),
        (request(), request(tools=[])),
        (request(temperature=1), request()),  # it is not read
    ],
)
def test_the_same_to_a_model(first: str, second: str) -> None:
    assert is_same_to_a_model(first, second)
    assert is_same_to_a_model(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (assistant(content=""), assistant(content="x")),
        (assistant(content="x", tool_calls=[CALL]), assistant(tool_calls=[CALL])),
        (assistant(content="x"), request({"role": "user", "content": "x"})),
        (assistant(content="x"), assistant(content=[{"type": "text", "text": "x"}] * 2)),
        (assistant(content=[{"type": "image", "source": 1}]), assistant(content=[{"type": "image", "source": 2}])),
        (assistant(tool_calls=[CALL]), assistant(tool_calls=[CALL, CALL])),
        (assistant(tool_calls=[CALL]), assistant(tool_calls=[{**CALL, "id": "d"}])),
        (request(tools=[TOOL]), request(tools=[{**TOOL, "function": {"name": "g"}}])),
        (
            request(tools=[TOOL]),
            request(tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]),
        ),  # null within a schema is a value
        (request(tools=[TOOL]), request()),
        (request(system="s"), request()),
    ],
)
def test_not_the_same_to_a_model(first: str, second: str) -> None:
    assert not is_same_to_a_model(first, second)
