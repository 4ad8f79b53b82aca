"""`context_bench.testing`: every built-in part passes, and each broken rule is one sentence."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from banks import each_case
from context_bench import types
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
from context_bench.testing.contract import MEMBERS
from parts import list_makeable, make_part


@pytest.mark.parametrize("name", ["needle", "kv", "multi-needle", "tracking", "aggregate", "json-logs", "rerank"])
def test_a_dataset_that_ships(name: str) -> None:
    check_dataset(registry.get("dataset", name)(n=3))


@each_case("name", list_makeable("evaluator"))
def test_an_evaluator_that_ships(name: str) -> None:
    try:
        check_evaluator(make_part("evaluator", name))
    except MissingExtra as missing:
        pytest.skip(str(missing))


@each_case("name", list_makeable("metric"))
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


def _fail_on_result(_: Any, result: Any) -> Any:
    raise ValueError("broken")


BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("process", {"process": _fail}, "a system must not fail on the example 'prose' (ValueError: broken)"),
    ("process", {"process": lambda *_: {}}, "a system must not fail on the example 'prose' (BadOutput"),
    ("process", {"process": None, "name": 3}, "a system must not raise in being taken as a system"),
    ("process", {"fingerprint": 3}, "a system must have a text or None as its `fingerprint` (got 3)"),
    (
        "process",
        {"reads_gold": False, "process": lambda _, example: {"context": str(example.get("answer"))}},
        "a system must answer the same without the gold, because it declares `reads_gold = False`",
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
    ("compute", {"columns": {"part": "%d%"}}, "a metric must keep the contract of its optional members ("),
    ("compute", {"columns": {"other": ".2f"}}, "a metric must return every number that it names in `columns`"),
    ("compute", {"start": lambda _: object()}, "a metric must keep the contract of its optional members ("),
    ("render", {"render": _fail}, "a reporter must not raise in render() of a result with no rows"),
    ("render", {"render": lambda *_: 3}, "a reporter must return a text (it returned int)"),
    ("render", {"render": lambda *_: "x"}, "a reporter must end its text with a line end"),
    ("render", {"render": lambda *_: "\ud800\n"}, "a reporter must return a text that can be written as UTF-8"),
    (
        "render",
        {"render": lambda _, result: result.rows.clear() or "x\n"},
        "a reporter must leave the result as it was",
    ),
    ("render", {"render_parts": _fail_on_result}, "a reporter must not raise in render_parts() (it raised ValueError"),
    (
        "render",
        {"render_parts": lambda _, result: ["te", "xt"]},
        "a reporter must return the same text from render_parts() as from render()",
    ),
]


@each_case(("kind", "members", "sentence"), BROKEN, ids=[each[2][:60] for each in BROKEN])
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
        ([], "a dataset must yield at least one example"),
        ("needle", "a dataset must yield examples one by one"),
        (5, "a dataset must be an iterable of examples"),
        ([{"context": "no id"}], "a dataset must yield usable examples (example 1: "),
        ([{"id": 1, "context": "a"}, {"id": 1, "context": "b"}], "a dataset must yield usable examples (example 2: "),
        (lambda: _fail(), "a dataset must not raise in its loader"),
        ((_fail() for _ in [1]), "a dataset must not raise (it raised ValueError: broken after 0 examples)"),
    ],
)
def test_a_broken_dataset(dataset: Any, sentence: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_dataset(dataset)
    assert any(each.startswith(sentence) for each in caught.value.broken), caught.value.broken


# --- optional members


async def _prepare(_: Any) -> None:
    return None


def _plain(_: Any) -> None:
    return None


def _needs_more(_: Any, more: Any) -> None:
    return None


async def _prepare_more(_: Any, more: Any) -> None:
    return None


ILL_TYPED: list[tuple[str, str, Any, str]] = [
    ("process", "fingerprint", 5, "a text or None as its `fingerprint` (got 5)"),
    ("process", "reads_gold", "no", "True or False as its `reads_gold` (got 'no')"),
    ("process", "sends_elsewhere", 1, "True or False as its `sends_elsewhere` (got 1)"),
    ("process", "model", 4, "a text or None as its `model` (got 4)"),
    (
        "process",
        "resources",
        {"num_gpus": "1"},
        "a dict of names and numbers as its `resources` (got {'num_gpus': '1'})",
    ),
    ("process", "aprocess", "x", "a method as its `aprocess` (got 'x')"),
    ("process", "process_conversation", 1, "a method as its `process_conversation` (got 1)"),
    ("process", "aprocess_conversation", 1, "a method as its `aprocess_conversation` (got 1)"),
    ("process", "prepare", _plain, "an `async def` method without arguments as its `prepare` (got a `def`)"),
    (
        "process",
        "prepare",
        _prepare_more,
        "an `async def` method without arguments as its `prepare` (got an `async def` that needs arguments)",
    ),
    (
        "process",
        "finish",
        _needs_more,
        "a method without arguments as its `finish` (got a `def` that needs arguments)",
    ),
    ("process", "model", property(_fail), "a text or None as its `model` (it raised ValueError: broken)"),
    ("score", "score_fields", "part", "a tuple of texts as its `score_fields` (got 'part')"),
    ("score", "score_fields", (1,), "a tuple of texts as its `score_fields` (got (1,))"),
    ("score", "slow", 1, "True or False as its `slow` (got 1)"),
    ("score", "needs_answer", "yes", "True or False as its `needs_answer` (got 'yes')"),
    ("score", "version", [1], "a number or a text as its `version` (got [1])"),
    ("score", "fingerprint", 5, "a text or None as its `fingerprint` (got 5)"),
    ("score", "prepare", _plain, "an `async def` method without arguments as its `prepare` (got a `def`)"),
    ("score", "finish", "x", "a method without arguments as its `finish` (got 'x')"),
    ("score", "ascore", 1, "a method as its `ascore` (got 1)"),
    ("compute", "columns", ["part"], "a dict of keys and formats as its `columns` (got ['part'])"),
    ("compute", "columns", {"part": 2}, "a dict of keys and formats as its `columns` (got {'part': 2})"),
    ("compute", "threshold", "0.7", "a number or None as its `threshold` (got '0.7')"),
    ("compute", "score_field", 5, "a text or None as its `score_field` (got 5)"),
    ("compute", "keys", "part", "a tuple of texts as its `keys` (got 'part')"),
    ("compute", "by_dataset", "part", "a tuple of texts as its `by_dataset` (got 'part')"),
    (
        "process",
        "resources",
        {"num_gpus": "1"},
        "a dict of names and numbers as its `resources` (got {'num_gpus': '1'})",
    ),
    ("process", "resources", 4, "a dict of names and numbers as its `resources` (got 4)"),
    ("render", "render_parts", "x", "a method that takes only the result as its `render_parts` (got 'x')"),
    (
        "render",
        "render_parts",
        _plain,
        "a method that takes only the result as its `render_parts` (got a `def`)",
    ),
    ("compute", "start", _needs_more, "a method without arguments as its `start` (got a `def` that needs arguments)"),
]


@each_case(("kind", "name", "value", "rule"), ILL_TYPED, ids=[f"{each[1]}-{each[3]}" for each in ILL_TYPED])
def test_an_optional_member_of_another_type_is_named(kind: str, name: str, value: Any, rule: str) -> None:
    with pytest.raises(ContractError) as caught:
        CHECKS[kind](type("Odd", (Part,), {name: value})())
    found = [each for each in caught.value.broken if f"`{name}`" in each]
    assert [each.partition(" must have ")[2] for each in found] == [rule]


def test_optional_members_of_the_right_types_pass() -> None:
    async def score(_: Any, original: Any, processed: Any) -> Any:
        return {"part": 1.0}

    ends = {"prepare": _prepare, "finish": _plain, "fingerprint": "1"}
    check_system(type("S", (Part,), {**ends, "reads_gold": False, "sends_elsewhere": True, "model": "m"})())
    check_system(type("S", (Part,), {"resources": {"num_gpus": 0.5}})())
    members = {
        **ends,
        "score_fields": ("part",),
        "slow": True,
        "needs_answer": False,
        "version": 2,
        "ascore": score,
    }
    check_evaluator(type("E", (Part,), {**members, "needs_context": True})())
    check_metric(type("M", (Part,), {"columns": {"part": ".2f"}, "threshold": 0.5, "score_field": "part"})())
    check_system(type("G", (Part,), {"resources": {"num_gpus": 1, "num_cpus": 0.5}})())
    check_reporter(type("R", (Part,), {"render_parts": lambda *_: iter(["te", "xt\n"])})())


def test_the_members_that_are_checked_are_those_that_are_documented() -> None:
    for protocol in (types.System, types.Dataset, types.Evaluator, types.Metric, types.Tally, types.Reporter):
        optional = (inspect.getdoc(protocol) or "").partition("Optional members:")[2]
        documented = re.findall(r"^ {4}(\w+)(?:\(.*?\))?: ", optional, flags=re.MULTILINE)
        assert list(MEMBERS[protocol.__name__]) == documented, protocol


def test_a_tally_with_an_odd_member() -> None:
    class Tally:
        notes = "a sentence"

        def add(self, row: Any) -> None:
            return None

        def result(self) -> dict[str, float]:
            return {"part": 1.0}

    with pytest.raises(ContractError, match="a metric must have a method without arguments as its `notes`"):
        check_metric(type("M", (Part,), {"start": lambda _: Tally()})())


def _ascore(value: Any) -> Any:
    async def ascore(_: Any, original: Any, processed: Any) -> Any:
        return value(original) if callable(value) else value

    return ascore


@pytest.mark.parametrize(
    ("ascore", "sentence"),
    [
        (_ascore({"part": 0.5}), "an evaluator must return the same scores from ascore() as from score()"),
        (_ascore(1.0), "an evaluator must return a dict of numbers (it returned float)"),
        (_ascore({"part": float("inf")}), "an evaluator must return finite numbers (it returned {'part': inf})"),
        (_ascore({"other": 1.0}), "an evaluator must declare every score in `score_fields` (missing: other)"),
        (_ascore(_fail), "an evaluator must not raise in ascore() (it raised ValueError: broken)"),
        (
            _ascore(lambda original: original.clear() or {"part": 1.0}),
            "an evaluator must leave the examples as they were",
        ),
        (
            lambda *_: {"part": 1.0},
            "an evaluator must not raise in ascore() (it raised BadOutput: ascore() of part must be `async def` "
            "(it returned a dict, which cannot be awaited))",
        ),
    ],
)
def test_ascore_is_held_to_the_same(ascore: Any, sentence: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_evaluator(type("Odd", (Part,), {"ascore": ascore, "score_fields": ("part",)})())
    assert sentence in caught.value.broken


def test_a_system_whose_aprocess_is_not_awaitable() -> None:
    with pytest.raises(ContractError, match=r"aprocess\(\) of part must be `async def` \(it returned a dict"):
        check_system(type("Odd", (Part,), {"aprocess": lambda *_: {"context": ""}})())
