"""Reasoning is no part of an answer, whichever marks a model puts around it and whichever evaluator reads the reply.

``replies/reasoning.jsonl`` has a ``reply`` and its ``answer`` on each line; null where the reply holds none.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import LLMJudge
from context_bench.registry import registry
from context_bench.text.golds import remove_reasoning, turn_answers
from servers import Server, completion

LINES = (Path(__file__).parent / "replies" / "reasoning.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [pytest.param(case["reply"], case["answer"] or "", id=str(place)) for place, line in enumerate(LINES, 1)
         for case in [json.loads(line)]]  # fmt: skip

EXAMPLE: dict[str, Any] = {
    "id": 1,
    "context": "c",
    "question": "Which city is the capital?",
    "answer": "Paris",
    "choices": ["Lyon", "Paris"],
    "correct_letter": "B",
    "reference": "The capital is Paris.",
    "instruction_id_list": ["punctuation:no_comma", "length_constraints:number_words"],
    "kwargs": [{}, {"num_words": 6, "relation": "less than"}],
    "ground_truth": [{"look_up": {"name": ["Ada"]}}],
    "patch": "diff --git a/Paris.py b/Paris.py\n--- a/Paris.py\n+++ b/Paris.py\n",
}
EVALUATORS = [name for name in registry.list("evaluator") if name not in ("llm-judge", "code-execution")]


@each_case(("reply", "answer"), CASES)
def test_the_answer_without_its_reasoning(reply: str, answer: str) -> None:
    assert remove_reasoning(reply).strip() == answer


@each_case("name", EVALUATORS)
@each_case(("reply", "answer"), CASES)
def test_every_evaluator_scores_the_answer_alone(reply: str, answer: str, name: str) -> None:
    evaluator = registry.get("evaluator", name)()
    assert evaluator.score(EXAMPLE, {"response": reply}) == evaluator.score(EXAMPLE, {"response": answer})


@pytest.mark.parametrize("name", ["summarization-quality", "rouge-suite", "answer-quality", "hotpot"])
def test_a_perfect_summary_is_perfect_after_any_reasoning(name: str) -> None:
    example = {"answer": "The capital is Paris."}
    scores = registry.get("evaluator", name)().score(
        example, {"response": "<reasoning>Lyon?</reasoning>The capital is Paris."}
    )
    assert set(scores.values()) == {1.0}


def test_a_loose_reading_does_not_pass_by_dropping_the_line_of_the_reasoning() -> None:
    example = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    reply = "<think>no commas</think>Well, yes.\nDone."
    scores = registry.get("evaluator", "ifeval-official")().score(example, {"response": "<think>a</think>\nWell, yes."})
    assert scores["ifeval_prompt_loose"] == 0.0
    assert registry.get("evaluator", "ifeval-checker")().score(example, {"response": reply})["ifeval_strict"] == 0.0


def test_reasoning_cut_off_by_the_token_limit_contains_nothing() -> None:
    scores = registry.get("evaluator", "answer-quality")().score(
        {"answer": "Paris"}, {"response": "<think>It may be Paris, or"}
    )
    assert set(scores.values()) == {0.0}


def test_the_judge_is_shown_the_answer_alone() -> None:
    with Server(completion('{"rating": 5}')) as server:
        judge = LLMJudge(server.url, "m")
        judge.score(EXAMPLE, {"response": "<thinking>SECRET</thinking>Paris"})
        judge.score(EXAMPLE, {"turn_responses": ["[THINK]SECRET[/THINK]Hm.", "Paris"], "response": "Paris"})
        cut = judge.score(EXAMPLE, {"response": "<think>It may be Paris"})
        assert len(server.chats) == 2
        assert "Paris" in server.chats[0].body.decode()
        assert not any("SECRET" in chat.body.decode() for chat in server.chats)
    assert cut == {"judge_score": 0.0}


def test_reasoning_stays_where_it_is_asked_for() -> None:
    kept = {"response": "<think>Paris</think>Lyon", "keep_reasoning": True}
    assert registry.get("evaluator", "answer-quality")().score({"answer": "Paris"}, kept)["contains"] == 1.0
    assert turn_answers({"turn_responses": ["<think>a</think>b"], "keep_reasoning": True}) == ["<think>a</think>b"]
    assert turn_answers({"turn_responses": ["<think>a</think>b"]}) == ["b"]


def test_a_context_that_stands_for_an_answer_is_no_reply() -> None:
    context = "The log says: hm</think>. Paris is named before"
    scores = registry.get("evaluator", "answer-quality")().score(
        {"answer": "log"}, {"context": context, "response": context}
    )
    assert scores["contains"] == 1.0


@pytest.mark.parametrize("text", ['re.sub(r"<think>.*?</think>", "", text)', "It writes `</think>` last.", "a <b> c"])
def test_a_mark_that_is_quoted_opens_nothing(text: str) -> None:
    assert remove_reasoning(text) == text
