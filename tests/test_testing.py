"""`context_bench.testing`: every built-in part passes, and each broken rule is one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.errors import MissingExtra
from context_bench.registry import registry
from context_bench.testing import (
    ContractError,
    check_dataset,
    check_evaluator,
    check_metric,
    check_reporter,
    check_system,
)
from parts import list_makeable, make_part


@pytest.mark.parametrize("name", ["needle", "kv", "multi-needle", "tracking", "aggregate", "json-logs", "rerank"])
def test_a_dataset_that_ships(name: str) -> None:
    check_dataset(registry.get("dataset", name)(n=3))


@pytest.mark.parametrize("name", list_makeable("evaluator"))
def test_an_evaluator_that_ships(name: str) -> None:
    try:
        check_evaluator(make_part("evaluator", name))
    except MissingExtra as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("name", list_makeable("metric"))
def test_a_metric_that_ships(name: str) -> None:
    check_metric(make_part("metric", name))


@pytest.mark.parametrize("name", list_makeable("reporter"))
def test_a_reporter_that_ships(name: str) -> None:
    check_reporter(make_part("reporter", name))


def test_functions_are_parts_too() -> None:
    check_system(lambda example: example["context"][:10])
    check_dataset(lambda: [{"id": 1, "context": "c"}])
    check_evaluator(lambda original, processed: 1.0)
    check_reporter(lambda result: f"{len(result.rows)}\n")


# --- what a broken part is told


class Part:
    """A part of every kind, of which a test breaks one member."""

    name = "part"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"context": example["context"]}

    def score(self, original: Any, processed: Any) -> Any:
        return {"part": 1.0}

    def compute(self, rows: Any) -> Any:
        return {"part": 1.0}

    def render(self, result: Any) -> Any:
        return "text\n"


CHECKS = {"process": check_system, "score": check_evaluator, "compute": check_metric, "render": check_reporter}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_part_that_breaks_nothing_passes(check: Any) -> None:
    check(Part())


def _mutate(_: Any, given: Any, *__: Any) -> dict[str, Any]:
    given.clear()
    return {"context": "", "part": 1.0}


class _Counter:
    def __init__(self, value: Any) -> None:
        self._calls, self._value = 0, value

    def __call__(self, *_: Any) -> Any:
        self._calls += 1
        return self._value(self._calls)


def _fail(*_: Any) -> Any:
    raise ValueError("broken")


BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("process", {"process": _fail}, "a system must not fail on the example 'prose' (ValueError: broken)"),
    ("process", {"process": lambda *_: {}}, "a system must not fail on the example 'prose' (BadOutput"),
    ("process", {"process": None, "name": 3}, "a system must not raise in being taken as a system"),
    ("process", {"fingerprint": 3}, "a system must have a text as its `fingerprint`"),
    (
        "process",
        {"reads_gold": False, "process": lambda _, example: {"context": str(example.get("answer"))}},
        "a system must answer the same without the gold, as it declares `reads_gold = False`",
    ),
    ("score", {"score": _fail}, "an evaluator must not raise in score() (it raised ValueError: broken)"),
    ("score", {"score": lambda *_: 1.0}, "an evaluator must return a dict of numbers (it returned float)"),
    ("score", {"score": lambda *_: {"a": float("nan")}}, "an evaluator must return finite numbers (it returned"),
    ("score", {"score": lambda *_: {"a": "high"}}, "an evaluator must return finite numbers (it returned"),
    ("score", {"score_fields": ("x",)}, "an evaluator must declare every score in `score_fields` (missing: part)"),
    ("score", {"score": _mutate}, "an evaluator must leave the examples as they were"),
    (
        "score",
        {"score": _Counter(lambda calls: {"part": float(calls)})},
        "an evaluator must give the same scores for the same answer",
    ),
    ("compute", {"compute": _fail}, "a metric must not raise in compute() of rows (it raised ValueError: broken)"),
    ("compute", {"compute": lambda *_: 1.0}, "a metric must return a dict of numbers (it returned float)"),
    ("compute", {"compute": lambda *_: {"a": "b"}}, "a metric must return numbers"),
    ("compute", {"name": ""}, "a metric must have a text as its `name`"),
    ("compute", {"compute": _mutate}, "a metric must leave the rows as they were"),
    ("compute", {"columns": {"part": "%d%"}}, "a metric must have optional members that work ("),
    ("compute", {"columns": {"other": ".2f"}}, "a metric must return every number that it names in `columns`"),
    ("compute", {"start": lambda _: object()}, "a metric must have optional members that work ("),
    ("render", {"render": _fail}, "a reporter must not raise in render() of a result with no rows"),
    ("render", {"render": lambda *_: 3}, "a reporter must return a text (it returned int)"),
    ("render", {"render": lambda *_: "x"}, "a reporter must end its text with a line end"),
    ("render", {"render": lambda *_: "\ud800\n"}, "a reporter must return a text that can be written as UTF-8"),
    (
        "render",
        {"render": lambda _, result: result.rows.clear() or "x\n"},
        "a reporter must leave the result as it was",
    ),
]


@pytest.mark.parametrize(("kind", "members", "sentence"), BROKEN, ids=[each[2][:60] for each in BROKEN])
def test_a_broken_rule_is_one_sentence(kind: str, members: dict[str, Any], sentence: str) -> None:
    part = type("Broken", (Part,), members)()
    with pytest.raises(ContractError) as caught:
        CHECKS[kind](part)
    found = [each for each in caught.value.broken if each.startswith(sentence)]
    assert len(found) == 1, caught.value.broken
    assert isinstance(caught.value, AssertionError)
    assert "\n" not in found[0]


@pytest.mark.parametrize(
    ("dataset", "sentence"),
    [
        ([], "a dataset must give at least one example"),
        ("needle", "a dataset must give examples one by one"),
        (5, "a dataset must be an iterable of examples"),
        ([{"context": "no id"}], "a dataset must give usable examples (example 1: "),
        ([{"id": 1, "context": "a"}, {"id": 1, "context": "b"}], "a dataset must give usable examples (example 2: "),
        (lambda: _fail(), "a dataset must not raise in its loader"),
        ((_fail() for _ in [1]), "a dataset must not raise (it raised ValueError: broken after 0 examples)"),
    ],
)
def test_a_broken_dataset(dataset: Any, sentence: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_dataset(dataset)
    assert any(each.startswith(sentence) for each in caught.value.broken), caught.value.broken
