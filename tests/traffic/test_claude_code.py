"""Claude Code's session files: replies of several rows, sidechains, compaction, rewinds and damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from context_bench.traffic.readers import Findings, read_sessions
from context_bench.traffic.sessions import Thread, Usage
from made_recordings import ROWS, SESSION, call, reply, result, row, text


def read(folder: Path, *rows: Any) -> tuple[list[Thread], Findings]:
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in rows))
    findings = Findings()
    return [thread for session in read_sessions([path], findings) for thread in session.threads], findings


def test_a_reply_of_several_rows_is_one_request_with_the_usage_of_its_last_row(tmp_path: Path) -> None:
    (main, side), _ = read(tmp_path, *ROWS)
    first, second = main.requests
    assert (main.session, main.agent, side.agent) == (SESSION, "", "s1")
    assert first.messages == [{"role": "user", "content": [text("Fix it")]}]
    assert first.usage == Usage(3, 0, 90, 10, 40)
    assert first.reply is not None
    assert first.reply["content"] == [text("Reading."), call("t1")]
    assert second.messages == [
        {"role": "user", "content": [text("Fix it")]},
        {"role": "assistant", "content": [text("Reading."), call("t1")]},
        {"role": "user", "content": result("t1", "old text")},
    ]
    assert (second.usage, second.model, second.line) == (Usage(5, 100, 10, 10, 7), "claude-sonnet-4-20250514", 7)
    assert second.started == 1767323045.678
    assert [each.messages for each in side.requests] == [[{"role": "user", "content": [text("Search")]}]]


def test_lines_that_reach_no_model_change_nothing(tmp_path: Path) -> None:
    synthetic = reply("x1", "a3", "msg_9", text("No response"), (0, 0, 0, 0))
    synthetic["message"]["model"] = "<synthetic>"
    failed = reply("x2", "a3", "msg_8", text("API Error"), (0, 0, 0, 0), isApiErrorMessage=True)
    shown = row("user", "x3", "a3", "for the eyes alone", isVisibleInTranscriptOnly=True)
    last = [row("user", "u9", "a3", "Go on"), reply("a9", "u9", "msg_10", text("Yes."), (1, 0, 120, 3))]
    (main, _), findings = read(tmp_path, *ROWS, synthetic, failed, shown, {"type": "new-kind"}, *last)
    assert [each.id for each in main.requests] == ["msg_1", "msg_2", "msg_10"]
    assert "for the eyes" not in json.dumps(main.requests[-1].messages)
    (report,) = findings.files
    assert report.skipped == {
        "a message by Claude Code itself, not by a model": 2,
        "unknown line type 'new-kind'": 1,
    }
    assert report.lines["unknown line type 'new-kind'"] == [13]


def test_compaction_starts_the_history_anew_and_clearing_keeps_the_pairs(tmp_path: Path) -> None:
    clear = row(
        "system", "m1", "a3", subtype="microcompact_boundary", microcompactMetadata={"compactedToolIds": ["t1"]}
    )
    compact = row("system", "c1", None, subtype="compact_boundary", logicalParentUuid="a4")
    (main, _), _ = read(
        tmp_path,
        *ROWS,
        clear,
        row("user", "u3", "m1", "More"),
        reply("a4", "u3", "msg_4", text("Hm."), (1, 0, 0, 1)),
        compact,
        row("user", "u4", "c1", "A summary", isCompactSummary=True),
        reply("a5", "u4", "msg_5", text("On."), (1, 0, 0, 1)),
    )
    cleared, compacted = main.requests[2:]
    assert cleared.messages[2]["content"] == result("t1", "[Old tool result content cleared]")
    assert main.requests[1].messages[2]["content"] == result("t1", "old text")
    assert compacted.messages == [{"role": "user", "content": [text("A summary")]}]


def test_a_prompt_that_was_taken_back_is_not_in_later_requests(tmp_path: Path) -> None:
    (main, _), _ = read(
        tmp_path,
        *ROWS,
        row("user", "u3", "a3", "Wrong way"),
        reply("a4", "u3", "msg_4", text("Hm."), (1, 0, 0, 1)),
        row("user", "u4", "a3", "Right way"),
        reply("a5", "u4", "msg_5", text("On."), (1, 0, 0, 1)),
    )
    assert [each["role"] for each in main.requests[3].messages] == ["user", "assistant", "user", "assistant", "user"]
    assert main.requests[3].messages[4]["content"] == [text("Right way")]
    assert main.requests[2].messages[4]["content"] == [text("Wrong way")]


def test_a_damaged_file_gives_what_is_before_and_after_the_damage(tmp_path: Path) -> None:
    lines = [json.dumps(each) + "\n" for each in ROWS]
    lines[4] = lines[4][:40] + "\x00\x00\n"
    (main,), findings = read(tmp_path, *lines[:-1], lines[-1][:-30])
    assert [each.id for each in main.requests] == ["msg_1", "msg_2"]
    assert "history: some lines are missing" in main.reconstructed
    (report,) = findings.files
    assert report.lines == {"broken JSON": [5], "the file ends in the middle of a line": [9]}


def test_a_session_that_was_resumed_is_not_counted_twice(tmp_path: Path) -> None:
    for name, rows in (("a.jsonl", ROWS), ("b.jsonl", [{**each, "sessionId": "other"} for each in ROWS])):
        (tmp_path / name).write_text("".join(json.dumps(each) + "\n" for each in rows))
    findings = Findings()
    sessions = list(read_sessions([tmp_path], findings))
    assert [len(each.requests) for each in sessions] == [3]
    assert findings.files[1].skipped == {"a copy of a request in an earlier file": 3}
