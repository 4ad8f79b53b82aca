"""Answers that are given item by item, against golds of several parts."""

from __future__ import annotations

import pytest

from context_bench.evaluators import MathEquivalence
from context_bench.evaluators.math.parts import read_parts


@pytest.mark.parametrize(
    ("gold", "reply", "right"),
    [
        ("4, 9", "(a) The smaller is **4**.\n(b) The larger is **9**.", True),
        ("4, 9", "(a) The smaller is **4**.\n(b) The larger is **8**.", False),
        ("4, 9", "1. $\\boxed{4}$\n\n2. $\\boxed{9}$", True),
        ("(3,-4)", "The solution is:\n- $x = 3$\n- $y = -4$", True),
        ("(3,-4)", "The solution is:\n- $x = 3$\n- $y = 4$", False),
        ("9", "(a) 4\n(b) 9", True),
    ],
)
def test_items_are_the_parts_of_an_answer(gold: str, reply: str, right: bool) -> None:
    assert MathEquivalence().score({"answer": gold}, {"response": reply}) == {"math_equiv": float(right)}


def test_as_many_items_as_parts_or_none() -> None:
    assert read_parts("- 1\n- 2\n- 3", 3) == ["1", "2", "3"]
    assert read_parts("- 1\n- 2\n- 3", 2) == []
    assert read_parts("- 1\n- 2\nSo it is 3.", 2) == []
