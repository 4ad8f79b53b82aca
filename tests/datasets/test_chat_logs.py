"""Recorded chat traffic: every common form of a log, and nothing that does not belong into a dataset."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.datasets.chat_logs import read_traffic
from context_bench.datasets.example_check import ExampleCheck
from context_bench.errors import DataError
from context_bench.systems.prompts import build_messages

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Read the log."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "A long log."},
    {"role": "user", "content": [{"type": "text", "text": "What "}, {"type": "text", "text": "failed?"}]},
]
REQUEST = {"model": "m", "messages": MESSAGES, "tools": [{"type": "function", "function": {"name": "f"}}]}
REPLY = {"choices": [{"message": {"role": "assistant", "content": "The disk."}}]}
STREAM = (
    'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\ndata: {"choices":[{"delta":{"content":"The "}}]}\n\n'
    'data: {"choices":[{"delta":{"content":"disk."}}]}\n\ndata: {"choices":[]}\n\ndata: [DONE]\n\n'
)


def traffic(folder: Path, *records: Any, answers: bool = False) -> list[Any]:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return list(read_traffic(path, answers))


@pytest.mark.parametrize(
    "record",
    [
        {**REQUEST, "response": REPLY},
        {"request": REQUEST, "response": REPLY, "headers": {"Authorization": "Bearer sk-secret"}},
        {
            "custom_id": "x",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": REQUEST,
            "response": {"body": REPLY},
        },
        {"request": {"headers": {"Authorization": "Bearer sk-secret"}, "body": REQUEST}, "response": REPLY},
        {"path": "/v1/chat/completions", "body": json.dumps(REQUEST), "reply": json.dumps(REPLY), "status": 200},
        {"body": json.dumps(REQUEST), "reply": STREAM},
    ],
    ids=["plain", "wrapped", "batch", "with headers", "of a tap", "streamed"],
)
def test_a_request_in_any_wrapping(tmp_path: Path, record: Any) -> None:
    (example,) = traffic(tmp_path, record)
    ExampleCheck()(example, "x")
    assert build_messages(example) == MESSAGES
    assert example["context"] == "Be brief.\n\nRead the log.\n\nA long log."
    assert example["question"] == "What failed?"
    assert example["tools"] == REQUEST["tools"]
    assert example["meta"] == {"model": "m", "recorded_reply": "The disk."}
    assert "answer" not in example
    assert "secret" not in json.dumps(example)


def test_recorded_replies_as_answers_when_that_is_asked_for(tmp_path: Path) -> None:
    (example, without) = traffic(tmp_path, {"request": REQUEST, "response": REPLY}, REQUEST, answers=True)
    assert example["answer"] == "The disk."
    assert "answer" not in without


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"input": "x", "model": "embedding"},
        {"messages": []},
        {"messages": "text"},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": "system", "content": "x"}]},
    ],
)
def test_other_requests_are_left_out(tmp_path: Path, record: Any) -> None:
    assert traffic(tmp_path, record, REQUEST)[0] is None


def test_a_broken_log(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: a request must be a JSON object \(got list\)"):
        traffic(tmp_path, [1])
    (tmp_path / "log.jsonl").write_text("{")
    with pytest.raises(DataError, match="line 1: broken JSON"):
        list(read_traffic(tmp_path / "log.jsonl"))
    with pytest.raises(DataError, match="no such file"):
        list(read_traffic(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    "reply",
    [
        {"type": "message", "content": [{"type": "text", "text": "The disk."}]},
        "event: content_block_delta\n"
        'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"The disk."}}\n\n'
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n',
    ],
)
def test_a_request_in_anthropics_form_keeps_its_system_text(tmp_path: Path, reply: Any) -> None:
    body = {"model": "m", "system": [{"type": "text", "text": "Be brief."}], "messages": MESSAGES[1:2]}
    reply = reply if isinstance(reply, str) else json.dumps(reply)
    (example,) = traffic(tmp_path, {"body": json.dumps(body), "reply": reply}, answers=True)
    assert build_messages(example) == MESSAGES[:2]
    assert (example["context"], example["question"], example["answer"]) == ("Be brief.", "Read the log.", "The disk.")


@pytest.mark.parametrize("body", ["no JSON", "[1]", "{", "", "[" * 100_000])
def test_a_body_that_is_no_request_is_left_out(tmp_path: Path, body: str) -> None:
    assert traffic(tmp_path, {"body": body, "reply": body}, REQUEST)[0] is None


def test_a_stream_of_several_choices_is_read_by_its_first(tmp_path: Path) -> None:
    pieces = [(0, "The "), (1, "No "), (0, "disk."), (1, "idea.")]
    events = [{"choices": [{"index": index, "delta": {"content": text}}]} for index, text in pieces]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    (example,) = traffic(tmp_path, {"body": json.dumps(REQUEST), "reply": stream})
    assert example["meta"]["recorded_reply"] == "The disk."
