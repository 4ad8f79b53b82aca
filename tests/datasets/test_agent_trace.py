"""`agent-trace`: exact lengths and ages, whole pairs, one answer, the same bytes everywhere, the form of every API."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.cli import main
from context_bench.datasets.synthetic import agent_trace
from context_bench.errors import UsageError
from context_bench.evaluators import NextAction
from context_bench.utils.tokens import count_tokens, count_value
from context_bench.wire.forms import FORMS

Example = dict[str, Any]

DIGEST = "d9262200e635aa5f"


def make(**parameters: Any) -> list[Example]:
    return list(agent_trace(**{"length": 4000, "turns": 12, "n": 6, **parameters}))


def digest() -> str:
    """Hash some histories; also run by a second process."""
    examples = [*make(seed=7), *make(length=9000, turns=30, n=2, kind="logs")]
    return hashlib.sha256(json.dumps(examples, sort_keys=True).encode()).hexdigest()[:16]


def measure(example: Example) -> int:
    return sum(count_value(message, lambda text: count_tokens(text, "cl100k_base")) for message in example["turns"])


def list_results(example: Example) -> list[str]:
    return [message["content"] for message in example["turns"] if message["role"] == "tool"]


def list_calls(example: Example) -> list[tuple[str, str]]:
    calls = [call for message in example["turns"] for call in message.get("tool_calls", ())]
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


@pytest.mark.parametrize(
    ("length", "turns"), [(760, 2), (1300, 5), (4000, 12), (20_000, 12), (8000, 40), (60_000, 200)]
)
def test_length_is_within_two_percent_and_never_above(length: int, turns: int) -> None:
    for example in make(length=length, turns=turns, n=3 if turns < 100 else 1, seed=3):
        assert 0.98 * length <= measure(example) <= length
        assert len(list_results(example)) == turns


def test_what_is_too_short_or_too_old_is_refused() -> None:
    with pytest.raises(UsageError, match="length=2559 is too short to hold turns=12: use at least 2560 tokens"):
        agent_trace(length=2559, turns=12)
    for wrong in ({"age": 12}, {"age": 0}, {"turns": 1}, {"kind": "prose"}, {"n": -1}):
        with pytest.raises(UsageError):
            agent_trace(**{"turns": 12, **wrong})


@pytest.mark.parametrize("age", [None, 1, 5, 11])
def test_the_evidence_stands_in_the_result_of_that_age(age: int | None) -> None:
    examples = make(age=age)
    ages = [example["meta"]["age"] for example in examples]
    assert ages == ([11, 9, 7, 5, 3, 1] if age is None else [age] * 6)
    for example in examples:
        (place,) = example["evidence"]
        assert example["context"][place["start"] : place["end"]] == place["text"]
        holders = [index for index, text in enumerate(list_results(example)) if place["text"] in text]
        assert holders == [12 - example["meta"]["age"]]
        assert example["answer"] in place["text"]
        assert json.dumps(example["turns"]).count(example["answer"]) == 1
        before = count_tokens(example["context"][: place["start"]], "cl100k_base")
        assert example["meta"]["depth"] == pytest.approx(before / count_tokens(example["context"]), abs=0.01)


def test_a_history_ends_with_the_question() -> None:
    for example in make():
        system, task, *_, asked = example["turns"]
        assert [message["role"] for message in (system, task, asked)] == ["system", "user", "user"]
        assert asked["content"] == example["question"]
        assert example["framing" if "framing" in example else "dataset"] == "agent-trace"


def test_every_call_has_its_result_right_behind_it_and_is_on_offer() -> None:
    for example in make(turns=20):
        names = {tool["function"]["name"] for tool in example["tools"]}
        steps = example["turns"][2:-1]
        for said, result in zip(steps[::2], steps[1::2], strict=True):
            (call,) = said["tool_calls"]
            assert (result["role"], result["tool_call_id"]) == ("tool", call["id"])
            assert call["function"]["name"] in names
        assert len({message["tool_call_id"] for message in steps[1::2]}) == 20


def test_what_happens_on_the_way() -> None:
    for example in make(turns=12):
        calls, results = list_calls(example), list_results(example)
        repeated = [place for place, call in enumerate(calls) if call in calls[:place]]
        assert repeated
        assert all(results[place] == results[calls.index(calls[place])] for place in repeated)
        failed = [place for place, text in enumerate(results) if text.startswith("Error: there is no ")]
        assert failed
        for place in failed:
            name, arguments = calls[place]
            assert (name, arguments.replace("old_", "", 1)) in calls[place + 1 : place + 3]
        plans = [json.loads(arguments)["steps"] for name, arguments in calls if name == "update_plan"]
        assert [sum(step["status"] == "done" for step in plan) for plan in plans] == [0, 1]


def test_other_results_state_the_same_of_others() -> None:
    for example in make(length=12_000, kind="logs", age=6):
        (place,) = example["evidence"]
        start = " ".join(place["text"].split()[:3])
        others = [text for text in list_results(example) if start in text]
        assert others  # the wording does not give the place away


def test_the_same_bytes_in_every_process() -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; import test_agent_trace; print(test_agent_trace.digest())"
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    again = subprocess.run([sys.executable, "-c", code, *folders], env=env, capture_output=True, text=True, check=True)
    assert digest() == again.stdout.strip() == DIGEST


def test_seeds_and_parameters_make_other_histories_with_other_ids() -> None:
    more: list[dict[str, Any]] = [{"seed": 1}, {"turns": 13}, {"age": 3}, {"kind": "json"}, {"length": 4001}, {"n": 5}]
    sets = [make(), *(make(**parameters) for parameters in more)]
    ids = [example["id"] for each in sets for example in each]
    assert len(set(ids)) == len(ids)
    assert not {each["context"] for each in sets[0]} & {each["context"] for each in sets[1]}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_it_is_a_request_of_every_api(form: Any) -> None:
    for example in make(kind="code"):
        body = form.build_request("m", example["turns"], tools=example["tools"], max_tokens=9)
        prompt = form.read_prompt(body)
        assert any(example["evidence"][0]["text"] in text for text in prompt.texts())
        assert sorted(prompt.tool_names()) == sorted(tool["function"]["name"] for tool in example["tools"])
        called, answered = form.read_tool_ids(prompt.messages)
        assert called == answered
        assert len(called) == 12


# --- the gold


def test_the_next_action_is_the_call_or_its_value_in_words() -> None:
    (example,) = make(n=1)
    value, judge = example["answer"], NextAction().score

    def call(name: str, **arguments: str) -> Example:
        return {"response": "", "tool_calls": [{"function": {"name": name, "arguments": json.dumps(arguments)}}]}

    right = [call("submit_value", value=value), {"response": value}, {"response": f"It is {value}."}]
    right.append({"response": f'submit_value(value="{value}")'})
    wrong = [call("submit_value", value="1"), call("submit_value"), call("read_file", path=value), {"response": "1"}]
    wrong += [{"response": ""}, {"response": f"{value}7"}, {**call("submit_value", value="1"), "response": value}]
    assert [judge(example, reply) for reply in right] == [{"next_action": 1.0}] * len(right)
    assert [judge(example, reply) for reply in wrong] == [{"next_action": 0.0}] * len(wrong)
    assert judge({"id": 1, "answer": "x"}, {"response": "x"}) == {}


def test_controls_tell_whether_the_data_could_have_failed() -> None:
    """With the evidence in the newest result a cut of the oldest loses nothing; spread evenly, it does."""
    judged = {}
    for parameters in ("turns=3,length=940,n=150,age=1", "turns=6,length=1500,n=40"):
        systems = ["passthrough", "keep-last:turns=1"]
        result = evaluate(systems, f"agent-trace:{parameters}", progress=False)
        assert result.comparison is not None
        judged[parameters[:7]] = result.comparison.sensitivity["keep-last:turns=1"]
        rows = [row for row in result.rows if row.system == "keep-last:turns=1"]
        assert [row.scores["evidence_recall"] for row in rows] == [float(row.meta["age"] == 1) for row in rows]
    assert [each.word for each in judged.values()] == ["none", "shown"]
    assert "truncation (tail)" in judged["turns=3"].reason


def test_the_gold_self_test_finds_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["datasets", "check", "agent-trace:length=3000,turns=12,n=6"]) == 0
    assert "evidence stands after" in capsys.readouterr().out
