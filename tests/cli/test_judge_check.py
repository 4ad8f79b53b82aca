"""`judge-check` and the judge in a run, over real HTTP: rates, exit codes, warnings, and a bank that is sound."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from command import environment
from context_bench.cli import main
from context_bench.cli.judge_check import KINDS, bank
from context_bench.store import Store
from context_bench.text.golds import normalize_answer
from servers import Request, Server, completion, free_port, reply

KEY = "sk-test-0123456789abcdef"


class Done(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Done]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call the command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def run(*arguments: str) -> Done:
        return Done(main(list(arguments)), *capsys.readouterr())

    return run


def check(call: Call, server: Server, *more: str) -> Done:
    return call("judge-check", "--judge-url", server.url, "--judge-model", "m", *more)


def table(text: str) -> dict[str, list[str]]:
    """The lines of a Markdown table by their first cell, without the rule."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert len({len(line) for line in text.splitlines() if line[:1] == "|"}) == 1, "the columns line up"
    return {first: rest for first, *rest in lines if first.strip("-")}


def rating(value: int) -> Any:
    return completion(
        json.dumps({"rationale": "so", "rating": value}), usage={"prompt_tokens": 10, "completion_tokens": 2}
    )


KIND_OF = {(each["question"], each["meta"]["given"]): each["dataset"] for each in bank()}


def kind_in(request: Request) -> str:
    """Which kind of answer of the bank a request is about."""
    user = request.json["messages"][1]["content"]
    blocks = dict(re.findall(r"\[(task|answer) [0-9a-f]{16} begins\]\n(.*?)\n\[", user, re.DOTALL))
    return KIND_OF[blocks["task"], blocks["answer"]]


def honest(request: Request) -> Any:
    return rating(5 if KINDS[kind_in(request)] else 2)


# The bank


def test_the_bank_is_large_enough_and_has_no_repeats() -> None:
    examples = list(bank())
    assert len(examples) == 4 * 64
    assert {kind: sum(each["dataset"] == kind for each in examples) for kind in KINDS} == dict.fromkeys(KINDS, 64)
    assert len({each["question"] for each in examples}) == 64
    assert len(KIND_OF) == len(examples), "an answer of two kinds would be both right and wrong"
    assert all(each["answer"].strip() and each["meta"]["given"].strip() for each in examples)


def test_right_answers_hold_the_gold_and_the_others_do_not() -> None:
    for example in bank():
        kind, gold, given = example["dataset"], *map(normalize_answer, (example["answer"], example["meta"]["given"]))
        if kind == "right":
            assert set(re.findall(r"\d+", gold)) <= set(re.findall(r"\d+", given)), example
            assert len(set(gold.split()) & set(given.split())) >= len(set(gold.split())) / 2, example
        elif kind in ("vague-wrong", "wrong"):
            assert f" {gold} " not in f" {given} ", example


# The rates


def test_a_judge_that_always_says_5_accepts_everything(call: Call) -> None:
    with Server(rating(5)) as server:
        done = check(call, server)
    assert done.code == 0
    # Wilson for 64 of 64, with t of 63 degrees: 1 / (1 + t²/64) = 94.1%; for 128 of 128: 97.0%.
    assert table(done.out) == {
        "answers": ["mistake", "n", "unscored", "mistakes", "rate", "95% interval"],
        "right": ["false reject", "64", "0", "0", "0.0%", "0.0% to 5.9%"],
        "paraphrased": ["false reject", "64", "0", "0", "0.0%", "0.0% to 5.9%"],
        "vague-wrong": ["false accept", "64", "0", "64", "100.0%", "94.1% to 100.0%"],
        "wrong": ["false accept", "64", "0", "64", "100.0%", "94.1% to 100.0%"],
        "right + paraphrased": ["false reject", "128", "0", "0", "0.0%", "0.0% to 3.0%"],
        "vague-wrong + wrong": ["false accept", "128", "0", "128", "100.0%", "97.0% to 100.0%"],
    }
    assert done.err == ""
    assert "The judge read 2,560 tokens and wrote 512." in done.out


def test_a_judge_that_always_says_1_rejects_everything(call: Call) -> None:
    with Server(rating(1)) as server:
        lines = table(check(call, server).out)
    assert [lines[kind][4] for kind in KINDS] == ["100.0%", "100.0%", "0.0%", "0.0%"]


def test_an_honest_judge_makes_no_mistake(call: Call) -> None:
    with Server(honest) as server:
        done = check(call, server)
    lines = table(done.out)
    assert [lines[kind][1:5] for kind in KINDS] == [["64", "0", "0", "0.0%"]] * 4
    assert len(server.chats) == 256


def test_a_judge_that_falls_for_vague_answers(call: Call) -> None:
    def kind(request: Request) -> Any:
        return rating({"right": 5, "paraphrased": 4, "vague-wrong": 4, "wrong": 3}[kind_in(request)])

    with Server(kind) as server:
        lines = table(check(call, server).out)
    assert [lines[kind][4] for kind in KINDS] == ["0.0%", "0.0%", "100.0%", "0.0%"]
    assert lines["vague-wrong + wrong"][:5] == ["false accept", "128", "0", "64", "50.0%"]


# Judges that fail


def test_a_judge_that_is_down(call: Call) -> None:
    done = call("judge-check", "--judge-url", f"http://127.0.0.1:{free_port()}", "--judge-model", "m")
    assert done.code == 3
    lines = table(done.out)
    assert [lines[kind][1:] for kind in KINDS] == [["0", "64", "0", "–", "–"]] * 4
    assert "256 of 256 unscored, first: the judge did not answer" in done.err


@pytest.mark.parametrize(("lost", "code"), [(25, 0), (26, 3)])
def test_missing_ratings_are_counted_and_too_many_are_an_error(call: Call, lost: int, code: int) -> None:
    script = [completion("no idea")] * lost + [rating(5)]
    with Server(*script) as server:
        done = check(call, server, "--max-workers", "1")
    assert done.code == code
    lines = table(done.out)
    assert sum(int(lines[kind][2]) for kind in KINDS) == lost
    assert sum(int(lines[kind][1]) for kind in KINDS) == 256 - lost
    assert lines["wrong"][4] == "100.0%", "a missing rating is neither a pass nor a fail"
    assert f"{lost} of 256 unscored, first: the judge's reply cannot be read" in done.err


def test_how_many_at_once(call: Call) -> None:
    with Server(lambda request: completion("[[5]]", delay=0.01)) as server:
        check(call, server, "--max-workers", "3")
    assert server.most_in_flight == 3


def test_the_key_by_its_variable(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with Server(rating(5)) as server:
        done = check(call, server, "--judge-key-env", "JUDGE_KEY")
    assert {chat.headers["authorization"] for chat in server.chats} == {f"Bearer {KEY}"}
    assert KEY not in done.out + done.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--judge-model", "m"], "--judge-url"),
        (
            ["--judge-url", "localhost", "--judge-model", "m"],
            "'localhost' is not the URL of a server: write http://localhost",
        ),
        (["--judge-url", "http://localhost:1", "--judge-model", "m", "--judge-key-env", "NOT_SET_1"], "NOT_SET_1"),
        (
            ["--judge-url", "http://localhost:1", "--judge-model", "m", "--max-workers", "0"],
            "must be an integer of at least 1",
        ),
    ],
)
def test_wrong_usage(call: Call, flags: list[str], message: str) -> None:
    done = call("judge-check", *flags)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_progress_is_for_terminals(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    with Server(lambda request: completion("[[5]]", delay=0.05)) as server:
        command = [
            sys.executable,
            "-m",
            "context_bench",
            "judge-check",
            "--judge-url",
            server.url,
            "--judge-model",
            "m",
        ]
        master, slave = pty.openpty()
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=slave
        ) as process:
            os.close(slave)
            assert process.stdout is not None
            out = process.stdout.read().decode()
            assert process.wait(30) == 0
    shown = b"".join(_read(master)).decode()
    assert "/256" in shown
    assert "\r" not in out
    assert out.startswith("| answers")


def _read(master: int) -> Iterator[bytes]:
    try:
        while part := os.read(master, 65536):
            yield part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(master)


# The judge in a run


@pytest.fixture
def data(tmp_path: Path) -> str:
    lines = [{"id": k, "context": "c", "question": f"What is {k}+{k}?", "answer": str(2 * k)} for k in range(3)]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return "own.jsonl"


def rows(done: Done) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.out)["rows"]
    return found


def test_the_judge_is_wired_for_every_dataset(call: Call, data: str) -> None:
    with Server(completion("0")) as proxy, Server(rating(4)) as judge:
        done = call(
            *("--proxy", proxy.url, "--dataset", data, "--dataset", "needle:length=200,n=2", "--output", "json"),
            *("--judge-url", judge.url, "--judge-model", "j", "--score-field", "judge_score", "--no-store"),
            *("--model", "m"),
        )
    assert done.code == 0
    assert [row["scores"]["judge_score"] for row in rows(done)] == [0.75] * 5
    assert all("f1" in row["scores"] for row in rows(done))
    (summary,) = json.loads(done.out)["summary"].values()
    assert (summary["mean_score"], summary["pass_rate"]) == (0.75, 1.0)
    assert rows(done)[0]["metadata"]["llm-judge"]["rationale"] == "so"
    assert {chat.json["model"] for chat in judge.chats} == {"j"}
    assert len(judge.chats) == 5
    assert done.err == ""


def test_without_a_judge_there_is_no_such_score(call: Call, data: str) -> None:
    done = call("--system", "passthrough", "--dataset", data, "--score-field", "judge_score")
    assert done.code == 2
    assert "no evaluator emits 'judge_score' here" in done.err


@pytest.mark.parametrize("flags", [["--judge-model", "m"], ["--judge-key-env", "K"]])
def test_a_judge_without_a_server(call: Call, data: str, flags: list[str]) -> None:
    done = call("--system", "passthrough", "--dataset", data, *flags)
    assert done.code == 2
    assert "a judge needs --judge-url URL" in done.err


def test_a_judge_without_a_model_is_gpt_4_and_that_is_said(call: Call, data: str) -> None:
    with Server(completion("0")) as proxy, Server(rating(4)) as judge:
        flags = ["--judge-url", judge.url]
        done = call("--proxy", proxy.url, "--model", "m", "--dataset", data, *flags, "--output", "json")
        again = call("score", "last", *flags)
        checked = call("judge-check", *flags)
    assert (done.code, again.code) == (0, 0)
    assert checked.code in (0, 3)
    assert {chat.json["model"] for chat in judge.chats} == {"gpt-4"}
    for each in (done, again, checked):
        assert each.err.count("context-bench: no --judge-model was given: gpt-4 judges\n") == 1
    assert [row["scores"]["judge_score"] for row in rows(done)] == [0.75] * 3
    assert "model of the judge (default: gpt-4)" in call("judge-check", "--help").out


def test_the_key_of_the_judge_does_not_go_to_the_proxy(call: Call, data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with Server(completion("0")) as proxy, Server(rating(4)) as judge:
        call(
            *("--proxy", proxy.url, "--dataset", data, "--judge-url", judge.url, "--judge-model", "j"),
            *("--judge-key-env", "JUDGE_KEY", "--no-store"),
        )
    assert {chat.headers.get("authorization") for chat in judge.chats} == {f"Bearer {KEY}"}
    assert {chat.headers.get("authorization") for chat in proxy.chats} == {None}


def test_a_model_that_judges_itself(call: Call, data: str) -> None:
    def warned(*flags: str) -> bool:
        with Server(completion("0")) as proxy, Server(rating(4)) as judge:
            places = [flag.format(proxy.url) for flag in flags]
            done = call(*places, "--dataset", data, "--judge-url", judge.url, "--judge-model", "same", "--no-store")
        return "same judges its own answers" in done.err

    assert warned("--proxy", "{}", "--model", "same")
    assert warned("--system", "passthrough", "--reader", "{}", "--model", "same")
    assert not warned("--proxy", "{}", "--model", "other")
    assert not warned("--system", "passthrough", "--model", "same")


def test_a_context_is_judged_as_an_answer_with_a_warning(call: Call, data: str) -> None:
    with Server(rating(1)) as judge:
        done = call("--system", "passthrough", "--dataset", data, "--judge-url", judge.url, "--judge-model", "j")
    assert "--reader URL" in done.err
    assert len(judge.chats) == 3


def test_a_dead_judge_is_a_missing_score_and_no_error_of_the_system(call: Call, data: str) -> None:
    with Server(completion("0")) as proxy:
        dead = f"http://127.0.0.1:{free_port()}"
        flags = ["--proxy", proxy.url, "--dataset", data, "-n", "1", "--output", "json", "--score-field", "judge_score"]
        done = call(*flags, "--judge-url", dead, "--judge-model", "j")
    (summary,) = json.loads(done.out)["summary"].values()
    assert (summary["num_errors"], summary["num_unscored"]) == (0, 1)
    assert "judge_score" not in rows(done)[0]["scores"]


def test_a_recorded_run_is_judged_later(call: Call, data: str, tmp_path: Path) -> None:
    with Server(completion("0")) as proxy:
        call("--proxy", proxy.url, "--dataset", data)
    with Server(reply(400), rating(4)) as judge:
        flags = ["score", "last", "--judge-url", judge.url, "--judge-model", "j", "--output", "json"]
        first = rows(call(*flags))
        second = rows(call(*flags))
    assert sorted(row["scores"].get("judge_score", 0) for row in first) == [0, 0.75, 0.75]
    assert [row["scores"]["judge_score"] for row in second] == [0.75] * 3
    assert len(proxy.chats) == 3
    assert len(judge.chats) == 4, "only the judgement that failed was asked for again"
    with Store(tmp_path / ".context-bench") as store:
        assert KEY not in str(store.run("last").config)


def test_the_judge_of_memory_has_a_bank_of_its_own(call: Call) -> None:
    def accept_all(request: Request) -> Any:
        return completion("yes")

    with Server(accept_all) as server:
        done = check(call, server, "--memory")
        asked = len(server.chats)
    lines = table(done.out)
    assert done.code == 0
    # Who says yes to everything never rejects, and accepts all that is wrong.
    assert lines["right + paraphrased"][0] == "false reject"
    assert (lines["right + paraphrased"][3], lines["right + paraphrased"][4]) == ("0", "0.0%")
    assert lines["all wrong answers"][0] == "false accept"
    assert (lines["all wrong answers"][1], lines["all wrong answers"][4]) == (
        lines["all wrong answers"][3],
        "100.0%",
    )
    assert {"vague-wrong", "specific-wrong", "outdated", "refusing"} <= set(lines)
    assert int(lines["right + paraphrased"][1]) + int(lines["all wrong answers"][1]) == asked == 169
    assert call("judge-check", "--judge-url", "http://localhost:1", "--judge-prompts", "x.toml").code == 2


@pytest.mark.parametrize("memory", [False, True])
def test_the_check_stops_at_the_spending_limit(memory: bool, call: Call, tmp_path: Path) -> None:
    """A verdict costs 10 tokens at 10 and 2 at 20 dollars a million, 0.00014: seven fit into 0.001."""
    (tmp_path / "prices.toml").write_text("[default]\ninput = 10\noutput = 20\n")
    answer = completion("yes", usage={"prompt_tokens": 10, "completion_tokens": 2}) if memory else rating(5)
    with Server(answer) as server:
        limited = ("--prices", "prices.toml", "--max-cost", "0.001", *(["--memory"] if memory else []))
        done = check(call, server, *limited)
        assert len(server.chats) == 7
    assert done.code == 3
    assert "stopped early: the limit of $0.001 is reached ($0.0010 spent, $0.0010 of it on judging" in done.err
