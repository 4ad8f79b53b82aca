"""What every evaluator keeps to.

Runs for every registered evaluator that can be made without arguments: install a plugin with an entry
point in `context_bench.evaluators`, and it is held to the same.
"""

from __future__ import annotations

import copy
import inspect
import math
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from context_bench import Evaluator
from context_bench.errors import MissingExtra
from parts import list_makeable, make_part

EXAMPLE: dict[str, Any] = {
    "id": 1,
    "context": "Alice lives in Paris. Bob lives in Rome. def add(a, b):\n",
    "question": "Where does Bob live?",
    "answer": "42",
    "answers": ["42", "forty-two"],
    "choices": ["41", "42"],
    "correct_letter": "B",
    "evidence": ["Bob lives in Rome."],
    "documents": [{"id": "a", "text": "Rome"}],
    "relevant_ids": ["a"],
    "test": "def check(c):\n    assert c(1, 2) == 3\n",
    "entry_point": "add",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{}],
    "prompt": "Write.",
}
RESPONSES: dict[str, Any] = {
    "right": "42",
    "wrong": "London",
    "empty": "",
    "none": None,
    "blank": " \n ",
    "long": "word " * 2000,
    "scripts": "東京 नमस्ते 🍕 \u202e \x00",
    "surrogate": "\ud800",
    "brackets": "\\boxed{" * 50 + "(((" * 50,
}


@pytest.fixture(params=list_makeable("evaluator"))
def name(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def evaluator(name: str) -> Any:
    return make_part("evaluator", name)


def _score(evaluator: Any, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
    try:
        scores: dict[str, float] = evaluator.score(original, processed)
    except MissingExtra as missing:
        pytest.skip(str(missing))
    return scores


def test_name_version_and_fields(name: str, evaluator: Any) -> None:
    assert isinstance(evaluator, Evaluator)
    assert evaluator.name == name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", evaluator.name)
    assert isinstance(evaluator.version, int)  # type: ignore[attr-defined]
    assert isinstance(evaluator.score_fields, tuple)  # type: ignore[attr-defined]
    assert evaluator.score_fields  # type: ignore[attr-defined]
    assert len(set(evaluator.score_fields)) == len(evaluator.score_fields)  # type: ignore[attr-defined]


@pytest.mark.parametrize("response", RESPONSES.values(), ids=RESPONSES)
def test_scores_are_declared_numbers_between_nought_and_one(evaluator: Any, response: Any) -> None:
    processed = {"response": response, "context": "Bob lives in Rome.", "documents": [{"id": "a", "text": "x"}]}
    scores = _score(evaluator, EXAMPLE, processed)
    assert set(scores) <= set(evaluator.score_fields)
    assert all(isinstance(value, float) and math.isfinite(value) for value in scores.values())
    assert all(0.0 <= value <= 1.0 for value in scores.values())
    if not scores:
        assert scores.reason  # type: ignore[attr-defined]


def test_a_missing_response_is_judged_without_an_exception(evaluator: Any) -> None:
    assert isinstance(_score(evaluator, EXAMPLE, {}), dict)


def test_nothing_to_judge_gives_no_score_and_a_reason(evaluator: Any) -> None:
    scores = _score(evaluator, {"id": 1, "context": "text"}, {"response": "text", "context": "text"})
    assert scores == {}
    assert isinstance(scores.reason, str)  # type: ignore[attr-defined]
    assert scores.reason  # type: ignore[attr-defined]


def test_inputs_are_left_as_they_were(evaluator: Any) -> None:
    original, processed = copy.deepcopy(EXAMPLE), {"response": "42", "context": "Rome"}
    _score(evaluator, original, processed)
    assert (original, processed) == (EXAMPLE, {"response": "42", "context": "Rome"})


def test_the_same_inputs_give_the_same_scores_from_several_threads(evaluator: Any) -> None:
    processed = {"response": "The answer is 42", "context": "Bob lives in Rome."}
    expected = _score(evaluator, EXAMPLE, processed)
    with ThreadPoolExecutor(4) as threads:
        everybody = list(threads.map(lambda _: _score(evaluator, EXAMPLE, processed), range(8)))
    assert everybody == [expected] * 8


def test_parameters_are_kept_as_attributes(evaluator: Any) -> None:
    for parameter in inspect.signature(type(evaluator)).parameters:
        assert hasattr(evaluator, parameter), f"{parameter!r} would be missing from the cache key"
