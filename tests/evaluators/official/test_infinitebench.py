"""InfiniteBench's rules, by hand from the published ones."""

from __future__ import annotations

from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import InfiniteBenchScore


@each_case(
    ("task", "response", "answers", "expected"),
    [
        ("passkey", "The pass key is 71432.", ["71432"], 1.0),
        ("passkey", "7 1432", ["71432"], 0.0),
        ("number_string", "12345 or 999", ["999"], 0.0),
        ("kv_retrieval", 'The value is "ab-12".', ["ab-12"], 1.0),
        ("kv_retrieval", "ab-123", ["ab-12"], 0.0),
        ("longdialogue_qa_eng", "It is Henry.", ["HENRY"], 1.0),
        ("longdialogue_qa_eng", "Henrys", ["HENRY"], 0.0),
        ("longbook_qa_eng", "the white whale", ["White Whale", "a whale"], 1.0),
        ("longbook_qa_en", "white whale", ["White Whale"], 1.0),
        ("longbook_qa_chn", "红楼梦。", ["红楼梦"], 1.0),
        ("longbook_qa_chn", "红楼", ["红楼梦"], 0.8),
        ("longbook_sum_eng", "one two\nthree", ["three\none two"], 1.0),
        ("code_run", "The result is `-7`.", ["-7"], 1.0),
        ("code_run", "-7 is it", ["-7"], 0.0),
        ("code_run", "", ["-7"], 0.0),
        ("math_find", "The number is 3.5", ["3.5"], 1.0),
        ("math_find", "17, not 18", ["17"], 1.0),
        ("math_find", "none", ["17"], 0.0),
        ("math_calc", "[1, 2, 4]", ["1", "2", "3", "4"], 0.5),
        ("math_calc", "[1, 2, 3, 4, 5]", [["1", "2", "3", "4"]], 1.0),
        ("math_calc", "", ["1", "2"], 0.0),
        ("passkey", None, ["1"], 0.0),
        ("passkey", "<think>5?</think>6", ["6"], 1.0),
    ],
)
def test_rules(task: str, response: str | None, answers: list[Any], expected: float) -> None:
    scores = InfiniteBenchScore().score({"answers": answers, "meta": {"task": task}}, {"response": response})
    assert scores == pytest.approx({"infinitebench_score": expected})


@pytest.mark.parametrize("task", ["longbook_choice_eng", "longbook_choice_en", "code_debug"])
def test_tasks_with_options(task: str) -> None:
    example = {"choices": ["f", "g", "h", "k"], "correct_letter": "C", "meta": {"task": task}}
    score = InfiniteBenchScore().score
    assert score(example, {"response": "Answer: C"}) == {"infinitebench_score": 1.0}
    assert score(example, {"response": "A. f"}) == {"infinitebench_score": 0.0}
    assert score({"meta": {"task": task}}, {"response": "A"}) == {}


def test_what_cannot_be_judged_has_a_reason() -> None:
    assert "'chess'" in InfiniteBenchScore().score({"answer": "1", "meta": {"task": "chess"}}, {}).reason  # type: ignore[attr-defined]
    assert InfiniteBenchScore().score({"meta": {"task": "passkey"}}, {}).reason == "no gold answer"  # type: ignore[attr-defined]
