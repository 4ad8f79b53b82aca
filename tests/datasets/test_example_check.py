"""What every example must have, and the copy that a system may change."""

from __future__ import annotations

import tracemalloc
from collections import UserDict
from typing import Any

import pytest

from banks import each_case
from context_bench.datasets.example_check import ExampleCheck, copy_example
from context_bench.errors import DataError


def check(*examples: Any, tag: str = "") -> None:
    checked = ExampleCheck()
    for number, example in enumerate(examples, 1):
        checked(example, f"row {number}", tag)


@pytest.mark.parametrize(
    "example",
    [
        {"id": 1, "context": ""},
        {"id": "", "context": "x"},
        {"id": -5, "context": "x"},
        {"id": 2**80, "context": "x"},
        {"id": "\ud800", "context": "\ud800"},
        {"id": 1, "context": "x", "answers": None, "turns": None, "tools": [], "choices": ("a", "b")},
        {"id": 1, "context": "x", "turns": [{"role": "user", "content": "hi"}]},
        {"id": 1, "context": "x", "documents": [{"id": 1, "text": "x"}]},
        {"id": 1, "context": "x", "anything": object()},
        UserDict({"id": 1, "context": "x"}),
        {"id": 1, "turns": [{"role": "user", "content": "hi"}]},
    ],
)
def test_what_can_be_used(example: Any) -> None:
    check(example)


@each_case(
    ("example", "said"),
    [
        (None, "row 1: an example must be an object with fields (got null)"),
        ([], "(got a list)"),
        ("text", "(got text)"),
        (7, "(got a int)"),
        ({}, "no 'id'; every example needs 'id' and 'context', and this one has no fields at all"),
        ({"key": 1, "text": "x"}, "this one has key, text"),
        ({"id": 1, "question": "?", "turns": []}, "no 'context'"),
        ({"id": 1, "turns": [{"role": "user", "content": "a"}], "context": None}, "'context' must be text"),
        ({"id": 1}, "no 'context'"),
        ({"context": "x"}, "no 'id'"),
        ({"id": None, "context": "x"}, "'id' must be text or a whole number (got null)"),
        ({"id": True, "context": "x"}, "'id' must be text or a whole number (got true or false)"),
        ({"id": 1.0, "context": "x"}, "'id' must be text or a whole number (got a float)"),
        ({"id": [1], "context": "x"}, "'id' must be text or a whole number (got a list)"),
        ({"id": 1, "context": None}, "'context' must be text (got null)"),
        ({"id": 1, "context": ["x"]}, "'context' must be text (got a list)"),
        ({"id": 1, "context": "x", "answers": "a"}, "'answers' must be a list (got text)"),
        ({"id": 1, "context": "x", "choices": {"A": "a"}}, "'choices' must be a list (got an object)"),
        ({"id": 1, "context": "x", "turns": "hi"}, "'turns' must be a list"),
        ({"id": 1, "context": "x", "turns": ["hi"]}, "each of the 'turns'"),
        ({"id": 1, "context": "x", "turns": [{"content": "hi"}]}, "each of the 'turns'"),
        ({"id": 1, "context": "x", "documents": ["text"]}, "each of the 'documents'"),
        ({"id": 1, "context": "x", "documents": [{"id": 1}]}, "each of the 'documents'"),
    ],
)
def test_what_cannot_is_said_in_one_sentence(example: Any, said: str) -> None:
    with pytest.raises(DataError) as caught:
        check(example)
    assert said in str(caught.value)
    assert str(caught.value).startswith("row 1: ")
    assert "\n" not in str(caught.value)


def test_an_id_comes_once_in_a_dataset() -> None:
    with pytest.raises(DataError, match="row 3: duplicate id 'a'"):
        check({"id": "a", "context": ""}, {"id": "b", "context": ""}, {"id": "a", "context": "other"})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"id": 1}, {"id": "1"}),
        ({"id": "a"}, {"id": "A"}),
        ({"id": "a"}, {"id": "a "}),
        ({"id": 1, "dataset": "x"}, {"id": 1, "dataset": "y"}),
        ({"id": "b", "dataset": "a"}, {"id": "ab", "dataset": ""}),
        ({"id": "\ud800"}, {"id": "\ud801"}),
    ],
)
def test_ids_that_only_look_alike(first: dict[str, Any], second: dict[str, Any]) -> None:
    check({"context": "", **first}, {"context": "", **second})


def test_the_tag_of_a_file_stands_for_a_missing_one() -> None:
    with pytest.raises(DataError, match="duplicate"):
        check({"id": 1, "context": ""}, {"id": 1, "context": "", "dataset": "tag"}, tag="tag")


def test_many_ids_cost_little_memory() -> None:
    checked = ExampleCheck()
    tracemalloc.start()
    try:
        for number in range(20_000):
            checked({"id": f"{number:0200}", "context": ""}, "row")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20_000 * 200  # less than the ids themselves


def test_a_copy_shares_nothing_that_can_change() -> None:
    class Box:
        def __init__(self) -> None:
            self.items = [1]

    original = {"id": 1, "list": [[1], {"a": [2]}], "set": {3}, "tuple": ([4],), "box": Box(), "text": "x"}
    copy = copy_example(original)
    assert copy is not original
    copy["list"][0].append(9)
    copy["list"][1]["a"].append(9)
    copy["set"].add(9)
    copy["tuple"][0].append(9)
    copy["box"].items.append(9)
    assert original["list"] == [[1], {"a": [2]}]
    assert original["set"] == {3}
    assert original["tuple"] == ([4],)
    assert original["box"].items == [1]  # type: ignore[attr-defined]
