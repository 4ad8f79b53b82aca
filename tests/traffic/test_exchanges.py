"""Which calls gave the answer, from the record of an exchange."""

from __future__ import annotations

import json
from typing import Any

import pytest

from banks import each_case
from context_bench.traffic.calls import Call
from context_bench.traffic.exchanges import Exchange, find_answers, read_bills, read_exchanges
from context_bench.wire.form import Completion


def body(text: str) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}]})


def call(text: str, answer: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    reply = json.dumps({"id": name, "choices": [{"message": {"content": answer}}]})
    return {"path": "/v1/chat/completions", "body": body(text), "status": 200, "reply": reply, **more}


def exchange(*calls: dict[str, Any], text: str = "", name: str = "", **more: Any) -> dict[str, Any]:
    returned = {"id": name, "text": text, "calls": []}
    return {"sent": body("sent"), "calls": list(calls), "unmatched": 0, "returned": returned, **more}


def answering(record: dict[str, Any]) -> list[int] | None:
    seen = Exchange.from_dict(record)
    found = seen.answering_calls
    return None if found is None else [seen.calls.index(each) for each in found]


def is_same_to_a_model(body: str, other: str) -> bool:
    return Exchange(sent=body).passes_on(Call("/v1/chat/completions", other))


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
    odd = call("a", "Rome", "1") | {"body": '{"contents": "a"}', "path": "/v1/generate"}
    assert answering(exchange(odd, text="Rome", name="1")) is None


def test_why_it_is_not_known() -> None:
    known, either = exchange(call("a", "Rome", "1"), text="Rome", name="1"), exchange(call("a"), call("b"), text="x")
    (seen,) = read_exchanges([known])
    assert find_answers([seen]) == [seen.calls]
    assert find_answers(read_exchanges([known, either])) == "it is unknown which of several calls gave the answer"
    lost = exchange(unmatched=1)
    assert (
        find_answers(read_exchanges([known, lost])) == "it is unknown which requests at the tap belong to this example"
    )


def test_a_tap_that_nobody_called_knows_of_a_cache_that_says_so() -> None:
    assert not Exchange.from_dict(exchange(silent=True)).is_known
    assert Exchange.from_dict(exchange(silent=True, cache_hit=True)).is_known


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "default": None}}}


def request(message: Any = None, **fields: Any) -> str:
    return json.dumps({"messages": [message or {"role": "user", "content": "hi"}], **fields})


def assistant(**fields: Any) -> str:
    return request({"role": "assistant", **fields})


@each_case(
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


# --- as it is stored

STORED = {
    "path": "/v1/chat/completions",
    "sent": '{"messages": []}',
    "attempts": 2,
    "seconds": 1.5,
    "alone": True,
    "first_token": None,
    "claims": {"x-tokens-saved": "3"},
    "cache_hit": False,
    "returned": {"id": "1", "text": "Rome", "calls": [["look", "{}"]]},
    "calls": [
        {
            "path": "/v1/chat/completions",
            "body": '{"messages": []}',
            "headers": {"host": "x"},
            "started": 0.25,
            "first": None,
            "ended": 1.0,
            "status": 200,
            "reply": "{}",
            "cut": False,
        }
    ],
    "lost_calls": [],
    "earlier_calls": 1,
    "unmatched": 1,
    "unmatched_bodies": ["{}"],
    "silent": False,
}
"""A record as stores have kept it since there is a tap."""


def test_a_stored_record_is_read_and_written_as_it_is() -> None:
    seen = Exchange.from_dict(STORED)
    assert (seen.attempts, seen.calls[0].ended, seen.unmatched_bodies) == (2, 1.0, ["{}"])
    assert seen.returned == Completion("1", ["Rome"], [("look", "{}")])
    assert seen.as_dict(0.0) == {**STORED, "asked_before": False}
    seen.unmatched_bytes = 7
    assert Exchange.from_dict(seen.as_dict(0.0)).unmatched_bytes == 7


def test_a_failed_exchange_keeps_what_is_known_of_it() -> None:
    record = {key: STORED[key] for key in ("path", "sent", "attempts", "calls", "unmatched", "unmatched_bodies")}
    record["failed"] = True
    assert Exchange.from_dict(record).as_dict(0.0) == record


def test_records_of_earlier_versions_lack_what_came_later() -> None:
    seen = Exchange.from_dict({"sent": "{}", "calls": [{"path": "/v1/messages", "body": "{}", "status": 200}]})
    assert (seen.attempts, seen.alone, seen.lost_calls, seen.returned) == (1, False, [], None)
    assert (seen.calls[0].reply, seen.calls[0].ended) == ("", None)


def test_each_list_of_records_is_parsed_once() -> None:
    records = [STORED]
    assert read_exchanges(records) is read_exchanges(records)
    assert read_exchanges(records)[0].calls[0].prompt is read_exchanges(records)[0].calls[0].prompt
    assert read_exchanges([dict(STORED)]) is not read_exchanges(records)
    records[0] = {**STORED, "attempts": 5}
    assert read_exchanges(records)[0].attempts == 5


def _paid_call(reply: str, **more: Any) -> Call:
    return Call(path=more.pop("path", "/v1/chat/completions"), body="{}", status=more.pop("status", 200), reply=reply)


def _pair(*calls: Call) -> list[tuple[Exchange, Call]]:
    return [(Exchange("{}"), call) for call in calls]


def _usage(**numbers: int) -> str:
    return json.dumps({"usage": numbers})


def test_every_call_that_a_model_answered_has_its_bill() -> None:
    calls = [_paid_call(_usage(prompt_tokens=11, completion_tokens=2)), _paid_call(_usage(input_tokens=5))]
    assert read_bills(_pair(*calls)) == [
        {"prompt_tokens": 11, "completion_tokens": 2},
        {"prompt_tokens": 5, "completion_tokens": 0, "cached_tokens": 0, "cache_creation_tokens": 0},
    ]


@pytest.mark.parametrize("reply", ["{}", "nonsense", _usage(completion_tokens=3), _usage(prompt_tokens=-3)])
def test_one_call_without_a_bill_makes_the_sum_unknown(reply: str) -> None:
    assert read_bills(_pair(_paid_call(_usage(prompt_tokens=1, completion_tokens=1)), _paid_call(reply))) is None


def test_what_was_refused_or_asks_no_model_is_not_billed() -> None:
    assert read_bills(_pair(_paid_call("{}", status=500), _paid_call("{}", path="/v1/messages/count_tokens"))) == []


def test_a_bill_names_the_model_that_was_asked_instead() -> None:
    swapped = Call("/v1/chat/completions", '{"model": "small"}', status=200, reply=_usage(prompt_tokens=3))
    for asked, model in (("big", {"model": "small"}), ("small", {}), ("openai/small", {})):
        bills = read_bills([(Exchange(f'{{"model": "{asked}"}}'), swapped)])
        assert bills == [{"prompt_tokens": 3, **model}]


def test_an_answer_of_no_tokens_is_not_believed_beside_a_text() -> None:
    said = {"choices": [{"message": {"content": "Rome"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 0}}
    assert read_bills(_pair(_paid_call(json.dumps(said)))) == [{"prompt_tokens": 3}]
