"""Refusals: how they are worded, and balanced accuracy over matched pairs."""

from __future__ import annotations

import pytest

from banks import each_case
from context_bench.memory.judge import KINDS, read_bank
from context_bench.memory.scoring import READ_BY_SCRIPT, Abstention, is_refusal
from memory.histories import make_example
from memory.real_records import read_locomo


@each_case(
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
    [
        *("482913", "She adopted a cat.", "No", "None of the three paintings sold", "An unknown artist"),
        *(
            "Yes, likely not",
            "She did not say goodbye.",
            "He does not know her name.",
            "There was no answer at the door",
        ),
    ],
)
def test_answers_are_not_refusals(answer: str) -> None:
    assert not is_refusal(answer)


def test_the_refusals_in_the_bank_of_the_judge_are_told_from_its_answers() -> None:
    mistaken = []
    for example in read_bank():
        is_right = KINDS[example["dataset"]] and example["memory"]["unanswerable"]
        if is_refusal(example["meta"]["given"]) != (is_right or example["dataset"] == "refusing"):
            mistaken.append(example["meta"]["given"])
    assert mistaken == []


def test_no_real_gold_is_a_refusal() -> None:
    questions = [question for conversation in read_locomo() for question in conversation["questions"]]
    golds = [question["answer"] for question in questions if question["category"] != 5]
    assert [gold for gold in golds if is_refusal(gold)] == []


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


def test_a_script_that_reads_knows_nothing_of_refusing() -> None:
    given = {"response": "482913", "read_by_script": True}
    assert Abstention().score(make_example({"pair": "p"}), given).reason == READ_BY_SCRIPT
