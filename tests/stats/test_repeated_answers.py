"""The answers to one example are kept until all are there."""

from __future__ import annotations

from context_bench.stats import RepeatedAnswers


def test_an_example_is_forgotten_once_all_its_answers_are_there() -> None:
    answers = RepeatedAnswers(3, 0.7)
    for number in range(1000):
        for score in (1.0, 0.0, None):
            answers.add(("d", number), score)
        assert len(answers._open) == 0
    assert answers.total().counts == {"2:1": 1000}


def test_examples_of_the_same_name_in_two_datasets_are_two() -> None:
    answers = RepeatedAnswers(2, 0.7)
    for tag in ("x", "y"):
        answers.add((tag, 1), 1.0)
    # Neither has its second answer yet; the total counts what is there, and the next answers go on from it.
    assert answers.total().counts == {"1:1": 2}
    answers.add(("x", 1), 0.0)
    assert answers.total().counts == {"2:1": 1, "1:1": 1}
