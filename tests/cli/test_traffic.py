"""`context-bench traffic show`: tables, JSON and a page of recorded sessions, without their secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_bench.cli import main

KEY = "sk-ant-api03-abcdefghijklmnop1234"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    text = f"The key is {KEY}, of ann@example.org. " * 20
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Why <b>now</b>?"}]
    for number in range(2):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": text})
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 400}}
    reply = {"id": "x", "choices": [{"message": {"role": "assistant", "content": "So."}}], "usage": usage}
    path = tmp_path / "sessions" / "log.jsonl"
    path.parent.mkdir()
    line = {
        "request": {"model": "gpt-4o", "messages": messages},
        "response": reply,
        "timestamp": "2026-01-02T00:00:00Z",
    }
    path.write_text(json.dumps(line) + "\n{\n")
    (path.parent / "run.tail.jsonl").write_text('{"line": "x"}\n')
    return path


def show(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["traffic", "show", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_answer_comes_first_and_fits_80_columns(
    capsys: pytest.CaptureFixture[str], log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("context_bench.cli.traffic.table_width", lambda **_: 80)
    code, out, _ = show(capsys, log.parent, "--mask-emails")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "1 session with 1 request in 1 thread."
    assert lines[1] == "The API counted 1,000 prompt tokens, 40.0% of them read from a cache, and 10 of"
    # gpt-4o: 600 x $2.50 + 400 x $1.25 + 10 x $10 a million
    assert "cost $0.0021; without a cache they would cost $0.0026." in " ".join(out.split())
    assert "1 terminal output of a run" in " ".join(out.split())
    assert "broken JSON" in out
    assert max(map(len, lines)) <= 80
    assert KEY not in out
    assert "ann@example.org" not in out
    assert "[secret 1]" in out


def test_one_table_alone(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    for by, first in (("tool", "read"), ("session", "log-1"), ("day", "2026-01-02")):
        _, out, _ = show(capsys, log, "--by", by)
        assert f"By {by}\n\n" in out or by == "tool"
        assert any(line.startswith(first) for line in out.splitlines()), by
        assert "Tokens by kind" not in out


def test_json_has_every_count_and_file(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    code, out, _ = show(capsys, log.parent, "--output", "json")
    assert code == 0
    assert KEY not in out
    found = json.loads(out)
    assert (found["requests"], found["prompt_tokens"], found["cache_hit_rate"]) == (1, 1000, 0.4)
    assert found["by_tool"]["read"]["results"] == 2
    by_name = {Path(each["path"]).name: each for each in found["files"]}
    assert by_name["log.jsonl"]["skipped"] == [{"reason": "broken JSON", "lines": 1, "first": [2]}]
    assert by_name["run.tail.jsonl"]["format"] is None


def test_the_page_opens_offline_and_escapes_what_was_recorded(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    page = log.parent.parent / "page.html"
    code, out, err = show(capsys, log, "--out", page)
    assert (code, out) == (0, "")
    assert f"wrote {page}" in err
    text = page.read_text()
    assert "<b>now" not in text
    assert KEY not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "default-src 'none'" in text.replace("&#x27;", "'")


def test_what_is_no_recording_is_one_sentence(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    for path, problem in (
        (log.parent / "run.tail.jsonl", "terminal output of a run"),
        (log.parent / "none", "no such file or folder"),
        (Path(__file__).parent, "no recorded request in"),
    ):
        code, out, err = show(capsys, path)
        assert (code, out) == (2, "")
        assert problem in err
        assert err.count("\n") == 1
