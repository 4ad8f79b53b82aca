"""`--dry-run`: numbers that can be worked out by hand, and not one request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from context_bench import set_tokenizer
from context_bench.cli import main
from context_bench.utils.tokens import count_tokens
from servers import Server, completion, free_port


class Words:
    """Ten examples of 4 words of context, 2 of question."""

    rows: tuple[dict[str, Any], ...] = tuple(
        {"id": n, "context": "one two three four", "question": "what then", "answer": "GOLD"} for n in range(10)
    )


DryRun = Callable[..., tuple[dict[str, str], Any, str]]


@pytest.fixture
def dry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[DryRun]:
    """A dry run against a server that must not hear of it: the lines of the table, the prompt, and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in Words.rows))

    def call(*flags: str, code: int = 0) -> tuple[dict[str, str], Any, str]:
        with Server() as server:
            arguments = [flag.replace("{url}", server.url) for flag in flags]
            assert main([*arguments, "--dry-run"]) == code
        out, err = capsys.readouterr()
        assert server.requests == []
        assert not (tmp_path / ".context-bench").exists()
        table, _, prompt = out.partition("\nthe first prompt:\n")
        lines = dict(line.split("  ", 1) for line in table.splitlines())
        return {key: value.strip() for key, value in lines.items()}, json.loads(prompt) if prompt else None, err

    yield call
    set_tokenizer(None)


PROXY = ("--proxy", "{url}", "--dataset", "data.jsonl")
CONTEXT, QUESTION = count_tokens("one two three four"), count_tokens("what then")


def test_what_would_be_sent(dry: DryRun) -> None:
    lines, prompt, _ = dry(*PROXY, "--model", "m-1")
    assert (CONTEXT, QUESTION) == (4, 2)
    assert lines["examples"] == "10"
    assert lines["systems"] == "1, of which 1 over the network"
    assert lines["requests"] == "10"
    assert lines["input tokens"] == "60 before any compression"
    assert lines["cost"] == "not priced: no price for 'm-1' (--prices FILE)"
    assert prompt == {
        "model": "m-1",
        "messages": [
            {"role": "system", "content": "one two three four"},
            {"role": "user", "content": "what then"},
        ],
        "temperature": 0.0,
    }


def test_servers_repeats_and_examples_multiply(dry: DryRun) -> None:
    lines, _, _ = dry(
        *PROXY, "--proxy", "{url}/b", "--name", "x", "--system", "passthrough", "--repeats", "3", "-n", "4"
    )
    assert lines["examples"] == "4"
    assert lines["systems"] == "3, of which 2 over the network"
    assert lines["requests"] == "24"
    assert lines["input tokens"] == "144 before any compression"


def test_what_else_is_sent_counts_too(dry: DryRun, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "one two"}, {"role": "user", "content": "three"}]
    rows = [
        {"id": 1, "context": "not sent again", "turns": turns},
        {"id": 2, "context": "", "question": "so", "instruction": "be brief"},
        {"id": 3, "context": "", "question": "so", "tools": [{"name": "t"}]},
    ]
    (tmp_path / "more.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines, _, _ = dry("--proxy", "{url}", "--dataset", "more.jsonl", "--system-prompt", "you are a clerk")
    sent = ["one two", "one two", "three", "so\n\nbe brief", "so", '{"name":"t"}', *["you are a clerk"] * 4]
    assert lines["requests"] == "4"  # the conversation has two turns to answer, and the second holds the first reply
    assert lines["input tokens"] == f"{sum(map(count_tokens, sent)) + 300} before any compression"


def test_the_tokenizer_counts(dry: DryRun) -> None:
    lines, _, _ = dry(*PROXY, "--tokenizer", "llama3")
    assert lines["input tokens"].endswith("before any compression")


def test_the_instruction_of_a_dataset_is_part_of_the_prompt(dry: DryRun) -> None:
    lines, prompt, _ = dry("--proxy", "{url}", "--dataset", "needle:length=300,n=2", "--max-tokens", "9")
    assert prompt["messages"][1]["content"].endswith("Answer with the value only.")
    assert prompt["max_tokens"] == 9
    assert lines["requests"] == "2"


def test_the_cost_by_hand(dry: DryRun, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["m-1"]\ninput = 1000.0\noutput = 2000.0\n')
    flags = (*PROXY, "--model", "m-1", "--prices", "prices.toml")
    lines, _, _ = dry(*flags, "--max-tokens", "100", "--repeats", "2")
    # 2 x (60 input tokens at $1,000 and 10 x 100 output tokens at $2,000, for a million)
    assert lines["cost"] == "about $4.12, with 100 tokens a reply"
    lines, _, _ = dry(*flags)
    assert lines["cost"] == "about $6.06, with 300 tokens a reply"
    lines, _, _ = dry(*PROXY, "--model", "unknown", "--prices", "prices.toml")
    assert lines["cost"] == "not priced: no price for 'unknown' (--prices FILE)"


def test_the_cost_by_the_table_that_ships(dry: DryRun) -> None:
    lines, _, _ = dry(*PROXY, "--model", "gpt-4o", "--max-tokens", "1000")
    # 60 input tokens at $2.50 and 10 x 1,000 output tokens at $10, for a million
    assert lines["cost"] == "about $0.10, with 1000 tokens a reply"


def test_the_time_by_hand(dry: DryRun) -> None:
    assert dry(*PROXY, "--max-workers", "1")[0]["time"] == "about 0.3 min, at 2 s a request"
    assert dry(*PROXY, "--repeats", "24", "--max-workers", "4")[0]["time"] == "about 2.0 min, at 2 s a request"
    assert dry(*PROXY, "--max-rpm", "2")[0]["time"] == "about 5.0 min, at 2 s a request"
    assert dry(*PROXY, "--max-tpm", "20")[0]["time"] == "about 3.0 min, at 2 s a request"


def test_a_reader_is_asked_once_for_each_system(dry: DryRun) -> None:
    lines, prompt, _ = dry(
        *("--reader", "{url}", "--system", "passthrough", "--system", "truncate:ratio=0.5"),
        *("--dataset", "data.jsonl", "--model", "m-1"),
    )
    assert lines["systems"] == "2, of which 2 over the network"
    assert lines["requests"] == "20"
    assert prompt["model"] == "m-1"


def test_anthropics_api(dry: DryRun) -> None:
    _, prompt, _ = dry(*PROXY, "--api", "anthropic")
    assert prompt["model"] == "claude-haiku-4-5"
    assert prompt["system"] == "one two three four"


def test_without_a_server_nothing_is_sent_and_nothing_costs(dry: DryRun) -> None:
    lines, prompt, _ = dry("--system", "passthrough", "--dataset", "data.jsonl", "--system-prompt", "you")
    assert (lines["requests"], lines["cost"], lines["time"]) == ("0", "nothing", "no requests")
    assert lines["input tokens"] == "0 before any compression"
    assert prompt[0] == {"role": "system", "content": "you\n\none two three four"}


def test_the_gold_is_not_in_the_prompt(dry: DryRun) -> None:
    assert "GOLD" not in json.dumps(dry(*PROXY)[1])


def test_no_key_is_in_the_prompt(dry: DryRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    lines, prompt, err = dry(*PROXY, "--header", "X-Key: topsecret")
    assert "sk-0123456789abcdef" not in f"{lines}{prompt}{err}"
    assert "topsecret" not in f"{lines}{prompt}{err}"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--dataset", "bad.jsonl"], "bad.jsonl, line 2"),
        (["--dataset", "own.py:rows"], "example 2: no 'context'"),
        (["--dataset", "own.py:texts"], "example 1"),
        (["--dataset", "data.jsonl", "--prices", "missing.toml"], "missing.toml"),
    ],
)
def test_a_mistake_is_one_sentence(dry: DryRun, tmp_path: Path, flags: list[str], said: str) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": 1, "context": "x"}\n{"id": 2}\n')
    (tmp_path / "own.py").write_text(
        "def rows():\n    yield {'id': 1, 'context': 'x'}\n    yield {'id': 2}\ndef texts():\n    yield 'text'\n"
    )
    _, _, err = dry("--proxy", "{url}", *flags, code=2)
    assert err.count("\n") == 1
    assert said in err


def test_a_baseline_that_is_no_system_is_refused_as_in_a_run(dry: DryRun) -> None:
    flags = ("--system", "passthrough", "--system", "minify", "--dataset", "data.jsonl", "--baseline", "minfy")
    _, _, said = dry(*flags, code=2)
    assert "the baseline must be one of the systems passthrough, minify (got 'minfy'); did you mean minify?" in said


JUDGE = '{"rationale": "so", "rating": 5}'


def test_the_judge_is_counted_by_hand(dry: DryRun, tmp_path: Path) -> None:
    """Its prompt has a fixed part; the answer that it reads is as long as a reply, and a verdict has 100 tokens."""
    from context_bench.evaluators.llm_judge import LLMJudge

    (tmp_path / "prices.toml").write_text(
        '["gpt-3.5-turbo"]\ninput = 1000\noutput = 2000\n[j]\ninput = 1000\noutput = 2000\n'
    )
    judged = (*PROXY, "--judge-url", "{url}", "--judge-model", "j", "--prices", "prices.toml", "--max-tokens", "50")
    lines, _, _ = dry(*judged, "--repeats", "2")
    body = LLMJudge("http://127.0.0.1:9", "j").write_request(Words.rows[0], {"response": "-"})
    assert body is not None
    own = sum(count_tokens(message["content"]) for message in body["messages"])
    read = 20 * (own + 50)
    assert lines["llm-judge"] == f"20 requests, {read:,} input tokens"
    judging = read * 1e-3 + 20 * 100 * 2e-3
    answering = 120 * 1e-3 + 20 * 50 * 2e-3
    total = judging + answering
    judge = f"${judging:.2f} of it for the judge (100 tokens a verdict)"
    assert lines["cost"] == f"about ${total:.2f}, with 50 tokens a reply, {judge}"
    assert lines["at most"] == f"${4 * total:.2f}, if every request uses all its retries and each is billed"


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("3", "would stop the run after about 50% of its cost"),
        ("7", "covers the estimate, but not every retry"),
        ("25", "covers the estimate"),
    ],
)
def test_the_estimate_is_compared_with_the_limit(dry: DryRun, tmp_path: Path, limit: str, said: str) -> None:
    """60 input tokens at $1,000 and 3,000 output tokens at $2,000 a million are $6.06; four attempts each $24.24."""
    (tmp_path / "prices.toml").write_text(
        '["gpt-3.5-turbo"]\ninput = 1000\noutput = 2000\n[j]\ninput = 1000\noutput = 2000\n'
    )
    lines, _, _ = dry(*PROXY, "--prices", "prices.toml", "--max-cost", limit)
    assert lines["limit"] == f"--max-cost ${float(limit):.2f} {said}"


def test_controls_count_by_what_they_send(dry: DryRun, tmp_path: Path) -> None:
    """The context has 100 words: the floor is not sent it, the ceiling only the evidence."""
    pytest.importorskip("aiohttp")
    row = {"id": 1, "context": "one " * 99 + "needle", "question": "what", "answer": "needle", "evidence": ["needle"]}
    (tmp_path / "long.jsonl").write_text(json.dumps(row) + "\n")
    flags = ("--proxy", "{url}", "--dataset", "long.jsonl", "--tap-reply", "echo", "--tap", f":{free_port()}")
    (alone, _, _), (both, _, _) = dry(*flags), dry(*flags, "--controls")
    sent = [int(lines["input tokens"].split()[0].replace(",", "")) for lines in (alone, both)]
    assert both["requests"] == "4"
    assert 2 * sent[0] < sent[1] < 2 * sent[0] + 20, "the proxy and direct send all of it, floor and ceiling hardly any"


def test_a_floor_in_front_of_a_reader_counts_by_what_it_sends(dry: DryRun, tmp_path: Path) -> None:
    row = {"id": 1, "context": "one " * 99 + "needle", "question": "what", "answer": "needle", "evidence": ["needle"]}
    (tmp_path / "long.jsonl").write_text(json.dumps(row) + "\n")
    flags = ("--reader", "{url}", "--dataset", "long.jsonl", "--system", "passthrough")
    (alone, _, _), (both, _, _) = dry(*flags), dry(*flags, "--system", "closed-book", "--system", "oracle")
    sent = [int(lines["input tokens"].split()[0].replace(",", "")) for lines in (alone, both)]
    assert both["requests"] == "3"
    assert sent[0] < sent[1] < sent[0] + 20


def test_stored_answers_and_verdicts_cost_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in Words.rows))
    with Server(completion("GOLD")) as server, Server(completion(JUDGE)) as judge:
        flags = ["--proxy", server.url, "--name", "p", "--judge-url", judge.url, "--judge-model", "j"]
        flags += ["--cache-dir", str(tmp_path / "kept"), "--dataset", str(data)]
        assert main([*flags, "-n", "6", "--quiet", "--out", str(tmp_path / "result.json")]) == 0
        asked = len(server.requests), len(judge.requests)
        capsys.readouterr()
        assert main([*flags, "--dry-run"]) == 0
        lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.partition("\n\n")[0].splitlines())
        assert (len(server.requests), len(judge.requests)) == asked
    shown = {key: value.strip() for key, value in lines.items()}
    assert shown["requests"] == "4; 6 answers in the store cost nothing"
    assert shown["llm-judge"].startswith("4 requests, ")


def test_a_judge_of_contexts_reads_whole_contexts(dry: DryRun, tmp_path: Path) -> None:
    """A compressor returns at most its 500 words: the judge is estimated to read those, not a reply of 300 tokens."""
    row = {"id": 1, "context": "one " * 500, "question": "what", "answer": "one"}
    (tmp_path / "long.jsonl").write_text(json.dumps(row) + "\n")
    judged = ("--system", "passthrough", "--judge-url", "{url}", "--judge-model", "j")
    short, _, _ = dry(*judged, "--dataset", "data.jsonl", "-n", "1")
    long, _, _ = dry(*judged, "--dataset", "long.jsonl")
    read = [int(lines["llm-judge"].split(", ")[1].split()[0].replace(",", "")) for lines in (short, long)]
    assert 490 <= read[1] - read[0] <= 510
    assert long["time"].startswith("about 0.0 min")
    assert "with retries" not in long, "nothing is priced"


def test_the_judge_is_priced_where_the_model_is_not(dry: DryRun, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('["j"]\ninput = 1000.0\noutput = 2000.0\n')
    lines, _, _ = dry(*PROXY, "--judge-url", "{url}", "--judge-model", "j", "--prices", "prices.toml", "--model", "m-1")
    assert lines["cost"].startswith("not priced: no price for 'm-1' (--prices FILE); the judge alone costs about $")


def test_without_a_bound_on_replies_no_most_is_promised(dry: DryRun, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(
        '["gpt-3.5-turbo"]\ninput = 1000\noutput = 2000\n[j]\ninput = 1000\noutput = 2000\n'
    )
    lines, _, _ = dry(*PROXY, "--prices", "prices.toml")
    assert lines["with retries"] == "about $24.24, if every request uses all its retries and each is billed"
    assert "at most" not in lines
