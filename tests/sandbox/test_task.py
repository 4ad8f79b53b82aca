"""Examples read as tasks: which names the tests take from the program, and which they must not."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.errors import DataError
from context_bench.sandbox.verdict import Task, read_task

PROMPT = 'import math\n\ndef helper(x):\n    return x\n\ndef f(x):\n    """Doc."""\n'


def task(**example: Any) -> Task:
    read = read_task(example)
    assert read is not None
    return read


@pytest.mark.parametrize("example", [{}, {"test": ""}, {"test": " \n"}, {"test_list": []}, {"test_list": None}])
def test_no_tests(example: dict[str, Any]) -> None:
    assert read_task(example) is None


def test_the_form_of_human_eval() -> None:
    read = task(prompt=PROMPT, test="def check(candidate):\n    assert candidate(1) == 1\n", entry_point="f")
    assert (read.entry, read.check, read.names, read.prompt, read.helpers) == ("f", True, ("f",), PROMPT, "")


def test_the_code_may_be_in_the_context_beside_words_in_the_prompt() -> None:
    read = task(prompt="Complete f.", context=PROMPT, test="def check(c):\n    pass\n", entry_point="f")
    assert read.prompt == PROMPT


def test_helpers_of_the_prompt_belong_to_the_tests() -> None:
    read = task(prompt=PROMPT, test="def check(c):\n    assert c(1) == helper(1)\n", entry_point="f")
    assert read.names == ("f",)
    assert "def helper" in read.helpers


def test_the_form_of_mbpp() -> None:
    read = task(
        context="Write a function to add.",
        test_imports=["import math"],
        test_setup_code="root = Node(1)",
        test_list=["assert add(1) == math.ceil(1)", "assert set(add(root)) == set([2])"],
    )
    assert read.entry == "add"
    assert read.names == ("add", "Node")
    assert read.setup == "import math\nroot = Node(1)"
    assert (read.prompt, read.check, read.modules) == ("", False, ())


def test_plain_asserts_in_one_text() -> None:
    assert task(test="assert f(1) == 2\nassert f(2) == 3\n").entry == "f"


def test_builtins_are_the_tests_own_unless_nothing_else_is_called() -> None:
    assert task(test_list=["assert abs(f(1)) == len([1])"]).names == ("f",)
    assert task(test_list=["assert sum(10, 15) == 6"]).names == ("sum",)
    assert task(test_list=["assert sum(10, 15) == 6"], entry_point="total").names == ("total",)


def test_standard_modules_that_nobody_imports_are_the_tests_own() -> None:
    read = task(test_list=["assert f((1,)) == sys.getsizeof((1,))"])
    assert (read.names, read.modules) == (("f",), ("sys",))


def test_names_that_the_tests_bind_are_theirs() -> None:
    source = (
        "import re as r\ntry:\n    f(1)\nexcept ValueError as e:\n    x = [y for y in str(e)]\nr, x, y\nassert f(2)\n"
    )
    assert task(test=source, entry_point="f").names == ("f",)


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ({"test": "def check(c:"}, "not Python"),
        ({"test": "assert f(" + "(" * 500}, "not Python"),
        ({"test": "\0"}, "not Python"),
        ({"test": "def check(c):\n    assert c(1)\n"}, "no entry_point"),
        ({"test": "x = 1"}, "no entry_point"),
    ],
)
def test_tests_that_cannot_be_used(example: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_task(example)
