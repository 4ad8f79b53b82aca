"""Refusals: how they are worded, and balanced accuracy over matched pairs."""

from __future__ import annotations

import pytest

from context_bench.memory.scoring import Abstention
from context_bench.memory.scoring.abstention import is_refusal
from memory.histories import make_example


@pytest.mark.parametrize(
    "answer",
    [
        *("No information available", "Not mentioned in the conversation.", "I don't know.", "I don’t know that.", ""),
        *("I do not have any information about the ivory vault.", "This cannot be determined.", "Unknown", "n/a"),
        *("The conversation does not mention it.", "There is no record of that.", "I cannot find that in my memory."),
        *("You never told me.", "It was not specified.", "Not enough information to answer."),
    ],
)
def test_refusals_are_recognised(answer: str) -> None:
    assert is_refusal(answer)


@pytest.mark.parametrize(
    "answer",
    ["482913", "She adopted a cat.", "No", "None of the three paintings sold", "An unknown artist", "Yes, likely not"],
)
def test_answers_are_not_refusals(answer: str) -> None:
    assert not is_refusal(answer)


def _average(answer: str) -> float:
    pairs = [{"pair": "p", "unanswerable": False, "answer": "1"}, {"pair": "p", "unanswerable": True}]
    scores = [Abstention().score(make_example(each), {"response": answer})["abstention"] for each in pairs]
    return sum(scores) / len(scores)


@pytest.mark.parametrize("answer", ["I don't know.", "482913"])
def test_always_doing_the_same_earns_a_half(answer: str) -> None:
    assert _average(answer) == 0.5


def test_a_question_without_a_partner_tells_only_whether_it_was_refused() -> None:
    assert Abstention().score(make_example({"unanswerable": True}), {"response": ""}) == {"refused": 1.0}


def test_without_an_answer_there_is_no_score() -> None:
    assert Abstention().score(make_example({"pair": "p"}), {"context": "x"}).reason == "the system gave no answer"
    assert Abstention().score({"context": ""}, {"response": ""}).reason == "not a question about a conversation"
