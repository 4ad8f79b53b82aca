from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from context_bench.tap.answering import Incoming, Outgoing, build_error, build_reply
from context_bench.utils.tokens import set_tokenizer
from context_bench.wire.anthropic_messages import ANTHROPIC_MESSAGES
from context_bench.wire.form import Answer, ToolCall
from context_bench.wire.openai_chat import OPENAI_CHAT
from context_bench.wire.prompts import read_document

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
CALLS = [ToolCall("call_a", "look_up", '{"city": "Malmö", "days": [1, 2]}'), ToolCall("call_b", "stop", "{}")]


def asked(path: str = CHAT, **fields: Any) -> Incoming:
    body = {"model": "m-1", "messages": [{"role": "user", "content": "Hello there"}], **fields}
    return Incoming("POST", path, "", {}, json.dumps(body).encode())


def plain(reply: Outgoing) -> Any:
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)


def blocks(reply: Outgoing) -> list[str]:
    """The events of a stream as their raw text."""

    async def read() -> bytes:
        assert not isinstance(reply.body, bytes)
        return b"".join([piece async for piece in reply.body])

    text = asyncio.run(read()).decode()
    assert text.endswith("\n\n")
    return text[:-2].split("\n\n")


def openai_events(reply: Outgoing) -> list[Any]:
    events = blocks(reply)
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    assert events.pop() == "data: [DONE]"
    return [json.loads(event[6:]) for event in events]


def anthropic_events(reply: Outgoing) -> list[Any]:
    documents = []
    for event in blocks(reply):
        name, data = event.split("\n")
        document = json.loads(data.removeprefix("data: "))
        assert name == f"event: {document['type']}"
        documents.append(document)
    return documents


def test_a_chat_completion_has_every_field_of_one() -> None:
    reply = build_reply(Answer("Good day", extra={"service_tier": "x"}), asked())
    document = plain(reply)
    assert reply.status == 200
    assert reply.headers["content-type"] == "application/json"
    assert document["object"] == "chat.completion"
    assert document["model"] == "m-1"
    assert document["service_tier"] == "x"
    assert document["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Good day"},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    # In cl100k_base both texts are two tokens.
    assert document["usage"] == {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4}


def test_a_message_has_every_field_of_one() -> None:
    document = plain(build_reply(Answer("Good day"), asked(MESSAGES)))
    assert document.pop("id").startswith("msg_")
    assert document == {
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": [{"type": "text", "text": "Good day"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 2, "output_tokens": 2},
    }


def test_tool_calls_in_both_forms() -> None:
    openai = plain(build_reply(Answer(tool_calls=CALLS), asked()))["choices"][0]
    assert openai["finish_reason"] == "tool_calls"
    assert openai["message"]["content"] is None
    assert openai["message"]["tool_calls"][0] == {
        "id": "call_a",
        "type": "function",
        "function": {"name": "look_up", "arguments": '{"city": "Malmö", "days": [1, 2]}'},
    }
    anthropic = plain(build_reply(Answer("See:", tool_calls=CALLS), asked(MESSAGES)))
    assert anthropic["stop_reason"] == "tool_use"
    assert anthropic["content"] == [
        {"type": "text", "text": "See:"},
        {"type": "tool_use", "id": "call_a", "name": "look_up", "input": {"city": "Malmö", "days": [1, 2]}},
        {"type": "tool_use", "id": "call_b", "name": "stop", "input": {}},
    ]


def test_a_streamed_chat_completion_says_the_same_in_pieces() -> None:
    text = "naïve 漢字 👍🏽 " * 20
    events = openai_events(build_reply(Answer(text, tool_calls=CALLS), asked(stream=True)))
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content") or "" for delta in deltas) == text
    pieces = [call for delta in deltas for call in delta.get("tool_calls", ())]
    first = [piece for piece in pieces if piece["index"] == 0]
    assert (first[0]["id"], first[0]["function"]["name"]) == ("call_a", "look_up")
    assert len(first) > 3  # split, so that a reader has to join them
    assert "".join(piece["function"]["arguments"] for piece in first) == CALLS[0].arguments
    assert [event["choices"][0]["finish_reason"] for event in events if event["choices"][0]["finish_reason"]] == [
        "tool_calls"
    ]
    assert all(event["object"] == "chat.completion.chunk" for event in events)
    assert len({event["id"] for event in events}) == 1
    assert not any("usage" in event for event in events)


def test_usage_ends_a_stream_only_when_it_is_asked_for() -> None:
    request = asked(stream=True, stream_options={"include_usage": True})
    events = openai_events(build_reply(Answer("ok", usage=(7, 3)), request))
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    assert all(event["usage"] is None for event in events[:-1])


def test_a_streamed_message_says_the_same_in_pieces() -> None:
    reply = build_reply(Answer("Good day", tool_calls=CALLS[:1], usage=(7, 3)), asked(MESSAGES, stream=True))
    events = anthropic_events(reply)
    assert [event["type"] for event in events if "delta" not in event["type"]] == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_stop",
        "content_block_start",
        "content_block_stop",
        "message_stop",
    ]
    assert events[0]["message"]["content"] == []
    assert events[0]["message"]["usage"] == {"input_tokens": 7, "output_tokens": 1}
    starts = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert starts == [
        {"type": "text", "text": ""},
        {"type": "tool_use", "id": "call_a", "name": "look_up", "input": {}},
    ]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Good day"
    assert "".join(delta.get("partial_json", "") for delta in deltas) == CALLS[0].arguments
    ending = next(event for event in events if event["type"] == "message_delta")
    assert ending["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert ending["usage"] == {"output_tokens": 3}


def test_chunks_are_cut_as_asked() -> None:
    events = openai_events(build_reply(Answer("a-b-c", chunks=["a-", "", "b-c"]), asked(stream=True)))
    texts = [event["choices"][0]["delta"].get("content") for event in events]
    assert texts == ["", "a-", "", "b-c", None]


def test_several_choices_in_both_ways() -> None:
    answer = Answer("heads", choices=["tails"])
    document = plain(build_reply(answer, asked(n=2)))
    assert [(each["index"], each["message"]["content"]) for each in document["choices"]] == [(0, "heads"), (1, "tails")]
    texts = ["", ""]
    for event in openai_events(build_reply(answer, asked(n=2, stream=True))):
        choice = event["choices"][0]
        texts[choice["index"]] += choice["delta"].get("content") or ""
    assert texts == ["heads", "tails"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (401, "authentication_error"), (429, "rate_limit_error"), (503, "api_error")],
)
def test_errors_have_the_form_of_their_api(status: int, kind: str) -> None:
    openai = build_error(status, "no", OPENAI_CHAT, {"retry-after": "3"})
    assert (openai.status, openai.headers["retry-after"]) == (status, "3")
    assert plain(openai)["error"] == {"message": "no", "type": kind, "param": None, "code": None}
    assert plain(build_error(status, "no", ANTHROPIC_MESSAGES)) == {
        "type": "error",
        "error": {"type": kind, "message": "no"},
    }


def test_an_error_is_no_stream_even_where_one_was_asked_for() -> None:
    reply = build_reply(Answer("slow down", status=429), asked(stream=True))
    assert plain(reply)["error"]["message"] == "slow down"


def test_half_a_surrogate_pair_is_kept() -> None:
    assert read_document(b'{"messages": ["\\ud83d"]}') == {"messages": ["\ud83d"]}
    assert plain(build_reply(Answer("half \ud83d"), asked()))["choices"][0]["message"]["content"] == "half \ud83d"
    events = openai_events(build_reply(Answer("half \ud83d"), asked(stream=True)))
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in events) == "half \ud83d"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"null", pytest.param(b'{"a":' * 200_000, id="deep")])
def test_a_body_that_is_no_object_reads_as_an_empty_one(body: bytes) -> None:
    assert read_document(body) == {}


def test_the_same_request_gets_the_same_bytes() -> None:
    assert build_reply(Answer("x"), asked()).body == build_reply(Answer("x"), asked()).body
    assert plain(build_reply(Answer("x"), asked()))["id"] != plain(build_reply(Answer("x"), asked(seed=1)))["id"]


def test_a_request_is_parsed_and_counted_once_however_many_ask() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    set_tokenizer(count)
    try:
        counted.clear()
        request = asked()
        reply = plain(build_reply(Answer("Good day"), request))
        assert reply["usage"]["prompt_tokens"] == request.count_tokens() == request.count_tokens()
        assert request.document() is request.document()
        assert len(counted) == len(set(counted))  # each text once
    finally:
        set_tokenizer(None)
    assert request.count_tokens() != 0  # another tokenizer counts anew
