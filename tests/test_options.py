"""Every argument of `evaluate()` of a wrong type is refused in one sentence, before any call."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench import Limits, Price, Prices, evaluate
from context_bench.config import EvaluateOptions
from context_bench.errors import ContextBenchError, UsageError

EXAMPLES = [{"id": 1, "context": "one two", "answer": "one"}]

WRONG: dict[str, tuple[list[Any], str]] = {
    "max_examples": (["q", [5], 1.5, True, -1], "must be an integer of at least 0"),
    "progress": ([5, "no", [5], 1.5, {}], "must be True or False"),
    "text_fields": ([5, "context", [5], True, {"context": 1}], "must be a list of field names"),
    "max_workers": ([0, "q", [5], 1.5, True, -1], "must be an integer of at least 1"),
    "cache_dir": ([5, [5], 1.5, {}, True], "must be the path of a folder"),
    "repeats": ([0, "q", [5], None, True, -1], "must be an integer of at least 1"),
    "keep_rows": ([5, "no", [5]], "must be True or False"),
    "store": ([5, "folder", [5], True], "must be an open Store (for a folder, use cache_dir)"),
    "reuse": (["no", 2], "must be True or False"),
    "cache_tag": ([5, [5], "", True], "must be a text"),
    "limits": ([5, "q", [5], {"max_errors": "5"}, True], "must be Limits, such as Limits(max_errors='5')"),
    "prices": ([5, "prices.json", {"m": 1}, True], "must be Prices, such as Prices.from_file('prices.json')"),
    "config": ([5, "q", [5], True], "must be a dict"),
    "score_field": ([5, [5], {}, True, ""], "must be a text"),
    "threshold": (["0.7", [5], {}, True], "must be a number"),
    "keep_reasoning": (["no", 5], "must be True or False"),
    "preflight": (["no", 5], "must be True or False"),
    "debug": (["no", 5], "must be True or False"),
    "baseline": ([5, [5], True], "must be the name of a system"),
    "margin": (["0.02", [5], {}, True], "must be a number"),
    "aa": (["no", 5], "must be True or False"),
    "stop_when_decided": (["no", 5], "must be True or False"),
    "fixed_groups": (["no", 5], "must be True or False"),
    "seed": (["q", 1.5, True, [5]], "must be an integer"),
}
BUILT_ELSEWHERE = {"systems", "dataset", "evaluators", "metrics", "tokenizer", "engine"}


def _never(example: Mapping[str, Any]) -> str:
    raise AssertionError("nothing may be called")


@each_case(("name", "value"), [(name, value) for name, (values, _) in WRONG.items() for value in values], ids=repr)
def test_a_wrong_type_is_one_sentence(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"progress": False, name: value}
    with pytest.raises(UsageError) as caught:
        evaluate(_never, EXAMPLES, **arguments)
    assert str(caught.value) == f"{name} {WRONG[name][1]} (got {value!r})"


def test_every_argument_has_a_rule_or_is_built_elsewhere() -> None:
    assert set(inspect.signature(evaluate).parameters) == set(WRONG) | BUILT_ELSEWHERE


@each_case("name", sorted(BUILT_ELSEWHERE))
@each_case("value", [5, 1.5, object(), [5], True], ids=lambda value: type(value).__name__)
def test_parts_of_a_wrong_type_are_refused_where_they_are_built(name: str, value: Any) -> None:
    arguments: dict[str, Any] = {"systems": _never, "dataset": EXAMPLES, "progress": False, name: value}
    with pytest.raises(ContextBenchError) as caught:
        evaluate(**arguments)
    assert "\n" not in str(caught.value)


def test_values_that_are_long_or_cannot_be_shown_are_named_by_their_type() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise ValueError

    for value, shown in ((Shy(), "a Shy"), (list(range(100)), "a list")):
        with pytest.raises(UsageError, match=rf"^config must be a dict \(got {shown}\)$"):
            evaluate(_never, EXAMPLES, config=value)  # type: ignore[arg-type]


def test_right_types_pass(tmp_path: Path) -> None:
    given = {name: parameter.default for name, parameter in inspect.signature(evaluate).parameters.items()}
    EvaluateOptions(**given).check()
    limits, prices = Limits(max_errors="5"), Prices({"m": Price(1.0, 2.0)})
    more = {"cache_dir": tmp_path, "limits": limits, "prices": prices, "config": {}, "text_fields": ("context",)}
    EvaluateOptions(**{**given, **more, "margin": 0.1, "threshold": 1, "max_examples": 0, "progress": 0}).check()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"max_errors": 5}, "max_errors must be a number of errors ('20') or a share of the rows ('10%') (got 5)"),
        ({"max_cost": "2"}, "max_cost must be a number of at least 0 (got '2')"),
        ({"max_cost": -1.0}, "max_cost must be a number of at least 0 (got -1.0)"),
        ({"max_total_tokens": True}, "max_total_tokens must be a number of at least 0 (got True)"),
    ],
)
def test_limits_of_a_wrong_type(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        Limits(**given)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Price("1", 2.0), "input must be a number of dollars of at least 0 (got '1')"),  # type: ignore[arg-type]
        (lambda: Price(1.0, -2.0), "output must be a number of dollars of at least 0 (got -2.0)"),
        (lambda: Prices({"m": 5}), "the price of 'm' must be a Price (got 5)"),  # type: ignore[dict-item]
        (lambda: Prices(5), "prices must be a dict of names and Price (got 5)"),  # type: ignore[arg-type]
    ],
)
def test_prices_of_a_wrong_type(make: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert str(caught.value) == sentence


# --- asynchronous methods under the name of plain ones, and the other way round


class Part:
    name = "part"

    def process(self, example: Any) -> Any:
        return {"context": example["context"]}

    def score(self, original: Any, processed: Any) -> Any:
        return {"part": 1.0}

    def compute(self, rows: Any) -> Any:
        return {"part": 1.0}


async def _asynchronous(*_: Any) -> Any:
    return {"context": "", "part": 1.0}


def _run(**members: Any) -> Any:
    part = type("Odd", (Part,), members)()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also of a coroutine that nobody awaits
        return evaluate(part, EXAMPLES, [part], [part], progress=False)


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ("process", "process() of a Odd must not be `async def`: name it aprocess(), and add a plain process()"),
        (
            "process_conversation",
            "process_conversation() of a Odd must not be `async def`: name it aprocess_conversation(), and add a plain "
            "process_conversation()",
        ),
        ("score", "score() of a Odd must not be `async def`: name it ascore(), and add a plain score()"),
        ("compute", "compute() of a Odd must not be `async def`"),
    ],
)
def test_an_async_method_under_a_plain_name_is_refused_before_the_run(members: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        _run(**{members: _asynchronous})
    assert str(caught.value) == sentence


def test_an_async_function_is_no_evaluator() -> None:
    with pytest.raises(UsageError, match=r"the function _asynchronous\(\) must not be `async def`"):
        evaluate(Part(), EXAMPLES, [_asynchronous], progress=False)


def test_a_coroutine_that_a_plain_method_returns_is_an_error_without_a_stray_warning() -> None:
    (row,) = _run(process=lambda _, example: _asynchronous(example)).rows
    assert row.error == "BadOutput: part returned a coroutine: return a dict, or a text that is the new context"


def test_aprocess_that_is_not_asynchronous_is_named() -> None:
    (row,) = _run(aprocess=lambda _, example: {"context": ""}).rows
    assert (
        row.error == "BadOutput: aprocess() of part must be `async def` (it returned a dict, which cannot be awaited)"
    )


def test_ascore_that_is_not_asynchronous_is_named() -> None:
    (row,) = _run(ascore=lambda *_: {"part": 1.0}).rows
    assert "ascore() of part must be `async def` (it returned a dict" in row.unscored["part"]
