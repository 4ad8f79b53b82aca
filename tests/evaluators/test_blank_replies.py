"""A reply with no text and no tool call answers nothing: 0 wherever the gold has text."""

from __future__ import annotations

from typing import Any

from banks import each_case
from context_bench.registry import registry

EXAMPLE: dict[str, Any] = {
    "id": 1,
    "context": "c",
    "question": "q",
    "choices": ["x", "y"],
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{}],
    "ground_truth": [{"look_up": {"name": ["Ada"]}}],
    "patch": "diff --git a/x b/x\n--- a/x\n+++ b/x\n",
}
"""No comma is in an empty reply, and no call: rules that nothing would pass by itself."""

EVALUATORS = [name for name in registry.list("evaluator") if name not in ("llm-judge", "code-execution")]


@each_case("reply", ["", "  \n"])
@each_case("gold", ["A", "The", "?", "...", "an", "the a", "Paris", "42"])
@each_case("name", EVALUATORS)
def test_an_empty_reply_scores_nothing(name: str, gold: str, reply: str) -> None:
    letter = gold if gold == "A" else "B"
    example = {**EXAMPLE, "answer": gold, "reference": gold, "references": [gold], "correct_letter": letter}
    scores = registry.get("evaluator", name)().score(example, {"response": reply})
    assert all(value == 0 for value in scores.values()), scores


def test_a_gold_that_normalises_to_nothing_is_matched_by_its_like() -> None:
    scores = registry.get("evaluator", "answer-quality")().score({"answer": "The"}, {"response": "the"})
    assert scores == {"f1": 1.0, "exact_match": 1.0, "recall": 1.0, "contains": 1.0}


def test_no_call_is_right_where_none_is_wanted() -> None:
    example = {"id": 1, "context": "", "question": "q", "ground_truth": [], "tools": [], "meta": {"irrelevance": True}}
    evaluator = registry.get("evaluator", "tool-call-match")()
    assert evaluator.score(example, {"response": ""}) == {"tool_call_match": 1.0}
