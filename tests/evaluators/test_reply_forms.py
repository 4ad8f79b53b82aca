"""Replies in the forms that chat models write, each with what a careful reader takes from it.

``replies/*_forms.jsonl`` have a ``reply`` and its ``reading``, null for none. ``set`` says when it was written: the
bank before anybody looked at the readers, the holdouts before they were run. At first 91.7% (choice), 94.2% (nli) and
50.0% (judge) of the bank were read as a person would, all of it now.
``later`` ones were written by another person, who had not seen the readers: at first 97.6% (choice), 97.6% (nli) and
95.5% (judge) of these were read as a person would, all of them now. ``quoted`` replies are known complaints,
``refused`` ones have a rating that the strict reader of judges does not take.
In a reply about options, {R} stands for the letter that is read, {X}, {Y} and {Z} for others, small ones for their
texts, and [[one<<or>>other]] for one line an option: the first form for the one that is read.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import judge_reply, nli_label
from context_bench.evaluators.choice.option_reading import read_choice

COLOURS = ["red", "green", "blue", "yellow", "black", "white", "brown", "orange", "purple", "grey"]


def load(kind: str) -> list[dict[str, Any]]:
    path = Path(__file__).parent / "replies" / f"{kind}_forms.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cases(kind: str) -> list[Any]:
    return [pytest.param(case, id=f"{case['set']}-{number}") for number, case in enumerate(load(kind), 1)]


def write_reply(form: str, place: int, count: int) -> str:
    """Write a reply that chooses the option at a place among so many."""
    letters = "ABCDEFGHIJ"[:count]
    texts = dict(zip(letters, COLOURS))
    right = letters[place]

    def write_rows(rows: re.Match[str]) -> str:
        good, bad = rows[1].split("<<or>>")
        lines = (good if letter == right else bad for letter in letters)
        return "\n".join(line.replace("{L}", each).replace("{T}", texts[each]) for line, each in zip(lines, letters))

    reply = re.sub(r"\[\[(.*?<<or>>.*?)\]\](?!\])", write_rows, form, flags=re.DOTALL).replace("{Rl}", right.lower())
    for name, letter in zip("RXYZ", (letters[place:] + letters[:place])[:4]):
        reply = reply.replace(f"{{{name}}}", letter).replace(f"{{{name.lower()}}}", texts[letter])
    return reply


def read(reply: str, count: int, *, known: bool = True) -> str | None:
    options = COLOURS[:count] if known else []
    return read_choice(reply, "ABCDEFGHIJ"[:count], options, "What colour is the house?")


@each_case("count", [4, 10])
@each_case("case", cases("choice"))
def test_choice(case: dict[str, Any], count: int) -> None:
    for place, letter in enumerate("ABCDEFGHIJ"[:count]):
        reply = write_reply(case["reply"], place, count)
        assert read(reply, count) == (letter if case["reading"] else None), reply


@each_case("case", cases("nli"))
def test_nli(case: dict[str, Any]) -> None:
    verdict = nli_label.read_verdict(case["reply"])
    assert (verdict.value if verdict else None) == case["reading"], case["reply"]


def rate(reply: str) -> int | None:
    try:
        return judge_reply.read_verdict(reply).rating
    except ValueError:
        return None


@each_case("case", cases("judge"))
def test_judge(case: dict[str, Any]) -> None:
    assert rate(case["reply"]) == (None if case.get("refused") else case["reading"]), case["reply"]


def test_few_ratings_that_a_reader_sees_are_refused() -> None:
    judged = load("judge")
    assert sum(rate(case["reply"]) == case["reading"] for case in judged) / len(judged) >= 0.98
    assert not any(case.get("refused") and case.get("quoted") for case in judged)


STATEMENTS = [
    *("Answer: {R}", "**{R}**", "{R}) {r}", "The correct answer is {R}.", "$\\boxed{{R}}$", "{R}", "✅ {R}"),
    *("The answer is ({R}) {r}.", "### Answer\n{R}", "{R} is correct.", "{R}, since the passage says so."),
]
AFTERTHOUGHTS = [
    *("Why not the others?", "Why not {X}? The passage says otherwise.", "❌ {X}: never said.\n❌ {Y}: the opposite."),
    *("A common mistake is to pick {X}.", "Why {X} is wrong: it is never said.", "Incorrect options: {X}, {Y}."),
    *("{X} is a distractor.", "{X} would be right if the passage were about the barn.", "Many readers pick {X}."),
    *(
        "Don't fall for {X}.",
        "- {X}: {x} is wrong\n- {Y}: {y} is wrong",
        "- {X} ✗\n- {Y} ✗",
        "| {X} | ❌ |\n| {Y} | ❌ |",
    ),
    *("**Why the other options are wrong:**\n- **{X}:** not mentioned.\n- **{Y}:** the opposite.",),
    *("(Not {X}, as some might think.)", "Wrong answers:\n{X}\n{Y}\n{Z}"),
]
LISTS = [
    "Options:\n- A: red\n- B: green\n- C: blue\n- D: yellow",
    "• A. red – too early\n• B. green – see line 2\n• C. blue – hm\n• D. yellow – hm",
    "1. A: red\n2. B: green\n3. C: blue\n4. D: yellow",
    "- **A. red**: the barn.\n- **B. green**: the gate.\n- **C. blue**: the door.\n- **D. yellow**: the fence.",
]


@each_case("known", [True, False])
@each_case("gap", ["\n", "\n\n"])
@each_case("statement", STATEMENTS)
def test_a_choice_stands_whatever_comes_before_or_after_it(statement: str, gap: str, known: bool) -> None:
    forms = [*(f"{statement}{gap}{each}" for each in AFTERTHOUGHTS), *(f"{each}{gap}{statement}" for each in LISTS)]
    for form in forms:
        for place, letter in enumerate("ABCD"):
            reply = write_reply(form, place, 4)
            assert read(reply, 4, known=known) == letter, reply


LABELS = {
    "entailment": ("Entailment", "SUPPORTS"),
    "contradiction": ("Contradiction", "REFUTES"),
    "neutral": ("NotMentioned", "NOT ENOUGH INFO"),
}
HEDGES = [
    *(", although one could argue for {O}", " (though {O} is arguable)", "\n\nIt might also be read as {O}."),
    *(
        ", but I'm not fully certain.",
        "\n\nAnother annotator may choose {O}.",
        "\n\n❌ {O}\n❌ {P}",
        " rather than {O}.",
    ),
    *("\n\nIt is not {O}, because nothing in the text says that.", "\n\n- {O}: no\n- {P}: no"),
]


@each_case("hedge", HEDGES)
@each_case("statement", ["{L}", "**{L}**", "Label: {L}", "The answer is {L}", '{"label": "{L}"}', "✅ {L}"])
@each_case("verdict", LABELS)
def test_a_verdict_stands_whatever_doubt_follows_it(verdict: str, statement: str, hedge: str) -> None:
    for family in (0, 1):
        label, *others = (LABELS[each][family] for each in (verdict, *(each for each in LABELS if each != verdict)))
        for one, other in (others, others[::-1]):
            reply = statement.replace("{L}", label) + hedge.replace("{O}", one).replace("{P}", other)
            read_as = nli_label.read_verdict(reply)
            assert read_as is not None, reply
            assert read_as.value == verdict, reply


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    [
        "Why the others?\n",
        "❌ A\n",
        "| A | ",
        "1. A: ",
        "A? no. ",
        "[ ] ",
        "- [x] A\n",
        "Entailment: 0.1 ",
        "★",
        "so 3, ",
    ],
)
def test_a_hostile_reply_is_read_quickly(piece: str) -> None:
    reply = piece * (200_000 // len(piece))
    started = time.process_time()
    read(reply, 4)
    nli_label.read_verdict(reply)
    rate(reply)
    assert time.process_time() - started < 5
