"""LongBench's rules, by hand from the published ones; its ROUGE-L against the package that it uses."""

from __future__ import annotations

import random
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import LongBenchScore
from context_bench.evaluators.official_long_context import LONGBENCH_RULES, rouge_l_sets


def score(task: str, response: str | None, *answers: str, **meta: Any) -> float:
    example = {"answers": list(answers), "meta": {"task": task, **meta}}
    return LongBenchScore().score(example, {"response": response})["longbench_score"]


CLASSES = ["Date", "Other date", "Person", "City"]


@each_case(
    ("task", "response", "answers", "expected"),
    [
        ("hotpotqa", "The Eiffel Tower", ["eiffel tower"], 1.0),
        ("hotpotqa", "Eiffel Tower in Paris", ["Eiffel Tower", "Paris"], 2 / 3),
        ("narrativeqa", "", ["x"], 0.0),
        ("triviaqa", "\nPassage\nParis", ["Paris"], 0.0),
        ("triviaqa", "\n\nParis\nQuestion: next", ["Paris"], 1.0),
        ("qasper_e", "yes", ["Yes"], 1.0),
        ("passage_count", "There are 5 passages, or 5.", ["5"], 1.0),
        ("passage_count", "5 or 6", ["5"], 0.5),
        ("passage_count", "none", ["5"], 0.0),
        ("passage_retrieval_en", "Paragraph 12", ["Paragraph 12"], 1.0),
        ("passage_retrieval_en", "Paragraph 1, 12", ["Paragraph 12"], 0.5),
        ("passage_retrieval_zh", "段落3", ["段落3"], 1.0),
        ("passage_retrieval_zh", "段落3", ["no number"], 0.0),
        ("lcc", "    return x", ["    return x"], 1.0),
        ("lcc", "```python\n# a comment\nabcd", ["abcf"], 0.75),  # 6 of 8 characters
        ("lcc", "`only`", ["x"], 0.0),
        ("multifieldqa_zh", "北京。", ["北京"], 1.0),
        ("multifieldqa_zh", "北京市", ["北京"], 0.8),  # 2 of 3 and 2 of 2
        ("multifieldqa_zh", "GPT4 模型", ["gpt4"], 0.5),  # one word and two characters
        ("vcsum", "会议 讨论", ["会议讨论"], 1.0),
    ],
)
def test_rules(task: str, response: str, answers: list[str], expected: float) -> None:
    assert score(task, response, *answers) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("response", "gold", "expected"),
    [
        ("Type: Person", "Person", 1.0),
        ("Person or City", "Person", 0.5),
        ("Other date", "Other date", 1.0),
        ("City", "Person", 0.0),
        ("person", "Person", 0.0),
        ("City\nPerson", "Person", 0.0),
    ],
)
def test_classification(response: str, gold: str, expected: float) -> None:
    assert score("trec", response, gold, all_classes=CLASSES) == expected


def test_a_class_within_the_gold_class_is_dropped() -> None:
    classes = ["date", "other", "other date"]
    # "date" is dropped; the published loop then passes over "other", so that it stays beside the gold.
    assert score("lsht", "other date", "other date", all_classes=classes) == 0.5


def test_rouge_l_equals_the_rouge_package() -> None:
    rouge = pytest.importorskip("rouge", reason="the package rouge is not installed")
    source = random.Random(5)
    words = ["a", "b", "c", "d.", "e", "f. g", "", "h"]
    for _ in range(300):
        prediction, gold = (" ".join(source.choices(words, k=source.randrange(1, 25))) for _ in range(2))
        try:
            expected = rouge.Rouge().get_scores([prediction], [gold], avg=True)["rouge-l"]["f"]
        except (ValueError, AssertionError):
            expected = 0.0
        assert rouge_l_sets(prediction, gold) == pytest.approx(expected, abs=1e-9), (prediction, gold)


def test_reasoning_is_no_part_of_the_answer() -> None:
    assert score("hotpotqa", "<think>London? No.</think>Paris", "Paris") == 1.0


def test_the_task_may_stand_in_the_dataset_tag() -> None:
    example = {"answers": ["Paris"], "dataset": "longbench:hotpotqa"}
    assert LongBenchScore().score(example, {"response": "Paris"}) == {"longbench_score": 1.0}


@pytest.mark.parametrize(
    ("example", "reason"),
    [
        ({"answer": "x", "meta": {"task": "chess"}}, "'chess' is not a task of LongBench"),
        ({"answer": "x"}, "set meta.task"),
        ({"meta": {"task": "hotpotqa"}}, "no gold answer"),
        ({"answer": "x", "meta": {"task": "trec"}}, "no meta.all_classes"),
    ],
)
def test_what_cannot_be_judged_has_a_reason(example: dict[str, Any], reason: str) -> None:
    scores = LongBenchScore().score(example, {"response": "x"})
    assert scores == {}
    assert reason in scores.reason  # type: ignore[attr-defined]


def test_all_21_tasks_have_a_rule() -> None:
    assert len(LONGBENCH_RULES) == 21
    for task in LONGBENCH_RULES:
        assert score(task, None, "Paragraph 1 段落1", all_classes=CLASSES) == 0.0
