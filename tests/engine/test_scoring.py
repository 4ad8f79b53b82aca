"""Which evaluators judge an example, what becomes of what they say, and which score is the primary one."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from context_bench import Scores, evaluate
from context_bench.datasets.catalog import catalog
from context_bench.engine.jobs import Item
from context_bench.engine.judgement import Judgement
from context_bench.engine.scoring import Scorer
from context_bench.errors import ScoreClash, UsageError
from context_bench.evaluators import AnswerQuality
from context_bench.systems import Passthrough


class Says:
    """An evaluator that returns what it was made with."""

    def __init__(self, returned: Any, name: str = "says") -> None:
        self.returned, self.name = returned, name

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
        if isinstance(self.returned, BaseException):
            raise self.returned
        return self.returned


def judge(*evaluators: Any, example: dict[str, Any] | None = None, tag: str = "") -> Judgement:
    given = {"id": 1, "context": "c", **(example or {})}
    processed = {"response": "the red one", "context": "the red one"}
    return judged(Scorer(list(evaluators) or None), given, processed, tag)


def judged(scorer: Scorer, example: dict[str, Any], processed: dict[str, Any], tag: str = "") -> Judgement:
    async def main() -> Judgement:
        with ThreadPoolExecutor(2) as threads:
            return await asyncio.wait_for(scorer.judge(Item(example, tag), processed, threads), 10)

    return asyncio.run(main())


def test_scores_of_all_evaluators_are_put_together() -> None:
    judgement = judge(Says({"a": 1}, "first"), Says({"b": 0.5}, "second"))
    assert judgement.scores == {"a": 1.0, "b": 0.5}
    assert judgement.unscored == {}


def test_one_key_from_two_evaluators_is_an_error() -> None:
    with pytest.raises(ScoreClash, match=r"'a'.*'second'"):
        judge(Says({"a": 1}, "first"), Says({"a": 1}, "second"))


def test_no_score_comes_with_its_reason() -> None:
    assert judge(Says(Scores(reason="judge unreachable"))).unscored == {"says": "judge unreachable"}
    assert judge(Says({})).unscored.keys() == {"says"}
    assert judge(Says({})).scores == {}


@pytest.mark.parametrize("error", [ValueError("broken\nscorer"), KeyError("answer"), ZeroDivisionError()])
def test_an_evaluator_that_fails_is_a_missing_score(error: Exception) -> None:
    judgement = judge(Says(error), Says({"b": 1.0}, "other"))
    assert judgement.scores["b"] == 1.0
    assert judgement.unscored["says"].startswith(type(error).__name__)
    assert "\n" not in judgement.unscored["says"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), "high", None, [1]])
def test_what_is_no_number_is_no_score(value: Any) -> None:
    judgement = judge(Says({"a": value, "b": 1.0}))
    assert judgement.scores == {"b": 1.0, "score": 1.0} or judgement.scores == {"b": 1.0}
    assert "a is not a number" in judgement.unscored["says"]


def test_truth_is_a_number() -> None:
    assert judge(Says({"a": True, "b": False})).scores == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("returned", [None, 0.5, ["f1"], "text"])
def test_an_evaluator_that_returns_no_dict_is_named(returned: Any) -> None:
    with pytest.raises(UsageError, match="'says'"):
        judge(Says(returned))


def test_details_are_kept_under_the_name_of_the_evaluator() -> None:
    judgement = judge(Says(Scores({"a": 1.0}, details={"letter": "B"})))
    assert judgement.details == {"says": {"letter": "B"}}


def test_an_evaluator_may_be_asynchronous() -> None:
    class Later(Says):
        async def ascore(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            await asyncio.sleep(0)
            return {"later": 1.0}

    assert judge(Later({"now": 1.0})).scores["later"] == 1.0


class Slow(Says):
    """An evaluator that is asked in a thread."""

    slow = True


def test_a_slow_evaluator_is_asked_in_a_thread_of_its_own() -> None:
    class Where(Slow):
        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Any:
            return {"elsewhere": threading.current_thread() is not threading.main_thread()}

    assert judge(Where(None)).scores["elsewhere"] == 1.0


def test_the_reason_of_a_slow_evaluator_is_kept() -> None:
    assert judge(Slow(Scores(reason="judge unreachable"))).unscored == {"says": "judge unreachable"}


@pytest.mark.parametrize("error", [ValueError("x"), StopIteration(), SystemExit(1)], ids=lambda e: type(e).__name__)
def test_a_slow_evaluator_that_fails_is_a_missing_score(error: BaseException) -> None:
    assert "says" in judge(Slow(error)).unscored
    assert "says" in judge(Says(error)).unscored


# The primary score


def test_ones_own_score_wins() -> None:
    judgement = judge(Says({"score": 0.25, "f1": 1.0, "mc_accuracy": 1.0}), example={"correct_letter": "A"})
    assert judgement.scores["score"] == 0.25
    tagged = judge(Says({"score": 0.25, "contains": 1.0}), tag="needle")
    assert tagged.scores["score"] == 0.25


@pytest.mark.parametrize(
    ("fields", "primary"),
    [
        ({}, "f1"),
        ({"correct_letter": "A"}, "mc_accuracy"),
        ({"test": "assert f()"}, "pass_at_1"),
        ({"test_list": ["assert f()"]}, "pass_at_1"),
        ({"instruction_id_list": ["x"]}, "ifeval_strict"),
        ({"correct_letter": "", "test": None}, "f1"),
    ],
)
def test_the_primary_score_of_ones_own_data_goes_by_its_fields(fields: dict[str, Any], primary: str) -> None:
    scores = {"f1": 0.1, "mc_accuracy": 0.2, "pass_at_1": 0.3, "ifeval_strict": 0.4, "other": 0.5}
    judgement = judge(Says(scores), example=fields)
    assert judgement.scores["score"] == scores[primary]


def test_the_primary_score_of_a_dataset_is_the_one_it_reports() -> None:
    primary = catalog()["needle"].primary
    judgement = judge(Says({"f1": 0.1, primary: 0.9}), tag="needle:length=4000")
    assert judgement.scores["score"] == 0.9


def test_without_the_score_that_a_dataset_reports_there_is_no_primary_one() -> None:
    assert "score" not in judge(Says({"f1": 0.1, "other": 1.0}), tag="needle").scores


def test_a_single_score_of_ones_own_is_the_primary_one() -> None:
    assert judge(Says({"mine": 0.7})).scores == {"mine": 0.7, "score": 0.7}


# Wiring


def test_evaluators_are_wired_by_the_dataset_of_each_example() -> None:
    scorer = Scorer()
    card = catalog()["needle"]
    assert [each.name for each in scorer.evaluators_for("needle:length=4000,n=5")] == list(card.evaluators)
    assert "answer-quality" in [each.name for each in scorer.evaluators_for("my-own-file")]


def test_given_evaluators_apply_everywhere_and_alone() -> None:
    mine = Says({"mine": 1.0}, "mine")
    assert Scorer([mine]).evaluators_for("needle") == [mine]
    assert Scorer([]).evaluators_for("needle") == []


def test_extra_evaluators_come_beside_the_wired_ones() -> None:
    mine = Says({"mine": 1.0}, "mine")
    names = [each.name for each in Scorer(extra=[mine]).evaluators_for("needle")]
    assert names == [*catalog()["needle"].evaluators, "mine"]


def test_the_fields_that_can_come_up() -> None:
    assert {"score", "f1", "contains"} <= (Scorer().fields_for(["needle"]) or set())
    assert Scorer([Says({})]).fields_for(["needle"]) is None  # it does not say


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"correct_letter": "A"}, "multiple-choice-accuracy"),
        ({"test": "def check(f): pass"}, "code-execution"),
        ({"test_list": ["assert True"]}, "code-execution"),
        ({"instruction_id_list": ["punctuation:no_comma"]}, "ifeval-checker"),
    ],
)
def test_ones_own_data_is_wired_by_its_fields(fields: dict[str, Any], name: str) -> None:
    scorer = Scorer()
    assert name in [each.name for each in scorer.evaluators_for("my-file", {"id": 1, **fields})]
    assert name not in [each.name for each in scorer.evaluators_for("my-file", {"id": 2})]


def test_those_who_judged_nothing_are_not_named() -> None:
    scorer = Scorer()
    assert "mc_accuracy" in (scorer.fields_for(["my-file"]) or set())
    judged(scorer, {"id": 1, "context": ""}, {"response": ""}, "my-file")
    assert scorer.names == ["answer-quality", "context-recall"]


def test_an_example_without_gold_has_no_score_and_a_reason() -> None:
    judgement = judged(Scorer(), {"id": 1, "context": ""}, {"response": "", "context": ""})
    assert judgement.scores == {}
    assert "no gold answer" in judgement.unscored["answer-quality"]


def test_an_empty_answer_to_a_real_question_is_wrong_not_unscored() -> None:
    judgement = judged(Scorer(), {"id": 1, "context": "", "answer": "red"}, {"response": ""})
    assert judgement.scores["f1"] == judgement.scores["score"] == 0.0


def test_a_context_is_no_answer_to_a_question_that_needs_one() -> None:
    example = {"id": 1, "context": "B is a letter", "question": "which?", "correct_letter": "B", "choices": ["x", "y"]}
    with pytest.warns(UserWarning, match="multiple-choice-accuracy: the system returned a context, not an answer"):
        (kept,) = evaluate(Passthrough(), [example]).rows
    (answered,) = evaluate(lambda _: {"response": "The answer is B."}, [example]).rows
    assert "mc_accuracy" not in kept.scores
    assert kept.unscored["multiple-choice-accuracy"] == "the system returned a context, not an answer"
    assert "score" not in kept.scores
    assert answered.scores["score"] == answered.scores["mc_accuracy"] == 1.0


def test_no_system_of_a_user_s_can_take_itself_out_of_the_scores() -> None:
    def dodge(example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "wrong", "unscorable": "it is too hard"}

    result = evaluate(dodge, [{"id": "q", "context": "", "question": "?", "answer": "right"}], progress=False)
    assert result.rows[0].scores["f1"] == 0.0
    assert "it is too hard" not in result.rows[0].unscored.values()


class Thinks:
    name, fingerprint = "thinks", "thinks/1"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"response": "<think>Paris?</think>Lyon", "keep_reasoning": True}


def test_reasoning_is_scored_only_where_the_run_asks_for_it(tmp_path: Path) -> None:
    def contains(**options: Any) -> tuple[float, bool, Any]:
        example = {"id": 1, "context": "c", "question": "q", "answer": "Paris"}
        result = evaluate(
            Thinks(), [example], evaluators=["answer-quality"], progress=False, cache_dir=tmp_path, **options
        )
        return result.rows[0].scores["contains"], result.config["keep_reasoning"], result.config["reused"]

    assert contains() == (0.0, False, 0)  # a system cannot ask for it
    assert contains(keep_reasoning=True)[:2] == (1.0, True)
    assert contains() == (0.0, False, 1)
    assert contains(keep_reasoning=True) == (1.0, True, 1)


def test_runs_that_keep_reasoning_have_other_versions_of_their_evaluators() -> None:
    scorers = [Scorer([AnswerQuality()], keep_reasoning=kept) for kept in (False, True)]
    for scorer in scorers:
        scorer.evaluators_for("")
    one, other = (scorer.versions["answer-quality"] for scorer in scorers)
    assert one != other
