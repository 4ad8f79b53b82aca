"""Which evaluators judge an example, what becomes of what they say, and which score is the primary one."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from context_bench import Scores, evaluate
from context_bench.core.examples import Item
from context_bench.core.judge import Judgement, Scorer
from context_bench.datasets.catalog import catalog
from context_bench.errors import ScoreClash, UsageError
from context_bench.evaluators import AnswerQuality
from context_bench.numbers import get_number
from context_bench.output.columns import choose_columns, find_best
from context_bench.reporters import TableReporter
from context_bench.store import Store
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
    processed = {"response": "the red one"}
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


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), StopIteration(), SystemExit(1), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
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


# One score for each dataset, and one for contexts that no model has read


def question(number: int, **fields: Any) -> dict[str, Any]:
    """An example with an answer and with evidence; None leaves a field out."""
    code = f"The code of box {number} is v{number}."
    whole = {"id": number, "context": f"{'Some words stand here. ' * 20}{code}", "question": "code?"}
    whole |= {"answer": f"v{number}", "evidence": [code], **fields}
    return {key: value for key, value in whole.items() if value is not None}


def summed_up(*systems: Any, examples: Any, **more: Any) -> Any:
    return evaluate(list(systems), examples, progress=False, **more)


def lose(example: dict[str, Any]) -> dict[str, Any]:
    return {"context": example["context"][:40]}


def answer(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": f"v{example['id']}"}


@pytest.mark.parametrize("odd", [0, 17, 39])
def test_one_row_without_an_answer_does_not_change_the_score_of_the_others(odd: int) -> None:
    examples = [question(n, answer=None if n == odd else f"v{n}") for n in range(40)]
    result = summed_up(Passthrough(), lose, examples=examples)
    assert result.config["context_primary"] == {"": "evidence_recall"}
    assert [result.summary[name]["mean_score"] for name in ("passthrough", "lose")] == [1.0, 0.0]
    assert result.comparison is not None
    assert result.comparison.verdicts[0].word == "worse"
    answered = summed_up(answer, examples=examples)
    assert answered.config["primary"] == {"": "f1"}
    assert (answered.summary["answer"]["mean_score"], answered.summary["answer"]["num_unscored"]) == (1.0, 1.0)


@pytest.mark.parametrize("odd", [0, 17, 39])
def test_the_score_is_the_one_that_fits_most_examples(odd: int) -> None:
    """One row of 40 has evidence and no answer: it is unscored, wherever it stands."""
    examples = [question(n, evidence=None) if n != odd else question(n, answer=None) for n in range(40)]
    result = summed_up(Passthrough(), examples=examples)
    assert result.config["context_primary"] == {"": "answer_in_context"}
    assert result.summary["passthrough"]["num_unscored"] == 1
    assert "score" not in result.rows[odd].scores
    most = [question(n, evidence=None if n == odd else [f"is v{n}."]) for n in range(40)]
    assert summed_up(Passthrough(), examples=most).config["context_primary"] == {"": "evidence_recall"}


def test_data_that_is_read_once_goes_by_its_first_example() -> None:
    examples = (question(n, evidence=["is v0."] if n == 0 else None) for n in range(4))
    result = summed_up(Passthrough(), examples=examples)
    assert result.config["context_primary"] == {"": "evidence_recall"}
    assert result.summary["passthrough"]["num_unscored"] == 3


def test_letters_and_answers_in_one_file_are_not_one_mean(tmp_path: Path) -> None:
    letters = [{**question(n, answer=None), "choices": ["a", "b"], "correct_letter": "B"} for n in range(3)]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in [question(8), *letters]))
    result = summed_up(lambda _: {"response": "The answer is B."}, examples=str(path))
    assert result.config["primary"] == {"own": "mc_accuracy"}
    assert [row.scores.get("score") for row in result.rows] == [None, 1.0, 1.0, 1.0]


def test_a_context_that_nobody_has_read_is_scored_by_what_is_left_in_it() -> None:
    examples = [question(n, evidence=None) for n in range(4)]
    result = summed_up(Passthrough(), examples=examples)
    (row, *_) = result.rows
    assert row.scores["score"] == row.scores["answer_in_context"] == 1.0
    # 80 words and 6 without the article, of which one is the answer: precision 1/86, recall 1
    assert row.scores["f1"] == pytest.approx(2 / 87)
    asked = summed_up(Passthrough(), examples=examples, score_field="f1")
    assert asked.summary["passthrough"]["mean_score"] == pytest.approx(2 / 87)


def test_evaluators_that_look_at_answers_alone_ask_whether_the_answer_is_there() -> None:
    examples = [question(n, evidence=None) for n in range(4)]
    result = summed_up(Passthrough(), examples=examples, evaluators=[AnswerQuality()])
    assert result.config["context_primary"] == {"": "contains"}
    assert result.summary["passthrough"]["mean_score"] == 1.0
    mine = summed_up(Passthrough(), examples=examples, evaluators=[lambda original, processed: 0.25])
    assert mine.summary["passthrough"]["mean_score"] == 0.25


def test_an_empty_answer_of_a_reader_is_no_context() -> None:
    """The floor sends an empty context, and a model may say nothing: that answer is wrong."""
    result = summed_up(lambda _: {"context": "", "response": ""}, examples=[question(n) for n in range(3)])
    assert result.config["unread"] == []
    assert result.config["primary"] == {"": "f1"}
    assert result.summary["<lambda>"]["mean_score"] == 0.0


def test_the_score_of_a_generated_dataset_is_of_its_evidence() -> None:
    result = summed_up("passthrough", answer, examples="needle:n=3,length=500")
    assert result.config["context_primary"] == {"needle:n=3,length=500": "evidence_recall"}
    assert result.config["primary"] == {"needle:n=3,length=500": "contains"}


def test_contexts_and_answers_have_tables_of_their_own_and_no_verdict_between_them() -> None:
    examples = [question(n) for n in range(200)]
    result = summed_up(answer, Passthrough(), lose, examples=examples)
    assert result.comparison is not None
    assert result.comparison.baseline == "passthrough"
    assert [each.name for each in result.comparison.verdicts] == ["lose"]
    assert result.config["unread"] == ["passthrough", "lose"]
    first, second, *_ = TableReporter(wide=True).render(result).split("\n\n")
    assert "passthrough" in first
    assert "answer " not in first
    assert "| answer " in second
    assert "pareto_rank" not in result.summary["answer"]
    assert {"passthrough", "lose"} == {name for name, own in result.summary.items() if "pareto_rank" in own}
    note = "no verdict: passthrough returns a context and answer an answer"
    assert result.notes["answer"]["mean_score"].startswith(note)


def test_a_score_that_is_asked_for_is_one_for_contexts_and_answers() -> None:
    examples = [question(n) for n in range(200)]
    result = summed_up(Passthrough(), lose, answer, examples=examples, score_field="contains", metrics=["mean-score"])
    assert result.comparison is not None
    assert {each.name: each.word for each in result.comparison.verdicts} == {"lose": "worse", "answer": "equivalent"}
    assert "context, not read" not in TableReporter(wide=True).render(result)


def test_no_star_and_no_rank_where_no_verdict_can_be_given() -> None:
    result = summed_up(answer, lose, examples=[question(n) for n in range(20)])
    assert result.comparison is None
    assert not any("pareto_rank" in values for values in result.summary.values())
    columns = {key: show for _, key, show in choose_columns(result)}
    assert not find_best(result, "mean_score", columns["mean_score"])
    assert not find_best(result, "pass_rate", columns["pass_rate"])


def test_a_reader_makes_a_context_an_answer() -> None:
    def read(example: dict[str, Any]) -> dict[str, Any]:
        return {"context": example["context"][:40], **answer(example)}

    def read_all(example: dict[str, Any]) -> dict[str, Any]:
        return {"context": example["context"], **answer(example)}

    result = summed_up(read_all, read, examples=[question(n) for n in range(200)])
    assert result.config["unread"] == []
    assert result.comparison is not None
    assert [each.word for each in result.comparison.verdicts] == ["equivalent"]
    assert result.config["primary"] == {"": "f1"}


def test_a_system_of_both_kinds_has_no_mean() -> None:
    def both(example: dict[str, Any]) -> dict[str, Any]:
        return answer(example) if example["id"] % 2 else {"context": example["context"]}

    result = summed_up(both, examples=[question(n) for n in range(4)])
    assert math.isnan(result.summary["both"]["mean_score"])
    made_of_scores = [key for key in result.summary["both"] if get_number(key).from_scores]
    assert {"mean_score", "pass_rate", "cost_of_pass"} <= set(made_of_scores)
    assert all(math.isnan(result.summary["both"][key]) for key in made_of_scores)
    assert "contexts for some examples and answers for others" in result.notes["both"]["mean_score"]


def test_where_a_context_cannot_be_scored_there_are_tokens_and_time() -> None:
    result = summed_up(Passthrough(), lose, examples=[question(n, answer=None, evidence=None) for n in range(3)])
    assert math.isnan(result.summary["passthrough"]["mean_score"])
    assert result.summary["lose"]["compression_ratio"] > 0.5
    assert "tokens and time only" in TableReporter(wide=True).render(result)
    letters = [
        {**question(n, answer=None, evidence=None), "choices": ["a", "b"], "correct_letter": "B"} for n in (1, 2)
    ]
    with pytest.warns(UserWarning, match="could be scored"):
        asked = summed_up(Passthrough(), examples=letters)
    assert "the system returned a context, not an answer" in TableReporter(wide=True).render(asked)


def test_a_row_of_an_earlier_run_is_scored_as_the_data_is_now(tmp_path: Path) -> None:
    """Rows come from the cache; the score of the dataset is another one since evidence was added to most examples."""
    plain = [question(n, evidence=None) for n in range(2)]
    first = summed_up(Passthrough(), examples=plain, cache_dir=tmp_path)
    assert first.summary["passthrough"]["mean_score"] == 1.0
    second = summed_up(Passthrough(), examples=[*plain, *map(question, range(2, 6))], cache_dir=tmp_path)
    assert second.config["context_primary"] == {"": "evidence_recall"}
    assert second.summary["passthrough"]["num_unscored"] == 2
    with Store(tmp_path, readonly=True) as store:
        stored = [row.scores.get("score") for row in store.run_rows(store.run("last"))]
    assert stored == [None, None, 1.0, 1.0, 1.0, 1.0]


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
