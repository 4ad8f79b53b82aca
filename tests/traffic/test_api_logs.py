"""Logs of API requests: wrappings, streams, sessions that were recorded or are found, packings and damage."""

from __future__ import annotations

import gzip
import json
import os
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from context_bench.errors import DataError
from context_bench.traffic.parts import convert_to_chat, list_parts
from context_bench.traffic.readers import Findings, read_sessions, read_threads
from context_bench.traffic.sessions import Session, Usage
from made_recordings import CHAT, CHAT_REPLY, MESSAGES, MESSAGES_REPLY, RESPONSES, RESPONSES_REPLY


def read(folder: Path, *records: Any, name: str = "log.jsonl") -> tuple[list[Session], Findings]:
    path = folder / name
    path.write_text("".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in records))
    findings = Findings()
    return list(read_sessions([path], findings)), findings


def test_each_api_is_told_by_its_request_and_reply(tmp_path: Path) -> None:
    records = [
        {"request": CHAT, "response": CHAT_REPLY, "timestamp": 1767323045.5},
        {"body": json.dumps(MESSAGES), "reply": json.dumps(MESSAGES_REPLY), "path": "/v1/messages?beta=true"},
        {"request": RESPONSES, "response": RESPONSES_REPLY},
    ]
    chat, messages, responses = (each.requests[0] for each in read(tmp_path, *records)[0])
    assert (chat.api, chat.model, chat.usage) == ("openai", "gpt-4o", Usage(92, 1408, 500, 0, 30))
    assert (chat.body(), chat.started) == (CHAT, 1767323045.5)
    assert (messages.api, messages.usage, messages.id) == ("anthropic", Usage(7, 50, 40, 0, 2), "msg_1")
    assert messages.body() == MESSAGES
    assert responses.api == "responses"
    assert responses.body() == {**RESPONSES, "input": [{"role": "user", "content": "Why?"}]}


def test_streams_are_joined(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_2", "model": "claude-x", "usage": {"input_tokens": 7}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "So."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]
    stream = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events)
    ((session,), _) = read(tmp_path, {"request": MESSAGES, "response": stream})
    (request,) = session.requests
    assert request.reply is not None
    assert (request.reply["content"], request.id) == ([{"type": "text", "text": "So."}], "msg_2")
    assert request.usage == Usage(7, 0, 0, 0, 4)


def grow(*contents: str, **more: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {
        "model": "m",
        "messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(contents)],
        **more,
    }


def test_sessions_are_those_recorded_else_what_continues_what(tmp_path: Path) -> None:
    interleaved = [grow("a"), grow("b"), grow("a", "1", "c"), grow("b", "2", "d"), grow("a", "1", "c", "3", "e")]
    sessions, _ = read(tmp_path, *interleaved)
    assert [[request.length for request in each.requests] for each in sessions] == [[1, 3, 5], [1, 3]]
    (thread,) = sessions[0].threads
    assert thread.reconstructed == ("threads: derived from which request continues which",)
    assert len({id(request.history) for request in thread.requests}) == 1
    recorded = [{"request": grow(each), "session_id": f"s{number % 2}"} for number, each in enumerate("abcd")]
    recorded.append({"request": grow("z", metadata={"user_id": "user_1_account__session_" + "1" * 36})})
    sessions, _ = read(tmp_path, *recorded)
    by_name = {each.id: each for each in sessions}
    assert {name: len(each.requests) for name, each in by_name.items()} == {"s0": 2, "s1": 2, "1" * 36: 1}
    assert by_name["s0"].threads[0].reconstructed == ()


def test_a_chain_of_responses_is_resolved(tmp_path: Path) -> None:
    second = {"model": "gpt-5", "previous_response_id": "resp_1", "input": [{"role": "user", "content": "And?"}]}
    lost = {"model": "gpt-5", "previous_response_id": "resp_0", "input": "Hm?"}
    ((session, *_), findings) = read(
        tmp_path,
        {"request": RESPONSES, "response": RESPONSES_REPLY},
        {"request": second, "response": {**RESPONSES_REPLY, "id": "resp_2"}},
        {"request": lost, "response": {**RESPONSES_REPLY, "id": "resp_3"}},
    )
    assert session.requests[1].messages == [
        {"role": "user", "content": "Why?"},
        *RESPONSES_REPLY["output"],
        {"role": "user", "content": "And?"},
    ]
    assert findings.files[0].skipped == {"continues a reply that is not in this file": 1}


def test_lines_that_cannot_be_used_are_counted_with_reason_and_number(tmp_path: Path) -> None:
    _, findings = read(
        tmp_path,
        {"request": CHAT},
        {"input": "x", "model": "embedding"},
        "[1]\n",
        "{\n",
        {"request": CHAT, "response": {"error": {}}, "status": 429},
        {"request": CHAT},
    )
    (report,) = findings.files
    assert report.lines == {
        "no request to a model": [2],
        "no JSON object": [3],
        "broken JSON": [4],
        "failed request (status 429)": [5],
    }
    assert report.requests == 2


def pack_zip(path: Path, data: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/log.jsonl", data)
        archive.writestr("inner/readme.txt", "Hello")


PACKINGS: dict[str, Callable[[Path, bytes], Any]] = {
    "plain": lambda path, data: path.write_bytes(data),
    "gzip": lambda path, data: path.write_bytes(gzip.compress(data)),
    "zstd": lambda path, data: path.write_bytes(zstandard.compress(data)),
    "zip": pack_zip,
    "crlf": lambda path, data: path.write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")),
    "list": lambda path, data: path.write_text(json.dumps([json.loads(line) for line in data.splitlines()])),
    "pretty list": lambda path, data: path.write_text(
        json.dumps([json.loads(line) for line in data.splitlines()], indent=2)
    ),
    "pretty": lambda path, data: path.write_text(
        "\n".join(json.dumps(json.loads(line), indent=2) for line in data.splitlines())
    ),
}


def test_a_log_is_recognised_by_its_content_however_it_is_packed(tmp_path: Path) -> None:
    data = "".join(json.dumps(grow(*"abcdefg"[:length])) + "\n" for length in (1, 3, 5, 7)).encode()
    for name, pack in PACKINGS.items():
        path = tmp_path / "recording"  # no suffix tells
        pack(path, data)
        (thread,) = read_threads([path])
        assert [each.length for each in thread.requests] == [1, 3, 5, 7], name


def test_a_cut_file_gives_what_is_before_the_cut_and_a_damaged_one_what_is_after_too(tmp_path: Path) -> None:
    words = [os.urandom(30).hex() for _ in range(40)]
    data = "".join(json.dumps({**grow(each), "session_id": each}) + "\n" for each in words).encode()
    for name, pack in PACKINGS.items():
        path = tmp_path / "recording"
        pack(path, data)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2 + 5])
        findings = Findings()
        found = list(read_threads([tmp_path], findings))
        if name in ("zip", "zstd"):  # its only member, or its only block, is cut
            assert not found
            continue
        assert 10 < len(found) <= 20, name
        assert [each.session for each in found] == words[: len(found)], name
        assert sum(findings.files[0].skipped.values()) >= 1, name
        if name == "gzip":
            continue
        path.write_bytes(whole[: len(whole) // 2] + b"#\x00#" + whole[len(whole) // 2 + 3 :])
        found = list(read_threads([tmp_path]))
        assert 38 <= len(found) < 40, name
        assert found[-1].session == words[-1], name


def test_a_file_that_is_no_recording_is_refused_when_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Hello")
    (tmp_path / "out.tail.jsonl").write_text('{"line": "x"}\n')
    with pytest.raises(DataError, match="no JSON"):
        list(read_threads([tmp_path / "notes.txt"]))
    with pytest.raises(DataError, match="terminal output of a run"):
        list(read_threads([tmp_path / "out.tail.jsonl"]))
    with pytest.raises(DataError, match="no such file"):
        list(read_threads([tmp_path / "none"]))
    findings = Findings()
    assert list(read_threads([tmp_path], findings)) == []
    assert [each.reason for each in findings.files] == ["no JSON", "terminal output of a run"]


def test_raw_bodies_are_paired_by_what_later_requests_hold(tmp_path: Path) -> None:
    def write(name: str, document: Any, at: float) -> None:
        (tmp_path / name).write_text(json.dumps(document))
        os.utime(tmp_path / name, (at, at))

    def answer(number: int) -> dict[str, Any]:
        thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
        usage = {"input_tokens": number, "output_tokens": 1}
        return {"id": f"m{number}", "content": [thought, {"type": "text", "text": f"R{number}"}], "usage": usage}

    def ask(*said: str) -> dict[str, Any]:
        return {**MESSAGES, "messages": grow(*said)["messages"]}

    # two threads at once; the names tell nothing, and the first reply of b came before that of a
    write("9.request.json", ask("a"), 1000.0)
    write("8.request.json", ask("b"), 1001.0)
    write("req_2.response.json", answer(2), 1002.0)
    write("req_1.response.json", answer(1), 1003.0)
    write("7.request.json", ask("a", "R1", "c"), 1004.0)
    write("6.request.json", ask("b", "R2", "d"), 1005.0)
    write("req_4.response.json", answer(4), 1006.0)
    (a, b) = read_threads([tmp_path])
    assert [each.id for each in a.requests] == ["m1", ""]
    assert [each.id for each in b.requests] == ["m2", "m4"]
    assert (a.format, a.requests[0].usage) == ("raw-bodies", Usage(1, 0, 0, 0, 1))
    assert "replies: matched to requests by later requests, else by time" in a.reconstructed


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_parts_are_alike_in_every_api() -> None:
    said, out = ({"type": "text", "text": text} for text in ("Hm.", "out"))
    forms: dict[str, list[Any]] = {
        "openai": [
            {"role": "assistant", "content": "Hm.", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "out"},
        ],
        "anthropic": [
            {"role": "assistant", "content": [said, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [out]}]},
        ],
        "responses": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "out"},
        ],
    }  # fmt: skip
    wanted = [("assistant", "Hm.", "", ""), ("call", "{}", "f", "c"), ("result", "out", "f", "c")]
    for messages in forms.values():
        tools: dict[str, str] = {}
        parts = [part for message in messages for part in list_parts(message, tools)]
        assert [(part.kind, part.text, part.tool, part.id) for part in parts] == wanted
        assert convert_to_chat(messages, "Be brief.") == [
            {"role": "system", "content": "Be brief."},
            {
                "role": "assistant",
                "content": "Hm.",
                "tool_calls": [CALL],
            },
            {"role": "tool", "tool_call_id": "c", "content": "out"},
        ]


def test_hostile_json_is_refused_at_once(tmp_path: Path) -> None:
    inner = json.dumps(json.dumps({"a": "b" * 10}) * 3000)
    for text in (
        "[" * 200_000,
        '{"a":' * 200_000,
        '[{"messages": "' + inner[:-9],
        '{"x": "' + inner[1:-9],
        "\\" * 10_000,
    ):
        (tmp_path / "log").write_text(text)
        started = time.process_time()
        findings = Findings()
        assert list(read_threads([tmp_path], findings)) == []
        assert findings.files[0].reason
        assert time.process_time() - started < 5
