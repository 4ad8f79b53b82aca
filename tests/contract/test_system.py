"""What every system that runs in this process keeps to.

Runs for every registered system that can be made without arguments: install a plugin with an entry point
in `context_bench.systems`, and it is held to the same.
"""

from __future__ import annotations

import copy
import inspect
import json
from typing import Any

import pytest

from context_bench import System, evaluate
from context_bench.registry import registry

ELSEWHERE = {"openai-proxy", "anthropic-proxy", "claude-cli", "command"}
"""Systems that need a server or a program; their own tests start one."""

GOLD = {
    "answer": "Rome",
    "answers": ["Rome"],
    "relevant_ids": ["b"],
    "evidence": ["Bob lives in Rome."],
    "dataset": "d",
}
EXAMPLES: dict[str, dict[str, Any]] = {
    "prose": {"context": "Alice lives in Paris. Bob lives in Rome. Carol lives in Oslo.", "question": "Where is Bob?"},
    "json": {"context": json.dumps([{"name": "Bob", "city": "Rome", "n": 1.0}] * 20, indent=2), "question": "Bob?"},
    "code": {"context": "def f(x):\n    if x:\n        return  1\n    return 2\n" * 10},
    "empty": {"context": ""},
    "blank": {"context": " \n\t\n "},
    "one long word": {"context": "x" * 5000},
    "scripts": {"context": "東京は首都です。नमस्ते दुनिया। 🍕 e\u0301 \u200b\u202e <|endoftext|>", "question": "東京?"},
    "surrogate": {"context": "half \ud800 a pair. And more."},
    "documents": {
        "context": "Paris\n\nRome",
        "question": "Rome?",
        "documents": [{"id": "a", "text": "Paris", "title": "A"}, {"id": "b", "text": "Rome", "title": None}],
    },
    "conversation": {
        "context": "user: Where is Bob?",
        "turns": [{"role": "system", "content": "Bob is in Rome."}, {"role": "user", "content": "Where is Bob?"}],
    },
}


def _needs_nothing(component: Any) -> bool:
    parameters = inspect.signature(component).parameters.values()
    return all(
        each.default is not each.empty or each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in parameters
    )


NAMES = [
    name for name in registry.list("system") if name not in ELSEWHERE and _needs_nothing(registry.get("system", name))
]


@pytest.fixture(params=NAMES)
def system(request: pytest.FixtureRequest) -> Any:
    return registry.get("system", request.param)()


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"id": request.param, **EXAMPLES[request.param], **GOLD}


def test_it_has_a_name_and_processes(system: Any) -> None:
    assert isinstance(system, System)
    assert isinstance(system.name, str)
    assert system.name.strip()


def test_it_returns_an_answer_a_context_or_documents(system: Any, example: dict[str, Any]) -> None:
    result = system.process(copy.deepcopy(example))
    assert isinstance(result, dict | str)
    if isinstance(result, dict):
        assert result.keys() & {"response", "context", "documents"}
        assert all(isinstance(result[key], str) for key in ("response", "context") if result.get(key) is not None)
        assert all(isinstance(item, dict) for item in result.get("documents") or ())


def test_a_run_has_no_errors(system: Any, example: dict[str, Any]) -> None:
    (row,) = evaluate(system, [copy.deepcopy(example)], [], progress=False).rows
    assert row.error is None
    assert row.input_tokens >= 0
    assert row.output_tokens >= 0


def test_the_same_example_gives_the_same_result(system: Any, example: dict[str, Any]) -> None:
    again = type(system)()
    assert system.process(copy.deepcopy(example)) == again.process(copy.deepcopy(example))


def test_the_gold_makes_no_difference_unless_it_says_so(system: Any, example: dict[str, Any]) -> None:
    if getattr(system, "reads_gold", True) is not False:
        pytest.skip("it may look at the gold")
    without = {key: value for key, value in example.items() if key not in GOLD}
    first, second = system.process(copy.deepcopy(example)), system.process(copy.deepcopy(without))
    for key in ("response", "context", "documents"):
        assert first.get(key) == second.get(key)


def test_a_fingerprint_is_a_text_that_stays_the_same(system: Any) -> None:
    fingerprint = getattr(system, "fingerprint", None)
    if fingerprint is None:
        pytest.skip("it has none: its answers are kept by its source")
    assert isinstance(fingerprint, str)
    assert fingerprint == type(system)().fingerprint
    assert " at 0x" not in fingerprint
