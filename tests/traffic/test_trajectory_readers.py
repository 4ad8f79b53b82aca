"""Readers of other programs' recordings, on records made from their documentation."""

from __future__ import annotations

import base64
import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import zstandard

from context_bench.traffic.readers import Findings, Reader, Source, read_threads
from context_bench.traffic.sessions import Thread, Usage
from made_recordings import (
    ASKED,
    CALL,
    CALLED,
    CONVERSATION,
    LITELLM_REPLY,
    LITELLM_USAGE,
    MADE,
    NEW_ATTRIBUTES,
    OLD_ATTRIBUTES,
    PAYLOAD,
    RESULT,
    ROLLOUT,
    SAID,
    SPEND_LOG,
    entry,
    export,
    make_sample,
    write_lines,
)


def read(path: Path) -> tuple[list[Thread], Findings]:
    findings = Findings()
    return list(read_threads([path], findings)), findings


# --- Codex


def test_codex_requests_end_at_each_count_of_tokens(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(zstandard.compress(write_lines(*ROLLOUT).encode()))
    ((thread,), _) = read(path)
    first, second, third = thread.requests
    assert (thread.session, first.api, first.model, first.system) == (
        "thread-1",
        "responses",
        "gpt-5.3-codex",
        "Be brief.",
    )
    assert [each.get("type") for each in first.messages] == ["message"]
    assert [each.get("type") for each in second.messages] == [
        *("message", "reasoning", "function_call", "function_call_output"),
    ]
    assert [each.usage for each in thread.requests] == [
        *(Usage(1000, 0, 0, 0, 50), Usage(176, 1024, 0, 0, 9), Usage(172, 128, 0, 0, 5)),
    ]
    assert third.messages[0] == {"role": "user", "content": "A summary"}
    assert third.length == 2
    assert first.reply is not None
    assert [each["type"] for each in first.reply["output"]] == ["reasoning", "function_call"]
    assert (first.started, first.settings) == (1767323045.0, {"reasoning": {"effort": "high"}})


def test_a_codex_subagent_belongs_to_the_session_of_its_parent(tmp_path: Path) -> None:
    meta = {"type": "session_meta", "payload": {"id": "child", "parent_thread_id": "thread-1"}}
    (tmp_path / "r.jsonl").write_text(write_lines(meta, *ROLLOUT[1:]))
    ((thread,), _) = read(tmp_path / "r.jsonl")
    assert (thread.session, thread.agent) == ("thread-1", "child")
    assert "system: not stored" in thread.reconstructed


# --- LiteLLM


def test_litellm_in_its_three_layouts(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text(
        write_lines(SPEND_LOG, PAYLOAD, {"kwargs": {"standard_logging_object": {**PAYLOAD, "trace_id": "t2"}}})
    )
    threads, _ = read(log)
    assert [each.session for each in threads] == ["s1", "t1", "t2"]
    for thread in threads:
        (request,) = thread.requests
        assert (request.messages, request.model, len(request.tools)) == (ASKED, "gpt-4o", 1)
        assert (request.usage, request.started) == (Usage(36, 64, 0, 0, 5), 1767323045.5)
    assert threads[1].requests[0].settings == {"temperature": 0}


def test_litellm_rows_that_hold_no_request_say_why(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    empty = {**SPEND_LOG, "messages": {}, "response": {}, "proxy_server_request": {}}
    others = [
        {**SPEND_LOG, "cache_hit": "True"},
        {**SPEND_LOG, "status": "failure"},
        {**PAYLOAD, "call_type": "aembedding"},
    ]
    log.write_text(write_lines(SPEND_LOG, empty, *others))
    _, findings = read(log)
    assert findings.files[0].skipped == {
        "its prompt was not stored (general_settings.store_prompts_in_spend_logs)": 1,
        "answered from LiteLLM's own cache": 1,
        "failed request (status failure)": 1,
        "no request to a model": 1,
    }


# --- OpenTelemetry


def test_spans_in_the_attributes_of_today_and_of_old(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text(write_lines(export(NEW_ATTRIBUTES), export(OLD_ATTRIBUTES)))
    (new, old), findings = read(path)
    assert (new.session, old.session) == ("conv-1", "trace-1")
    assert new.requests[0].messages == CONVERSATION
    assert new.requests[0].usage == Usage(26, 64, 10, 0, 5)
    assert new.requests[0].started == 1767323045.5
    assert new.requests[0].reply == {"choices": [{"index": 0, "message": SAID, "finish_reason": None}]}
    assert old.requests[0].messages == ASKED
    assert old.requests[0].usage == Usage(20, None, 0, 0, 5)
    assert findings.files[0].skipped == {"a span without a model call": 2}


def test_a_span_with_events_and_one_without_content(tmp_path: Path) -> None:
    events = [
        {"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
        {"name": "gen_ai.user.message", "attributes": {"content": "Why?"}},
        {"name": "gen_ai.choice", "attributes": {"message": json.dumps({"content": "So."})}},
    ]
    plain = {"name": "chat", "context": {"trace_id": "t1"}, "start_time": "2026-01-02T03:04:05.5Z"}
    told = {"gen_ai.request.model": "gpt-4o"}
    path = tmp_path / "console.json"
    path.write_text(
        json.dumps([{**plain, "attributes": told, "events": events}, {**plain, "attributes": told}], indent=4)
    )
    ((thread,), findings) = read(path)
    assert thread.requests[0].messages == ASKED
    assert findings.files[0].skipped == {"a span without its messages (their capture is opt-in)": 1}


# --- HAR


def test_the_requests_to_a_model_are_found_in_an_archive(tmp_path: Path) -> None:
    events = [
        {"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 7, "cache_read_input_tokens": 50}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "So."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}},
    ]
    stream = "".join(f"data: {json.dumps(each)}\n\n" for each in events)
    body = {"model": "claude", "max_tokens": 9, "messages": ASKED[1:]}
    packed = base64.b64encode(stream.encode()).decode()
    entries = [
        entry("https://a.example/v1/messages?beta=true", body, packed, encoding="base64"),
        entry("https://a.example/telemetry", {"events": []}, "{}"),
        entry("https://b.example/v1/chat/completions", {"model": "m", "messages": ASKED}, json.dumps(LITELLM_REPLY)),
    ]
    path = tmp_path / "session.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}, indent=1))
    threads, findings = read(path)
    assert [each.requests[0].api for each in threads] == ["anthropic", "openai"]
    assert (threads[0].session, threads[0].requests[0].usage) == ("s1", Usage(7, 50, 0, 0, 4))
    assert findings.files[0].skipped == {"no request to a model": 1}
    whole = json.dumps({"log": {"entries": entries}})  # in one line
    path.write_text(whole[: whole.rindex("messages")])
    assert [len(each.requests) for each in read(path)[0]] == [1]
    path.write_text(whole.replace('"startedDateTime"', "\0", 1))
    assert [each.requests[0].api for each in read(path)[0]] == ["openai"]


# --- agents


def test_swe_agent_by_its_queries_else_by_its_messages_else_by_its_history(tmp_path: Path) -> None:
    last = {"role": "assistant", "content": "Done."}
    history = [{**ASKED[0], "agent": "main"}, {"role": "assistant", "content": "A demo", "is_demo": True}, ASKED[1]]
    history += [CALLED, {**RESULT, "tool_call_ids": ["c1"]}, last]
    written = {
        "query": [{"query": ASKED, "response": "x"}, {"query": CONVERSATION, "response": "Done."}],
        "messages": [{"messages": CONVERSATION}, {"messages": [*CONVERSATION, last]}],
        "history": [{"action": "ls"}, {"action": "submit"}],
    }
    for kind, steps in written.items():
        path = tmp_path / f"{kind}.traj"
        path.write_text(json.dumps({"trajectory": steps, "history": history, "info": {}}, indent=2))
        ((thread,), _) = read(path)
        lengths = [3, 5] if kind == "history" else [2, 4]
        assert [each.length for each in thread.requests] == lengths, kind
        assert thread.requests[1].messages[-1]["tool_call_id"] == "c1", kind
        assert len({id(each.history) for each in thread.requests}) == 1, kind


def test_mini_swe_agent_has_the_replies_of_the_api(tmp_path: Path) -> None:
    reply = {**SAID, "extra": {"response": {**LITELLM_REPLY, "model": "gpt-4o"}, "timestamp": 1767323045.5}}
    info = {"config": {"model": {"model_name": "other"}}}
    document = {"info": info, "messages": [*ASKED, reply], "trajectory_format": "mini-swe-agent-1.1"}
    (tmp_path / "a.traj.json").write_text(json.dumps(document))
    (tmp_path / "b.traj.json").write_text(json.dumps([*ASKED, SAID], indent=1))
    (new,), _ = read(tmp_path / "a.traj.json")
    (old,), _ = read(tmp_path / "b.traj.json")
    assert (new.requests[0].model, new.requests[0].usage) == ("gpt-4o", Usage(36, 64, 0, 0, 5))
    assert [each.messages for each in (*new.requests, *old.requests)] == [ASKED, ASKED]


def test_openhands_rebuilds_the_conversation_from_its_events(tmp_path: Path) -> None:
    response = {"id": "r1", "model": "claude", "choices": [{"message": CALLED}], "usage": LITELLM_USAGE}
    told = {"function_name": "bash", "tool_call_id": "c1", "model_response": response}
    events = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "Why?"}},
        {"id": 1, "source": "environment", "action": "change_agent_state", "args": {}},
        {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls"}, "tool_call_metadata": told},
        {"id": 3, "source": "agent", "observation": "run", "content": "a.py", "cause": 2, "tool_call_metadata": told},
        {"id": 4, "source": "agent", "action": "finish", "args": {"thought": "So."}},
    ]
    (tmp_path / "events.json").write_text(json.dumps(events))
    ((thread,), _) = read(tmp_path / "events.json")
    first, second = thread.requests
    assert (first.usage, first.model, first.messages) == (Usage(36, 64, 0, 0, 5), "claude", ASKED[1:])
    assert second.messages == [ASKED[1], {"role": "assistant", "tool_calls": [CALL]}, RESULT]
    usages = [{"prompt_tokens": 50, "completion_tokens": 3, "cache_read_tokens": 20, "cache_write_tokens": 10}] * 2
    plain = [{key: value for key, value in each.items() if key != "tool_call_metadata"} for each in events]
    record = {"instance_id": "task-1", "history": plain, "metrics": {"token_usages": usages}}
    (tmp_path / "output.jsonl").write_text(write_lines(record))
    ((thread,), _) = read(tmp_path / "output.jsonl")
    assert (thread.session, [each.usage for each in thread.requests]) == ("task-1", [Usage(20, 20, 10, 0, 3)] * 2)


# --- Inspect


def test_inspect_in_both_layouts(tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps({"eval": {"run_id": "r"}, "samples": [make_sample()]}))
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1_epoch_1.json", json.dumps(make_sample()))
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as archive:
        archive.write(tmp_path / "log.json", "logs/log.json")
    for name in ("log.json", "log.eval", "logs.zip"):
        ((thread,), findings) = read(tmp_path / name)
        first, second = thread.requests
        assert (first.messages, second.messages) == (ASKED, CONVERSATION), name
        assert (first.usage, first.model, first.started) == (Usage(7, 50, 40, 0, 2), "claude", 1767323045.5), name
        assert findings.files[0].skipped == {"answered from Inspect's own cache": 1}, name


# --- damage, and readers of others


def count_requests(path: Path) -> tuple[str, int, int]:
    findings = Findings()
    found = sum(len(thread.requests) for thread in read_threads([path.parent], findings))
    (report,) = findings.files
    return report.format, found, sum(report.skipped.values())


def test_each_format_cut_in_the_middle_with_crlf_and_with_lines_of_unknown_types(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    for name, make in MADE.items():
        whole = make(20)
        path.write_bytes(whole)
        assert count_requests(path)[:2] == (name, 20), name
        path.write_bytes(whole[: len(whole) // 2 + 7])
        format, found, skipped = count_requests(path)
        assert format == name
        assert 5 <= found <= 15, (name, found)
        if name == "inspect":
            continue
        assert skipped >= 1, name
        path.write_bytes(whole.replace(b"\n", b"\r\n"))
        assert count_requests(path)[:2] == (name, 20), name
        if name in ("codex", "litellm", "otel"):
            path.write_bytes(whole + b'{"type": "from the future", "payload": {}}\n')
            assert count_requests(path) == (name, 20, count_requests_skipped(name)), name
        else:
            middle = len(whole) // 2
            path.write_bytes(whole[:middle] + b"\x00{#" + whole[middle + 3 :])
            format, found, skipped = count_requests(path)
            assert (format, skipped >= 1) == (name, True)
            assert 15 <= found <= 20, (name, found)


def test_each_format_however_it_is_packed_or_spaced(tmp_path: Path) -> None:
    def pack_zip(data: bytes) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner/recording", data)
        return packed.getvalue()

    def space(data: bytes) -> bytes:
        lines = data.splitlines() if data.count(b"}\n{") else [data]
        return b"\r\n".join(json.dumps(json.loads(each), indent=3).encode() for each in lines)

    path = tmp_path / "recording"
    for name, make in MADE.items():
        for pack in (gzip.compress, zstandard.compress, pack_zip, space):
            if name != "inspect":  # an archive itself
                path.write_bytes(pack(make(20)))
                assert count_requests(path)[:2] == (name, 20), (name, pack)


def count_requests_skipped(name: str) -> int:
    """Each export of spans has one of another kind."""
    return 21 if name == "otel" else 1


def test_readers_of_other_packages_are_asked_first(tmp_path: Path) -> None:
    from context_bench.registry import registry

    class Mine:
        name = "mine"
        title = "My log"

        def sniff(self, head: Any) -> bool:
            return head.any(lambda record: "my_request" in record)

        def read(self, source: Source) -> Any:
            from context_bench.traffic.readers.api_logs import parse_record
            from context_bench.traffic.readers.grouping import group_requests

            return group_requests(source, self.name, lambda record: parse_record(record["my_request"]))

    reader: Reader = Mine()
    registry.register("traffic_reader", "mine", reader)
    try:
        (tmp_path / "log.jsonl").write_text(write_lines({"my_request": {"model": "m", "messages": ASKED}}))
        ((thread,), _) = read(tmp_path / "log.jsonl")
    finally:
        del registry._registered["traffic_reader"]["mine"]
    assert (thread.format, thread.requests[0].messages) == ("mine", ASKED)
