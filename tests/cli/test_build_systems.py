"""From flags to systems: what each flag about requests changes in what is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_bench.cli import main
from servers import Server, completion, message, reply

KEY = "sk-test-0123456789abcdef"
DATA = {"id": 1, "context": "Paris is in France. Rome is in Italy.", "question": "Where is Paris?", "answer": "France"}

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command line on one example, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data.jsonl").write_text(json.dumps(DATA) + "\n")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--dataset", "data.jsonl", "--output", "json"])
        return code, *capsys.readouterr()

    return run


def sent(call: Call, *flags: str, reply: Any = None) -> Any:
    """The request that a proxy gets."""
    with Server(reply or completion("France")) as server:
        code, _, err = call("--proxy", server.url, *flags)
    assert code == 0, err
    return server.chats[-1]


def test_without_flags(call: Call) -> None:
    assert sent(call).json == {
        "model": "gpt-3.5-turbo",
        "messages": [
            {"role": "system", "content": "Paris is in France. Rome is in Italy."},
            {"role": "user", "content": "Where is Paris?"},
        ],
        "temperature": 0.0,
    }


def test_what_is_sent(call: Call) -> None:
    flags = ["--model", "m-1", "--temperature", "0.7", "--max-tokens", "9", "--system-prompt", "Be brief."]
    body = sent(call, *flags, "--extra-body", '{"top_p": 0.9, "seed": 7}').json
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m-1", 0.7, 9)
    assert (body["top_p"], body["seed"]) == (0.9, 7)
    assert body["messages"][0]["content"] == "Be brief.\n\nParis is in France. Rome is in Italy."


def test_temperature_can_be_left_to_the_server(call: Call) -> None:
    assert "temperature" not in sent(call, "--temperature", "none").json


def test_headers(call: Call) -> None:
    request = sent(call, "--header", "X-Mode: fast", "--header", "X-Url:http://a:1")
    assert (request.headers["x-mode"], request.headers["x-url"]) == ("fast", "http://a:1")


def test_a_header_wins_over_the_key_of_the_environment(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert sent(call, "--header", "authorization: Basic abc").headers["authorization"] == "Basic abc"


def test_the_value_of_a_header_is_nowhere(call: Call, tmp_path: Path) -> None:
    with Server(reply(403, {"error": f"the token {KEY} is no good"})) as server:
        code, out, err = call("--proxy", server.url, "--header", f"X-Token: {KEY}", "--verbose")
    assert code == 3
    assert server.chats[0].headers["x-token"] == KEY
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".context-bench").iterdir()).decode("latin-1")
    for text in (out, err, kept):
        assert KEY not in text
        assert "X-Token:***" in text or text is err


def test_another_header_asks_again(call: Call) -> None:
    with Server(completion("France")) as server:
        for header in ("X-Mode: a", "X-Mode: a", "x-mode: a", "X-Mode: b", "X-Mode: b"):
            call("--proxy", server.url, "--header", header, "--resume")
        assert len(server.chats) == 2
        call("--proxy", server.url, "--header", "X-Mode: b", "--header", "Authorization: Bearer new", "--resume")
        call("--proxy", server.url, "--header", "X-Mode: b", "--timeout", "7", "--max-retries", "9", "--resume")
    assert len(server.chats) == 2


def test_timeout_and_retries(call: Call) -> None:
    with Server(completion("late", delay=1.0)) as server:
        code, out, _ = call("--proxy", server.url, "--timeout", "0.2", "--max-retries", "0")
    assert code == 3
    assert "within 0.2 s" in json.loads(out)["rows"][0]["error"]
    assert len(server.chats) == 1


def test_repeats(call: Call) -> None:
    with Server(completion("France")) as server:
        _, out, _ = call("--proxy", server.url, "--repeats", "3")
    assert [row["repeat"] for row in json.loads(out)["rows"]] == [0, 1, 2]
    assert len(server.chats) == 3


def test_prices(call: Call, tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text('{"m-1": {"input": 1, "output": 2, "cached_input": 0.5}}')
    details = {"prompt_tokens_details": {"cached_tokens": 400}}
    usage: dict[str, Any] = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, **details}
    with Server(completion("France", usage)) as server:
        _, out, _ = call("--proxy", server.url, "--model", "m-1", "--prices", "prices.json")
    (row,) = json.loads(out)["rows"]
    assert row["metadata"]["cost_usd"] == pytest.approx((600 * 1 + 400 * 0.5 + 10 * 2) / 1e6)


def test_anthropics_api(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    request = sent(call, "--api", "anthropic", "--max-tokens", "5", reply=message("France"))
    assert request.path == "/v1/messages"
    assert request.json["model"] == "claude-haiku-4-5"
    assert request.json["max_tokens"] == 5
    assert request.headers["x-api-key"] == KEY
    assert "sk-of-somebody-else" not in str(request.headers)


def test_a_named_key_for_anthropics_api(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", KEY)
    assert sent(call, "--api", "anthropic", "--api-key-env", "MINE", reply=message()).headers["x-api-key"] == KEY


def test_a_key_over_plain_http_is_warned_of_once(
    call: Call, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINE", KEY)
    code, _, err = call("--proxy", "http://api.example.com", "--api-key-env", "MINE", "--dry-run")
    assert code == 0
    assert err.count("plain http") == 1
    assert KEY not in err


def test_a_reader_for_every_system(call: Call) -> None:
    with Server(completion("France")) as server:
        code, out, _ = call(
            *("--reader", server.url, "--system", "passthrough", "--system", "truncate:ratio=0.5|0.25"),
            *("--model", "m-1", "--temperature", "0.5", "--header", "X-Mode: fast"),
        )
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [row["system"] for row in rows] == ["passthrough", "truncate:ratio=0.5", "truncate:ratio=0.25"]
    assert rows[0]["upstream_tokens"] == rows[0]["input_tokens"] > rows[1]["upstream_tokens"]
    assert [row["upstream_tokens"] for row in rows] == [row["output_tokens"] for row in rows]
    assert {chat.json["model"] for chat in server.chats} == {"m-1"}
    assert {chat.headers["x-mode"] for chat in server.chats} == {"fast"}


def test_a_reader_beside_a_proxy(call: Call) -> None:
    with Server(completion("France")) as server:
        _, out, _ = call("--reader", server.url, "--system", "closed-book", "--proxy", server.url, "--name", "direct")
    summary = json.loads(out)["summary"]
    assert list(summary) == ["direct", "closed-book"]
    contents = {chat.json["messages"][0]["content"] for chat in server.chats}
    assert contents == {"Paris is in France. Rome is in Italy.", "Where is Paris?"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--header", "no colon hunter2"], "NAME:VALUE"),
        (["--header", ": hunter2"], "NAME:VALUE"),
        (["--header", "X-Empty:"], "must be NAME:VALUE (got the name 'X-Empty' alone)"),
        (["--header", "X Y: hunter2"], "'X Y' is not a valid header name"),
        (["--header", "X: hunter2\r\nY: 1"], "'X' cannot be sent"),
        (["--header", "X: hunter2é"], "'X' cannot be sent"),
        (["--extra-body", "{"], "must be a JSON object"),
        (["--extra-body", "[1]"], "must be a JSON object"),
        (["--extra-body", "null"], "must be a JSON object"),
        (["--temperature", "-1"], "--temperature"),
        (["--temperature", "warm"], "--temperature"),
        (["--temperature", "inf"], "--temperature"),
        (["--max-tokens", "0"], "--max-tokens"),
        (["--max-tokens", "1.5"], "--max-tokens"),
        (["--timeout", "0"], "--timeout"),
        (["--timeout", "nan"], "--timeout"),
        (["--repeats", "0"], "--repeats"),
        (["--api", "google"], "google"),
        (["--prices", "missing.toml"], "missing.toml"),
        (["--prices", "broken.toml"], "broken.toml"),
        (["--prices", "half.toml"], "'m-1'"),
        (["--max-cost", "1", "--model", "my-own"], "'my-own' has no price"),
        (["--reader", "http://localhost:1"], "--system"),
        (["--reader", "localhost:1", "--system", "passthrough"], "write http://localhost:1"),
        (["--name", "a", "--name", "b"], "--name"),
        (["--api-key-env", "NOT_SET"], "NOT_SET"),
    ],
)
def test_a_mistake_is_one_sentence(call: Call, tmp_path: Path, flags: list[str], said: str) -> None:
    (tmp_path / "broken.toml").write_text("[")
    (tmp_path / "half.toml").write_text("[m-1]\ninput = 1\n")
    with Server() as server:
        code, out, err = call("--proxy", server.url, *flags)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert said in err
    assert "hunter2" not in err
    assert server.chats == []


@pytest.mark.parametrize("flags", [("--header", "X-Upstream:{tap}"), ("--extra-body", '{"to": "{tap}"}')])
def test_a_place_for_the_tap_needs_a_tap(call: Call, flags: tuple[str, str]) -> None:
    code, _, err = call("--proxy", "http://127.0.0.1:9", *flags)
    assert (code, f"{flags[0]} contains {{tap}}, but this run has no tap" in err) == (2, True)
