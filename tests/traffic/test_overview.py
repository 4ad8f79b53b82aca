"""The overview of recorded sessions: tokens by kind, repeated contents, cache, dollars; worked out by hand."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from context_bench.pricing import Price, Prices
from context_bench.text.masking import Placeholders
from context_bench.traffic.overview import Overview
from context_bench.traffic.readers import read_sessions

SONNET = Prices({"claude-sonnet-4": Price(3, 15, cached_input=0.3, cache_write_5m=3.75, cache_write_1h=6)})
LONG = "word " * 60  # 60 words


def count_words(text: str) -> int:
    return len(text.split())


def overview_of(*paths: Path) -> Overview:
    overview = Overview(SONNET, count_words)
    for session in read_sessions(paths):
        overview.add(session)
    return overview


def make_log(path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}
    again = {**call, "id": "t2"}
    messages = [
        {"role": "user", "content": "Fix it now"},
        {"role": "assistant", "content": [{"type": "text", "text": "Reading."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": LONG}]},
        {"role": "assistant", "content": [again]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": LONG}]},
    ]
    lines = []
    for number, length in enumerate((1, 3, 5)):
        request = {"model": "claude-sonnet-4", "system": "Be very brief.", "messages": messages[:length]}
        request["tools"] = [{"name": "read", "input_schema": {}}]
        usage = {"input_tokens": 1000, "cache_creation_input_tokens": 2000, "cache_read_input_tokens": 7000}
        reply = {"id": f"m{number}", "content": [], "usage": {**usage, "output_tokens": 100}}
        started = f"2026-01-0{number + 1}T00:00:00Z"
        lines.append(json.dumps({"request": request, "response": reply, "session_id": "s1", "timestamp": started}))
    path.write_text("\n".join(lines))


def test_tokens_cache_and_dollars_of_a_log(tmp_path: Path) -> None:
    make_log(tmp_path / "log.jsonl")
    overview = overview_of(tmp_path)
    total = overview.total
    assert (total.requests, total.prompt, total.output, total.hit_rate) == (3, 30_000, 300, 0.7)
    # a request: 1000 x $3 + 7000 x $0.30 + 2000 x $3.75 + 100 x $15, in millionths; without a cache 10,000 x $3
    assert total.dollars == pytest.approx(3 * (3000 + 2100 + 7500 + 1500) / 1e6)
    assert total.dollars_uncached == pytest.approx(3 * (30_000 + 1500) / 1e6)
    # a call counts its tool and id too, 1 + 2 words, and a result its id, 60 + 1
    assert overview.sent == {"system": 9, "tools": 3, "user": 9, "assistant": 2, "call": 3 + 6, "result": 61 + 122}
    assert overview.repeated == 61
    assert overview.tools["read"].as_dict() == {
        "results": 2,
        "result_tokens": 122,
        "sent_tokens": 183,
        "repeated_tokens": 61,
    }
    (content,) = overview.list_contents(5)
    assert (content.tokens, content.copies, content.sent, content.tool) == (61, 1, 61, "read")
    assert list(overview.days) == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert overview.sessions.keys() == {"s1"}


def test_what_was_not_recorded_is_null_and_not_zero(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}))
    found = overview_of(tmp_path).as_dict()
    for name in (
        "prompt_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "output_tokens",
        "cache_hit_rate",
        "cost_usd",
        "cost_uncached_usd",
        "not_recorded",
    ):
        assert found[name] is None, name
    assert found["requests"] == 1
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    reply = {"id": "r", "choices": [], "usage": {"prompt_tokens": 5}}
    (tmp_path / "log.jsonl").write_text(json.dumps({"request": request, "response": reply}))
    found = overview_of(tmp_path).as_dict()
    assert [found[name] for name in ("prompt_tokens", "cache_write_tokens", "output_tokens")] == [5, None, None]


def test_the_dollars_of_real_sessions() -> None:
    folder = Path(os.environ.get("CONTEXT_BENCH_DATA", "/nowhere")) / "traffic"
    if not folder.is_dir():
        pytest.skip("set CONTEXT_BENCH_DATA to a folder that has traffic/")
    billed = {"1af7": (0.0932, 0.3623), "5c03": (0.3312, 1.1708), "fe5e": (2.3932, 12.1389)}
    for start, (cost, uncached) in billed.items():
        (path,) = (folder / "claude-code").glob(f"{start}*.jsonl")
        total = overview_of(path).total
        assert (total.dollars, total.dollars_uncached) == (
            pytest.approx(cost, abs=5e-5),
            pytest.approx(uncached, abs=5e-5),
        )
    from context_bench.pricing import load_shipped_prices

    overview = Overview(load_shipped_prices(), count_words)
    for session in read_sessions([folder / "tokbench" / "a0c-T-fix-r1"]):
        overview.add(session)
    assert overview.total.dollars == pytest.approx(1.82, abs=0.005)


def test_the_same_secret_gets_the_same_placeholder() -> None:
    masked = Placeholders(emails=True)
    key, other = "sk-proj-abcdefghijkl1234", "ghp_abcdefghijklmnop1234"
    text = f"export A={key}\nurl https://ann:hunter2pass@example.org/x\n{other} {key}\nmail ann@example.org"
    assert masked.mask(text) == (
        "export A=[secret 1]\nurl https://ann:[secret 3]@example.org/x\n[secret 2] [secret 1]\nmail [email 1]"
    )
    assert masked.mask_all({"api_key": "abc123def456", "note": [key, 5]}) == {
        "api_key": "[secret 4]",
        "note": ["[secret 1]", 5],
    }
    for key in (
        "github_pat_11ABCDEFG0abcdef1234",
        "xoxb-123456789012-abcdef",
        "ASIAABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\n-----END RSA PRIVATE KEY-----",
    ):
        assert Placeholders().mask_all({key: [f"a {key} b {key}"]}) == {"[secret 1]": ["a [secret 1] b [secret 1]"]}
    code = "token = tokens.pop()\npassword: str = ask()\nif key == other: return secret_key-value-store-of-things"
    assert masked.mask(code) == code


def test_masking_takes_no_longer_on_texts_made_to_be_slow() -> None:
    keys = " ".join(f"sk-{number:014d}" for number in range(5000))
    for text in ("a." * 50_000, "x@" + "a." * 50_000, "eyJaaaaaaaaaa-" * 5000, "a-" * 50_000, keys):
        started = time.process_time()
        Placeholders(emails=True).mask(text)
        assert time.process_time() - started < 3, text[:20]


def test_a_key_at_the_end_of_a_preview_is_not_shown_in_part(tmp_path: Path) -> None:
    result = "word " * 38 + "sk-ant-abcdefghijkl1234 " + "more words " * 60
    called = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    told = {"role": "tool", "tool_call_id": "c", "content": result}
    messages = [{"role": "user", "content": "Go"}, called, told, {"role": "user", "content": "Go on"}, called, told]
    (tmp_path / "log.jsonl").write_text(json.dumps({"model": "m", "messages": messages}))
    (content,) = overview_of(tmp_path).list_contents(5)
    assert content.preview == "word " * 37 + "word"
