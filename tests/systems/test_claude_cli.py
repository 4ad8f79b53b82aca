"""The `claude` command, by stand-ins that print what the real one is documented to print."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.errors import BadOutput, SystemFailure, TimedOut, UsageError
from context_bench.systems import ClaudeCLI

EXAMPLE = {"id": 1, "context": "Paris is in France.", "question": "Where is Paris?", "answer": "France"}
SUCCESS = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 1200,
    "duration_api_ms": 900,
    "num_turns": 1,
    "result": "France",
    "session_id": "0c4f",
    "total_cost_usd": 0.0123,
    "usage": {
        "input_tokens": 4,
        "cache_creation_input_tokens": 50,
        "cache_read_input_tokens": 600,
        "output_tokens": 7,
        "service_tier": "standard",
    },
}

Make = Callable[..., ClaudeCLI]


@pytest.fixture
def claude(tmp_path: Path) -> Make:
    """Makes a ClaudeCLI whose program is a script."""

    def make(script: str, **options: Any) -> ClaudeCLI:
        path = tmp_path / "claude"
        path.write_text(f"#!{sys.executable}\nimport json, os, subprocess, sys, time\n{script}\n")
        path.chmod(0o755)
        return ClaudeCLI(command=str(path), **options)

    return make


def prints(document: Any, code: int = 0) -> str:
    return f"sys.stdin.read()\nprint({json.dumps(document)!r})\nsys.exit({code})"


def test_an_answer_with_its_usage(claude: Make) -> None:
    result = claude(prints(SUCCESS)).process(EXAMPLE)
    assert result["response"] == "France"
    assert result["metadata"] == {
        "prompt_tokens": 654,
        "completion_tokens": 7,
        "total_tokens": 661,
        "cached_tokens": 600,
        "cache_creation_tokens": 50,
    }


def test_a_row(claude: Make) -> None:
    (row,) = evaluate(claude(prints(SUCCESS), name="cc"), [EXAMPLE]).rows
    assert (row.system, row.error, row.scores["f1"]) == ("cc", None, 1.0)
    assert row.metadata["output"] == "response"
    assert row.latency > 0


def test_what_it_is_asked(claude: Make) -> None:
    echo = "print(json.dumps({'result': json.dumps([sys.argv[1:], sys.stdin.buffer.read().decode()])}))"
    example = {**EXAMPLE, "choices": ["Spain", "France"], "instruction": "A letter only.", "context": "naïve 日本 🎉"}
    arguments, prompt = json.loads(claude(echo).process(example)["response"])
    assert arguments == ["-p", "--output-format", "json"]
    assert prompt == "naïve 日本 🎉\n\nWhere is Paris?\n\nA. Spain\nB. France\n\nA letter only."
    arguments, _ = json.loads(claude(echo, model="haiku").process(example)["response"])
    assert arguments == ["-p", "--output-format", "json", "--model", "haiku"]


def test_a_conversation_is_told_turn_by_turn(claude: Make) -> None:
    echo = "print(json.dumps({'result': sys.stdin.buffer.read().decode()}))"
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}]}]
    turns += [{"role": "user", "content": "Where is Paris?"}]
    said = claude(echo).process({**EXAMPLE, "turns": turns})["response"]
    assert said == "user: Hi\n\nassistant: Yes?\n\nuser: Where is Paris?"


def test_a_huge_prompt_with_a_lone_surrogate(claude: Make) -> None:
    echo = "print(json.dumps({'result': str(len(sys.stdin.buffer.read()))}))"
    example = {"id": 1, "context": "x" * 3_000_000 + "\ud800"}
    assert claude(echo).process(example)["response"] == "3000001"


@pytest.mark.parametrize(
    ("document", "code", "said"),
    [
        ({**SUCCESS, "is_error": True, "result": "Credit balance is too low"}, 1, "Credit balance is too low"),
        ({**SUCCESS, "is_error": True, "result": "API Error: 529 overloaded"}, 0, "529 overloaded"),
        ({"subtype": "error_max_turns", "is_error": True, "errors": ["Reached 5 turns"]}, 1, "Reached 5 turns"),
        ({"subtype": "error_max_turns", "is_error": False, "num_turns": 5}, 0, "error_max_turns"),
        ({"subtype": "error_during_execution", "is_error": True}, 1, "error_during_execution"),
        ({**SUCCESS}, 2, "exit code 2"),
    ],
)
def test_an_error_that_it_reports(claude: Make, document: Any, code: int, said: str) -> None:
    with pytest.raises(SystemFailure, match=said):
        claude(prints(document, code)).process(EXAMPLE)


def test_what_it_says_on_stderr_is_told_when_it_fails(claude: Make) -> None:
    with pytest.raises(SystemFailure, match=r"exit code 3\): Invalid API key · run /login$"):
        claude("print('Invalid API key ·\\n run /login', file=sys.stderr); sys.exit(3)").process(EXAMPLE)
    with pytest.raises(SystemFailure, match="it said nothing"):
        claude("sys.exit(1)").process(EXAMPLE)


@pytest.mark.parametrize(
    "output", ["", "Hello!", "[]", "null", "5", "{}", '{"result": null}', '{"result": 5}', '{"result": "x"', "\\xff"]
)
def test_output_that_is_no_result(claude: Make, output: str) -> None:
    with pytest.raises(BadOutput, match="is not a result"):
        claude(f"print({output!r})").process(EXAMPLE)


@pytest.mark.parametrize("usage", [None, [], "x", {}, {"input_tokens": None}])
def test_strange_usage_does_not_cost_the_answer(claude: Make, usage: Any) -> None:
    assert claude(prints({**SUCCESS, "usage": usage})).process(EXAMPLE) == {
        **EXAMPLE,
        "response": "France",
        "metadata": {},
    }


FAMILY = (
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "open(os.environ['PIDS'], 'w').write(f'{os.getpid()} {child.pid}')\n"
)


def gone(identity: int) -> bool:
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{identity}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_a_timeout_ends_it_and_all_that_it_started(
    claude: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    before = time.monotonic()
    with pytest.raises(TimedOut, match="within 1 s"):
        claude(FAMILY + "time.sleep(60)", timeout=1).process(EXAMPLE)
    assert time.monotonic() - before < 30
    assert [gone(int(each)) for each in (tmp_path / "pids").read_text().split()] == [True, True]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_close_ends_what_is_under_way(claude: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    target = claude(FAMILY + "time.sleep(60)")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            target.process(EXAMPLE)
        except SystemFailure as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 5
    while not (tmp_path / "pids").exists() or not (tmp_path / "pids").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    target.finish()
    thread.join(5)
    assert not thread.is_alive()
    assert "exit code -9" in str(failures[0])


def test_a_program_that_does_not_read(claude: Make) -> None:
    result = claude(f"print({json.dumps(SUCCESS)!r})").process({**EXAMPLE, "context": "x" * 1_000_000})
    assert result["response"] == "France"


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="no program 'no-such-claude'"):
        ClaudeCLI(command="no-such-claude")
    with pytest.raises(UsageError, match="timeout"):
        ClaudeCLI(command=sys.executable, timeout=0)


def test_the_fingerprint_is_program_and_model() -> None:
    def made(**options: Any) -> str | None:
        return ClaudeCLI(**{"command": sys.executable, **options}).fingerprint

    assert made() == made(timeout=5, name="other")
    assert len({made(), made(model="a"), made(model="b"), made(command=os.path.realpath("/bin/sh"))}) == 4


ARGUMENTS = "sys.stdin.read()\nprint(json.dumps({'subtype': 'success', 'result': json.dumps(sys.argv[1:])}))"


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"max_turns": 3}, ["--max-turns", "3"]),
        ({"allowed_tools": "Bash,Read"}, ["--allowedTools", "Bash,Read"]),
        ({"allowed_tools": ["Bash", "Read"]}, ["--allowedTools", "Bash,Read"]),
        ({"allowed_tools": []}, []),
        ({"system_prompt": "Be brief."}, ["--system-prompt", "Be brief."]),
        ({"system_prompt": ""}, ["--system-prompt", ""]),
    ],
)
def test_flags_of_the_program(claude: Make, options: dict[str, Any], flags: list[str]) -> None:
    said = json.loads(claude(ARGUMENTS, **options).process(EXAMPLE)["response"])
    assert said == ["-p", "--output-format", "json", *flags]


def test_flags_make_answers_differ(claude: Make) -> None:
    plain = claude(ARGUMENTS).fingerprint
    others = [claude(ARGUMENTS, **flag).fingerprint for flag in ({"max_turns": 3}, {"max_turns": 4})]
    assert len({plain, *others}) == 3
    assert claude(ARGUMENTS, allowed_tools="A,B").fingerprint == claude(ARGUMENTS, allowed_tools=["A", "B"]).fingerprint


def test_a_prompt_of_ones_own(claude: Make) -> None:
    echo = "print(json.dumps({'subtype': 'success', 'result': sys.stdin.read()}))"
    made = claude(echo, build_prompt=lambda example: f"Q: {example['question']}").process(EXAMPLE)
    assert made["response"] == "Q: Where is Paris?"


def test_no_turns_at_all_is_a_mistake(claude: Make) -> None:
    with pytest.raises(UsageError, match="max_turns"):
        claude(ARGUMENTS, max_turns=0)


def test_a_run_counts_the_answer_alone(claude: Make) -> None:
    (row,) = evaluate(claude(prints(SUCCESS)), [EXAMPLE], progress=False).rows
    assert (row.response, row.output_tokens, row.metadata["output"]) == ("France", 1, "response")
    assert "answer_in_context" not in row.scores
