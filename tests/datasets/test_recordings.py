"""Recorded traffic as examples: every common form of a log, sessions that stay together, secrets that do not pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.cli import evaluate
from context_bench.config import RunOptions
from context_bench.datasets.example_check import ExampleCheck
from context_bench.datasets.files import FileDataset
from context_bench.datasets.open import open_datasets
from context_bench.datasets.recordings import find_recorded_api, is_recording, read_examples
from context_bench.errors import DataError
from context_bench.systems.prompts import build_messages
from context_bench.traffic.readers import Findings
from context_bench.wire.forms import FORMS

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
    return [example for _, example in read_examples([path], answers=answers)]


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
    assert example["meta"] == {"group": "log-1", "api": "openai", "model": "m", "recorded_reply": "The disk."}
    assert "answer" not in example
    assert "secret" not in json.dumps(example)


def test_recorded_replies_as_answers_when_that_is_asked_for(tmp_path: Path) -> None:
    other = {**REQUEST, "messages": [{"role": "user", "content": "Hm?"}]}
    (example, without) = traffic(tmp_path, {"request": REQUEST, "response": REPLY}, other, answers=True)
    assert example["answer"] == "The disk."
    assert "answer" not in without


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"input": "x", "model": "embedding", "encoding_format": "float"},
        {"messages": []},
        {"messages": "text"},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": "system", "content": "x"}]},
    ],
)
def test_other_requests_are_left_out(tmp_path: Path, record: Any) -> None:
    assert len(traffic(tmp_path, record, REQUEST)) == 1


def test_a_file_without_a_request(tmp_path: Path) -> None:
    for text in ("[1]", "{", "{}", ""):
        (tmp_path / "log.jsonl").write_text(text)
        with pytest.raises(DataError, match=r"log.jsonl: (no JSON|unknown format)"):
            list(read_examples([tmp_path / "log.jsonl"]))
    with pytest.raises(DataError, match="no such file"):
        list(read_examples([tmp_path / "none.jsonl"]))


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
    assert len(traffic(tmp_path, {"body": body, "reply": body}, REQUEST)) == 1


def test_a_stream_of_several_choices_is_read_by_its_first(tmp_path: Path) -> None:
    pieces = [(0, "The "), (1, "No "), (0, "disk."), (1, "idea.")]
    events = [{"choices": [{"index": index, "delta": {"content": text}}]} for index, text in pieces]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    (example,) = traffic(tmp_path, {"body": json.dumps(REQUEST), "reply": stream})
    assert example["meta"]["recorded_reply"] == "The disk."


KEY = "sk-ant-api03-abcdefghijklmnop1234"
BLOCKS = {
    "model": "claude-sonnet-4",
    "max_tokens": 9,
    "system": "Be brief.",
    "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": f"Use {KEY}, then mail ann@example.org"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": f"key: {KEY}"}]},
        {"role": "user", "content": "And?"},
    ],
}


def test_a_recording_of_one_api_can_be_sent_through_each(tmp_path: Path) -> None:
    (example,) = traffic(tmp_path, {"request": BLOCKS, "session_id": "s1"})
    assert example["turns"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Use [secret 1], then mail ann@example.org"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "key: [secret 1]"},
        {"role": "user", "content": "And?"},
    ]
    assert example["meta"]["group"] == "s1"
    assert find_recorded_api([tmp_path / "log.jsonl"]) == "anthropic"
    for asked in ({"proxy": ["http://localhost:1"]}, {"start": ["serve"]}, {"vendor": ["kompact"]}):
        options = RunOptions(dataset=[str(tmp_path / "log.jsonl")], silent=True, **asked)
        assert evaluate._find_recorded_api(options) == "anthropic", asked
    for form in FORMS:
        body = form.build_request("m", build_messages(example), tools=example["tools"], max_tokens=9)
        sent = json.dumps(body)
        assert ("tool_use_id" in sent) == (form.name == "anthropic")
        assert KEY not in sent


def test_what_a_chat_cannot_carry_is_left_out_with_its_reason(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}
    shown = {**BLOCKS, "messages": [{"role": "user", "content": [image, {"type": "text", "text": "What is it?"}]}]}
    (tmp_path / "log.jsonl").write_text(json.dumps(shown) + "\n" + json.dumps(BLOCKS) + "\n")
    findings = Findings()
    assert len(list(read_examples([tmp_path / "log.jsonl"], findings=findings))) == 1
    assert findings.files[0].skipped == {"it contains 'image', which chat completions cannot represent": 1}


def test_e_mail_addresses_are_masked_when_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(BLOCKS) + "\n")
    ((_, example),) = read_examples([tmp_path / "log.jsonl"], emails=True)
    assert example["turns"][1]["content"] == "Use [secret 1], then mail [email 1]"


def test_a_recording_is_a_dataset_as_it_is_and_examples_are_no_recording(tmp_path: Path) -> None:
    steps = [{**REQUEST, "messages": MESSAGES[:count]} for count in (2, 4, 5)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps({"request": each}) + "\n" for each in steps))
    (tmp_path / "mine.jsonl").write_text(json.dumps({"id": 1, "context": "x", **REQUEST}) + "\n")
    dataset = FileDataset(tmp_path / "log.jsonl")
    assert dataset.check() == 3
    assert {each["meta"]["group"] for each in dataset} == {"log-1"}
    folder = tmp_path / "sessions" / "deep"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        lines = [json.dumps({"request": {**BLOCKS, "metadata": {"n": name}}, "session_id": name}) + "\n"]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    datasets = open_datasets([str(folder)])
    assert [each["meta"]["group"] for each in datasets] == ["a", "b"]
    assert [Path(each).name for each in datasets.facts()["deep"]["files"]] == ["a.jsonl", "b.jsonl"]
    assert find_recorded_api([tmp_path / "sessions"]) == "anthropic"
    assert not is_recording(tmp_path / "mine.jsonl")
    assert [each["id"] for each in FileDataset(tmp_path / "mine.jsonl")] == [1]


def test_what_cannot_be_an_example_is_told(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    asked = [{"role": "user", "content": "Why?"}]
    seen = [{"role": "user", "content": [picture, {"type": "text", "text": "Why?"}]}]
    path = tmp_path / "log.jsonl"
    rows = [{"model": "claude", "max_tokens": 9, "system": "Be brief.", "messages": each} for each in (seen, asked)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(
        UserWarning, match=r"1 line left out \(it contains 'image', which chat completions cannot represent\)"
    ):
        assert FileDataset(path).check() == 1
    path.write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(DataError, match="no examples in this file: 1 line left out"):
        FileDataset(path).check()
