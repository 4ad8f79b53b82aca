"""Function calls in every notation against golds of the leaderboard's form; real golds where they are at hand."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import ToolCallMatch
from context_bench.evaluators.tool_call import ParsedCall, call_matches, read_calls

DATA = os.environ.get("CONTEXT_BENCH_DATA")
SCORER = ToolCallMatch()

WEATHER = [{"weather.get": {"city": ["Paris", "Paris, France"], "days": [3], "unit": ["celsius", ""]}}]
TWO = [{"add": {"a": [1], "b": [2.5]}}, {"add": {"a": [3], "b": [4.0]}}]


def match(truth: Any, response: Any = None, **processed: Any) -> float:
    return SCORER.score({"ground_truth": truth}, {"response": response, **processed})["tool_call_match"]


def openai_call(name: str, arguments: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


GOOD = '{"name": "weather.get", "arguments": {"city": "Paris", "days": 3}}'


@each_case(
    "response",
    [
        GOOD,
        f"[{GOOD}]",
        f"```json\n{GOOD}\n```",
        f"Sure! Here is the call:\n\n```json\n[{GOOD}]\n```\nLet me know.",
        f"I will call it: {GOOD} Done.",
        f"<tool_call>\n{GOOD}\n</tool_call>",
        f"[TOOL_CALLS] [{GOOD}]",
        f"<think>maybe weather.get(city='Rome')</think>{GOOD}",
        '{"name": "weather.get", "parameters": {"city": "Paris", "days": 3}}',
        '{"type": "function", "function": {"name": "weather_get", "arguments": {"city": "Paris", "days": 3}}}',
        '{"function": {"name": "weather_get", "arguments": "{\\"city\\": \\"Paris\\", \\"days\\": 3}"}}',
        '{"tool_calls": [{"function": {"name": "weather_get", "arguments": {"city": "Paris", "days": 3}}}]}',
        '{"weather.get": {"city": "Paris", "days": 3}}',
        '[{"weather_get": {"city": "Paris", "days": 3}}]',
        '<function=weather.get>{"city": "Paris", "days": 3}</function>',
        'weather.get(city="Paris", days=3)',
        "[weather.get(city='Paris', days=3)]",
        "weather_get(city='Paris', days=3, unit='Celsius')",
        "```python\nweather.get(city='Paris', days=3)\n```",
        "```tool_code\n[weather.get(city='Paris', days=3)]\n```",
        "The call is:\nweather.get(city='Paris', days=3)\nThat is all.",
        "Use [weather.get(city='Paris', days=3)] for this.",
        "weather.get(city='PARIS  france', days=3)",
        "weather.get(city='paris', days=3, unit='')",
    ],
)
def test_one_call_in_every_notation(response: str) -> None:
    assert match(WEATHER, response) == 1.0


@each_case(
    "response",
    [
        "",
        None,
        "I cannot help.",
        '{"name": "weather.get", "arguments": {"city": "Rome", "days": 3}}',
        '{"name": "weather.get", "arguments": {"city": "Paris"}}',
        '{"name": "weather.get", "arguments": {"city": "Paris", "days": 3, "hour": 4}}',
        '{"name": "weather.get", "arguments": {"city": "Paris", "days": "3"}}',
        '{"name": "weather.get", "arguments": {"city": "Paris", "days": 3.0}}',
        '{"name": "weather.get", "arguments": {"city": "Paris", "days": true}}',
        '{"name": "weather.get", "arguments": "not json"}',
        '{"name": "weather.set", "arguments": {"city": "Paris", "days": 3}}',
        "weather.get('Paris', 3)",
        "weather.get(**{'city': 'Paris', 'days': 3})",
        "weather.get(city='Paris', days=1+2)",
        "weather.get(city='Paris', days=3, unit='kelvin')",
        "[weather.get(city='Paris', days=3), weather.get(city='Paris', days=3)]",
        "weather.get(city='Paris', days=3",
    ],
)
def test_wrong_calls(response: str | None) -> None:
    assert match(WEATHER, response) == 0.0


def test_structured_calls_go_before_the_text() -> None:
    good = openai_call("weather_get", '{"city": "Paris", "days": 3}')
    assert match(WEATHER, "no call here", tool_calls=[good]) == 1.0
    assert match(WEATHER, GOOD, tool_calls=[openai_call("weather_get", "{}")]) == 0.0
    assert match(WEATHER, None, tool_calls=[openai_call("weather_get", {"city": "Paris", "days": 3})]) == 1.0
    assert match(WEATHER, None, tool_calls=[openai_call("weather_get", '{"city": "Par')]) == 0.0
    assert match(WEATHER, GOOD, tool_calls=[]) == 1.0


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("[add(a=1, b=2.5), add(a=3, b=4.0)]", 1.0),
        ("[add(a=3, b=4), add(a=1, b=2.5)]", 1.0),
        ("add(a=1, b=2.5)\nadd(a=3, b=4)", 1.0),
        ("add(a=1, b=2.5)", 0.0),
        ("[add(a=1, b=2.5), add(a=1, b=2.5)]", 0.0),
        ("[add(a=1, b=2.5), add(a=3, b=4), add(a=3, b=4)]", 0.0),
    ],
)
def test_parallel_calls_in_any_order(response: str, expected: float) -> None:
    assert match(TWO, response) == expected


def test_calls_are_paired_so_that_all_match() -> None:
    # The first call fits both golds, the second only the first gold: taking them in turn would fail.
    truth = [{"f": {"x": [1, 2]}}, {"f": {"x": [1]}}]
    assert match(truth, "[f(x=1), f(x=2)]") == 1.0


@each_case(
    ("given", "accepted", "expected"),
    [
        ("April 1, 2024", ["april 1 2024"], True),
        ("it's", ['it"s'], True),
        ("a+b", ["ab"], False),
        (5, [5.0], True),
        (5.0, [5], False),
        (True, [1], False),
        (1, [True], False),
        (None, [None], True),
        (None, ["x"], False),
        ([1, 2], [[1, 2]], True),
        ([1, 2], [[1.0, 2.0]], True),
        ([2, 1], [[1, 2]], False),
        ([1], [[1, 2]], False),
        (["New York"], [["new york"], ["NY"]], True),
        ([[1, 2], [3, 4]], [[[1, 2], [3, 4]]], True),
        ({"min": 3}, [{"min": [3], "max": [9, ""]}], True),
        ({"min": 3, "max": 8}, [{"min": [3], "max": [9, ""]}], False),
        ({"max": 9}, [{"min": [3], "max": [9, ""]}], False),
        ({"min": 3, "other": 1}, [{"min": [3]}], False),
        ([{"f": "AGE"}, {"f": "job"}], [[{"f": ["age"]}, {"f": ["job", "work"]}]], True),
        ({"in": {"x": 1}}, [{"in": [{"x": [1, 2]}]}], True),
        ("", ["", 5], True),
        ("{}", [{}], False),
    ],
)
def test_values(given: Any, accepted: list[Any], expected: bool) -> None:
    assert call_matches(ParsedCall("f", {"x": given}), ("f", {"x": accepted})) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f(x=-1.5)", -1.5),
        ("f(x=true)", True),
        ("f(x=None)", None),
        ("f(x=(1, 'a'))", [1, "a"]),
        ("f(x={'k': [1]})", {"k": [1]}),
        ("f(x=lambda x: x ** 2)", "lambda x: x ** 2"),
        ("f(x=df.column)", "df.column"),
        ("f(x=__import__('os').system('false'))", "__import__('os').system('false')"),
        ("f(x='multi\\nline')", "multi\nline"),
    ],
)
def test_python_is_read_and_never_run(source: str, expected: Any) -> None:
    assert read_calls({"response": source}, ()) == [ParsedCall("f", {"x": expected})]


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("I have no function for that.", 1.0),
        ("", 1.0),
        (None, 1.0),
        ("The area is 0.5 * base * height (25 square metres).", 1.0),
        ("```python\nimport math\nprint(math.sqrt(2))\n```", 1.0),
        ('The result is {"error": {"code": 3}} and [1, 2].', 1.0),
        ("Ask me (again) tomorrow.", 1.0),
        ("bmi(weight=70, height=1.8)", 0.0),
        ('{"name": "bmi", "arguments": {"weight": 70}}', 0.0),
        ('Well: ```json\n{"bmi": {"weight": 70}}\n```', 0.0),
        ("[other(x=1)]", 0.0),
    ],
)
def test_irrelevance_wants_no_call(response: str | None, expected: float) -> None:
    tools = [{"type": "function", "function": {"name": "bmi", "parameters": {}}}]
    for example in (
        {"ground_truth": [], "tools": tools},
        {"tools": tools, "meta": {"category": "irrelevance"}},
        {"tools": tools, "meta": {"category": "live_irrelevance"}},
    ):
        assert SCORER.score(example, {"response": response}) == {"tool_call_match": expected}


def test_relevance_wants_any_call() -> None:
    example = {"meta": {"category": "live_relevance"}, "tools": [{"name": "bmi"}]}
    assert SCORER.score(example, {"response": "bmi(weight=1)"}) == {"tool_call_match": 1.0}
    assert SCORER.score(example, {"response": "No."}) == {"tool_call_match": 0.0}


def test_a_required_parameter_must_be_there_even_if_the_gold_lets_it_go() -> None:
    function = {"name": "f", "parameters": {"type": "dict", "properties": {}, "required": ["x"]}}
    example = {"ground_truth": [{"f": {"x": [1, ""], "y": [2, ""]}}], "tools": [{"function": function}]}
    assert SCORER.score(example, {"response": "f(x=1)"}) == {"tool_call_match": 1.0}
    assert SCORER.score(example, {"response": "f(y=2)"}) == {"tool_call_match": 0.0}


def test_plain_golds_have_one_value_each() -> None:
    truth = [{"name": "find", "arguments": {"ids": [1, 2], "where": {"city": "Rome"}}}]
    assert match(truth, "find(ids=[1, 2], where={'city': 'rome'})") == 1.0
    assert match(truth, "find(ids=1, where={'city': 'rome'})") == 0.0
    assert match(truth, "find(ids=[1, 2], where={'city': 'Oslo'})") == 0.0


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        ({}, "no ground_truth"),
        ({"ground_truth": "f(x=1)"}, "ground_truth is not in a known form"),
        ({"ground_truth": ["f(x=1)"]}, "ground_truth is not in a known form"),
        ({"ground_truth": [{"f": [1]}]}, "ground_truth is not in a known form"),
    ],
)
def test_what_cannot_be_judged_has_a_reason(example: dict[str, Any], reason: str) -> None:
    scores = SCORER.score(example, {"response": "f(x=1)"})
    assert scores == {}
    assert scores.reason == reason  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "response",
    [
        "[" * 50_000,
        "{" * 50_000,
        '{"a":' * 20_000,
        "f(" * 20_000,
        "f(x=" + "(" * 5_000,
        "f(x=1)\n" * 5_000,
        "```" * 50_000,
    ],
)
def test_hostile_responses_end_quickly(response: str) -> None:
    start = time.process_time()
    assert match(WEATHER, response) == 0.0
    assert time.process_time() - start < 3


# ---- real golds ------------------------------------------------------------------------------------------------------

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple")


def records() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for category in CATEGORIES:
        path = Path(str(DATA)) / "bfcl" / "possible_answer" / f"BFCL_v4_{category}.json"
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            yield record["id"], record["ground_truth"]


def first_choice(accepted: Any) -> Any:
    """The first accepted value, objects filled in likewise."""
    value = next(item for item in accepted if item != "")
    return filled(value)


def filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: first_choice(accepted) for key, accepted in value.items() if "" not in accepted}
    return [filled(item) for item in value] if isinstance(value, list) else value


def calls_of(truth: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (name, {key: first_choice(accepted) for key, accepted in parameters.items() if "" not in accepted})
        for call in truth
        for name, parameters in call.items()
    ]


def notations(calls: list[tuple[str, dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    underscored = [openai_call(name.replace(".", "_"), json.dumps(given)) for name, given in calls]
    written = [f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})" for name, given in calls]
    yield {"tool_calls": underscored, "response": None}
    yield {"response": json.dumps([{"name": name, "arguments": given} for name, given in calls])}
    yield {"response": f"[{', '.join(written)}]"}


def wrong(value: Any) -> Any:
    return {"wrong": 1} if isinstance(value, dict) else ["wrong"] if isinstance(value, list) else "zz wrong zz"


@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_real_golds_match_in_all_notations_and_changed_ones_do_not() -> None:
    seen = 0
    for identity, truth in records():
        seen += 1
        example, calls = {"ground_truth": truth}, calls_of(truth)
        for processed in notations(calls):
            assert SCORER.score(example, processed) == {"tool_call_match": 1.0}, (identity, processed)
        for processed in notations(calls[::-1]):
            assert SCORER.score(example, processed) == {"tool_call_match": 1.0}, (identity, processed)
        for processed in notations(calls[1:]):
            assert SCORER.score(example, processed) == {"tool_call_match": 0.0}, identity
        changed = copy.deepcopy(calls)
        key = next(iter(changed[0][1]), None)
        if key is None:
            continue
        changed[0][1][key] = wrong(changed[0][1][key])
        for processed in notations(changed):
            assert SCORER.score(example, processed) == {"tool_call_match": 0.0}, (identity, processed)
    assert seen == 1000
