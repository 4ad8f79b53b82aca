"""LoCoMo's official scorer: vectors from the authors' code, and the real golds against themselves."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.memory.scoring import LocomoScore, score_answer
from memory.histories import make_example
from memory.real_records import read_locomo


@pytest.mark.parametrize(
    ("category", "answer", "gold", "score"),
    [
        (1, "pottery, camping", "Pottery, camping, painting, swimming", 0.5),
        (1, "running and pottery", "Running, pottery", 0.6667),
        (2, "May 7th, 2023", "7 May 2023", 0.6667),
        (3, "Yes, likely", "Likely no; she does not", 0.5),
        (4, "She went swimming and camped", "swim, camping", 0.6667),
        (4, "mental-health", "mental health", 0.0),
        (4, "", "mental health", 0.0),
    ],
)
def test_vectors_of_the_official_code(category: int, answer: str, gold: str, score: float) -> None:
    assert score_answer(category, answer, gold) == pytest.approx(score, abs=5e-5)


def _score(reply: str, **question: Any) -> dict[str, float]:
    return LocomoScore().score(make_example(question), {"response": reply})


def test_an_answer_is_scored_under_the_name_of_its_category() -> None:
    assert _score("a red car", category=4, answer="the red car") == {
        "locomo_f1": 1.0,
        "locomo_f1_clean": 1.0,
        "locomo_official": 1.0,
        "locomo_single_hop": 1.0,
    }


@pytest.mark.parametrize(("letter", "clean"), [("H", False), ("T", False), ("W", True)])
def test_known_wrong_golds_are_left_out_of_the_clean_score(letter: str, clean: bool) -> None:
    scores = _score("x", category=1, answer="x", known_error=letter)
    assert scores["locomo_f1"] == 1.0
    assert ("locomo_f1_clean" in scores) == clean


@pytest.mark.parametrize(
    ("answer", "value"),
    [("No information available.", 1.0), ("It is NOT MENTIONED here", 1.0), ("I don't know", 0.0), ("a boat", 0.0)],
)
def test_category_five_asked_freely(answer: str, value: float) -> None:
    scores = _score(answer, category=5)
    assert scores == {"locomo_refusal": value, "locomo_official": value, "locomo_adversarial": value}


@pytest.mark.parametrize(
    ("answer", "value"),
    [("(b)", 1.0), ("B", 1.0), ("(a)", 0.0), ("a", 0.0), ("Not mentioned in the conversation", 1.0), ("a boat", 0.0)],
)
def test_category_five_as_a_choice(answer: str, value: float) -> None:
    options = {"a": "a boat", "b": "Not mentioned in the conversation"}
    assert _score(answer, category=5, options=options)["locomo_refusal"] == value


def test_what_cannot_be_scored_has_a_reason() -> None:
    evaluator = LocomoScore()
    assert evaluator.score({"context": ""}, {"response": "x"}).reason == "not a question of LoCoMo"
    assert evaluator.score(make_example({"category": 4, "answer": "x"}), {}).reason == "the system gave no answer"
    assert evaluator.score(make_example({"category": 4}), {"response": "x"}).reason == "no gold answer"


def test_every_real_gold_is_right_against_itself() -> None:
    for conversation in read_locomo():
        for question in conversation["questions"]:
            if question["category"] != 5:
                gold = question["answer"].split(";")[0] if question["category"] == 3 else question["answer"]
                assert score_answer(question["category"], gold, question["answer"]) == pytest.approx(1.0), question


def test_always_refusing_earns_what_the_official_code_gives_it() -> None:
    values = [
        LocomoScore().score(make_example(question), {"response": "No information available"})["locomo_official"]
        for conversation in read_locomo()
        for question in conversation["questions"]
    ]
    assert len(values) == 1_986
    assert sum(values) / len(values) == pytest.approx(0.228, abs=0.0005)
