"""ROUGE-L of summaries: the best of several references, and its speed."""

from __future__ import annotations

import random
import time

import pytest

from context_bench.evaluators import SummarizationQuality

SCORER = SummarizationQuality()


def test_best_reference_gives_all_three_numbers() -> None:
    # Against the first: 2 of 4 response words, 2 of 2 reference words, F1 2/3; against the second: 1 of 4, 1 of 1.
    scores = SCORER.score({"answers": ["red fox", "dog"]}, {"response": "red fox and dog"})
    assert scores == pytest.approx({"rouge_l_precision": 0.5, "rouge_l_recall": 1.0, "rouge_l_f1": 2 / 3})


def test_case_and_punctuation_do_not_count() -> None:
    scores = SCORER.score({"answer": "The end."}, {"response": "the END"})
    assert scores == {"rouge_l_precision": 1.0, "rouge_l_recall": 1.0, "rouge_l_f1": 1.0}


@pytest.mark.parametrize("response", [None, "", "  ", "東京"])
def test_an_empty_summary_scores_nothing(response: str | None) -> None:
    scores = SCORER.score({"answer": "The end."}, {"response": response})
    assert scores == {"rouge_l_precision": 0.0, "rouge_l_recall": 0.0, "rouge_l_f1": 0.0}


def test_without_a_reference_there_is_no_score() -> None:
    scores = SCORER.score({"answers": []}, {"response": "x"})
    assert scores == {}
    assert scores.reason == "no reference summary"  # type: ignore[attr-defined]


def test_a_gold_in_parts_is_one_reference() -> None:
    assert SCORER.score({"answers": [["red", "fox"]]}, {"response": "red fox"})["rouge_l_f1"] == 1.0


def test_is_a_hundred_times_as_fast_as_rouge_score() -> None:
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer", reason="rouge-score is not installed")
    source = random.Random(3)
    response, reference = (" ".join(f"word{source.randrange(300)}" for _ in range(400)) for _ in range(2))
    theirs = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=False)
    example, processed = {"answer": reference}, {"response": response}

    def seconds(call: object, rounds: int) -> float:
        best = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            for _ in range(10):
                call()  # type: ignore[operator]
            best = min(best, time.process_time() - start)
        return best

    slow = seconds(lambda: theirs.score(reference, response), 2)
    fast = seconds(lambda: SCORER.score(example, processed), 20)
    assert slow / fast > 100
