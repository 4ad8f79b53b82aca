"""BIG-Bench Hard's answers: letters among the listed options, all else word for word."""

from __future__ import annotations

import pytest

from banks import each_case
from context_bench.evaluators import BBHScore
from context_bench.evaluators.official_short_context import find_stated_answer

LETTERS = {"question": "Which day?\nOptions:\n(A) Monday\n(B) Friday\n(C) Sunday", "answers": ["(B)"]}


def _score(target: str, reply: str | None) -> float:
    return BBHScore().score({"question": "?", "answers": [target]}, {"response": reply})["bbh_accuracy"]


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ("(B)", 1.0),
        ("B", 1.0),
        ("b", 1.0),
        ("Let us see. So the answer is (B).", 1.0),
        ("Friday", 1.0),
        ("(A) is too early, (C) too late. The answer is **(B) Friday**.", 1.0),
        ("The answer is (A).", 0.0),
        ("(A) or (B)", 0.0),
        ("", 0.0),
        ("I do not know", 0.0),
    ],
)
def test_letters(reply: str, score: float) -> None:
    assert BBHScore().score(LETTERS, {"response": reply}) == {"bbh_accuracy": score}


def test_a_letter_without_listed_options() -> None:
    assert _score("(R)", "So the answer is (R).") == 1.0
    assert _score("(R)", "So the answer is (Q).") == 0.0


@each_case(
    ("target", "reply", "score"),
    [
        ("True", "True", 1.0),
        ("True", "not ( False ) is True.\nSo the answer is True.", 1.0),
        ("True", "So the answer is False.", 0.0),
        ("True", "The answer is not clear.", 0.0),
        ("True", "It may be True or False", 0.0),
        ("Yes", "**Answer:** Yes", 1.0),
        ("yes", "So the answer is Yes. A keeper may do that.", 1.0),
        ("No", "The answer is Yes. No, wait: the answer is No.", 1.0),
        ("invalid", "the answer is valid", 0.0),
        ("-15", r"\boxed{-15}", 1.0),
        ("-15", "So the answer is 15.", 0.0),
        ("15", "So the answer is -15.", 0.0),
        ("] ) >", "The answer is ] ) >.", 1.0),
        ("] ) >", "] )  >", 1.0),
        ("> ]", "> ]", 1.0),
        ("] ) >", "] )", 0.0),
        ("fig it&t pear", "Sorted, the answer is fig it&t pear.", 1.0),
        ("fig it&t pear", "fig pear it&t", 0.0),
        ("8", "<think>the answer is 7</think>The answer is 8", 1.0),
        ("8", None, 0.0),
        ("8", "", 0.0),
    ],
)
def test_other_targets(target: str, reply: str | None, score: float) -> None:
    assert _score(target, reply) == score


def test_what_was_read_is_in_the_details() -> None:
    scores = BBHScore().score({"answers": ["8"]}, {"response": "The answer is 9."})
    assert scores.details == {"answer": "9"}  # type: ignore[attr-defined]


def test_without_a_target_there_is_no_score() -> None:
    scores = BBHScore().score({"question": "?"}, {"response": "8"})
    assert scores == {}
    assert scores.reason == "no target"  # type: ignore[attr-defined]


def test_long_replies_take_no_time() -> None:
    assert find_stated_answer("answer " * 100_000 + "the answer is 5") == "5"
    assert find_stated_answer("answer is " * 50_000 + "6") == "6"
    assert find_stated_answer("answer" + " " * 100_000 + "x") == "answer" + " " * 100_000 + "x"
