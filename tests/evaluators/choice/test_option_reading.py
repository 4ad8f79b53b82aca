"""Ways of naming an option that have a rule of their own, and that no letter is favoured by the rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import MultipleChoiceAccuracy
from context_bench.evaluators.choice.option_reading import read_choice

CITIES = ["Lyon", "Paris", "Nice", "New York", "New York City"]
REPLIES = Path(__file__).parents[1] / "replies"
SCORER = MultipleChoiceAccuracy()


def letter(reply: str, count: int = 10) -> str | None:
    return read_choice(reply, "ABCDEFGHIJ"[:count])


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("My answer is A\nBecause the shop owed a duty of care.", "A"),
        ("So it has to be A\nThe others are too late.", "A"),
        ("It must be I\nNothing else is an archer.", "I"),
        ("I'd say that A wins by elimination.", "A"),
        ("In the end A covers every case, so A.", "A"),
        ("as far as I\nknow this is C", "C"),
        ("A salt makes precomputed tables useless.", None),
        ("A gas expands when it is heated.", None),
        ("A series of tests is needed.", None),
        ("I guess nobody knows.", None),
    ],
)
def test_a_and_i_are_letters_where_they_cannot_be_words(reply: str, expected: str | None) -> None:
    assert letter(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "I can't answer a question about your city.",
        "Let me answer a related point first.",
        "It is hard to choose a winner here.",
        "Nobody could pick a better example.",
    ],
)
def test_the_article_after_a_verb_is_no_choice(reply: str) -> None:
    assert letter(reply) is None


@pytest.mark.parametrize(
    "reply",
    ["The beaker holds little (0 g).", "We add two spoons (5 g each, then 10 g).", "It draws 5 A.", "about 20 C"],
)
def test_a_letter_after_a_number_is_a_unit(reply: str) -> None:
    assert letter(reply) is None


def test_the_number_of_a_question_makes_no_unit_of_the_letter_after_it() -> None:
    assert letter("Question 5 C") == "C"


@pytest.mark.parametrize("reply", ["B (the capital)", "B (it is the seat of government).\nSydney is larger."])
def test_a_letter_may_be_glossed_in_brackets(reply: str) -> None:
    assert letter(reply) == "B"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Lyon comes to mind, as does Nice. But the seat of government? Paris.", "B"),
        ("People think of Nice, the answer to many questions. Paris", "B"),
        ("The choice is between Lyon and Nice.\n\nLet me know if you need more!", None),
        ("It is often taken for Lyon. Paris.\n\nHope this helps! 😊", "B"),
    ],
)
def test_a_last_sentence_that_is_an_option_wins(reply: str, expected: str | None) -> None:
    assert read_choice(reply, "ABCDE", CITIES) == expected


@each_case(
    ("options", "reply", "expected"),
    [
        (["1/2", "3/4", "2/3"], "That makes 0.75.", "B"),
        (["0.2", "0.02", "0.25"], "The chance is 25%.", "C"),
        (["10%", "20%", "25%"], r"The discount is $\boxed{20\%}$.", "B"),
        ([r"$\frac{1}{3}$", r"$\frac{1}{2}$", "$1$"], "so the value is **1/3**.", "A"),
        (["1,000", "100,000", "1,000,000"], "Final answer: $10^6$", "C"),
        (["1,500 m", "15 km", "150 m", "1.5 m"], "In all 1500 metres.", "A"),
        (["1,500 m", "15 km", "150 m", "1.5 m"], "That is 15 m.", None),
        (["1,500 m", "15 km", "150 m", "1.5 m"], "It comes to 1.5 km.", "A"),
        (["5 kJ", "10 kJ", "15 kJ"], "which works out at 10,000 J.", "B"),
        (["30 s", "2 min", "1 h"], "It takes 120 seconds.", "B"),
        (["120 N", "240 N"], r"$F = 480/2 = 240\,\text{N}$", "B"),
        ([r"$2\pi$", r"$\pi$", r"$\pi/2$"], "Final answer: π/2", "C"),
        ([r"$\sqrt{2}$", r"$\sqrt{3}$"], "So the diagonal is √3.", "B"),
        (["12", "24", "36"], "The total is thirty-six.", "C"),
        (["12", "24", "36"], "There are 12 months, and with 3 a month that makes 12 × 3 = 36.", "C"),
        (["12", "24", "36"], "It is either 12 or 36.", None),
        (["12", "24", "36"], "It cannot be 24.", None),
        (["red", "blue"], "The wavelength is 620 nm.", None),
    ],
)
def test_values_are_compared_as_values(options: list[str], reply: str, expected: str | None) -> None:
    assert read_choice(reply, "ABCDEFG"[: len(options)], options) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Everything in the list except C has strings.", "C"),
        ("All of these but C are mammals.", "C"),
        ("Every option apart from B is wrong.", "B"),
        ("That makes D the odd one out.", "D"),
        ("The odd one out is B.", "B"),
        ("B is the exception.", "B"),
        ("I could live with anything but C.", None),
    ],
)
def test_the_exception_is_chosen(reply: str, expected: str | None) -> None:
    assert letter(reply, 4) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which of these is NOT a mammal?", "C"),
        ("All of the following are mammals EXCEPT:", "C"),
        ("Which animal is the odd one out?", "C"),
        ("Which of these animals isn't a mammal?", "C"),
        ("Which of these is a mammal?", None),
        ("They were NOT in the same zoo. Which one is the largest?", None),
    ],
)
def test_what_is_not_so_answers_a_question_for_the_exception(question: str, expected: str | None) -> None:
    options = ["Whale", "Bat", "Shark", "Dolphin"]
    assert read_choice("C is not a mammal, it is a fish.", "ABCD", options, question) == expected
    assert read_choice("A shark is not a mammal.", "ABCD", options, question) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("so the second option is right.", "B"),
        ("I'd go with the last choice.", "E"),
        ("Option 3. A salt makes tables useless.", "C"),
        ("The very first option is the right one.", "A"),
        ("The first option is tempting, but the farthest is the fourth one.", "D"),
        ("The 2nd option.", "B"),
        ("I choose option two.", "B"),
        ("It is not the first option but the third one.", "C"),
        ("This is the drug of first choice.", None),
        ("The first one was built in 1900.", None),
        ("Option 9", None),
    ],
)
def test_options_are_named_by_position(reply: str, expected: str | None) -> None:
    assert read_choice(reply, "ABCDE", ["Red wine", "Ale", "Cider", "Mead", "Stout"]) == expected


def test_the_last_option_is_unknown_where_the_options_are() -> None:
    assert letter("I'd go with the last option.") is None


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("❌ A – neurotransmitter\n✅ B – hormone\n❌ C – neurotransmitter\n❌ D – enzyme", "B"),
        ("A. Grows up from the floor. Incorrect.\n\nB. Hangs from the ceiling. Correct.", "B"),
        ("- A) too early (wrong)\n- B) too late (wrong)\n- C) fits (correct)\n- D) never (wrong)", "C"),
        ("### Option C — why not\n\nToo late.\n\n### Option D — why yes\n\nIt came first.", "D"),
        ("| A. Kidney | No |\n| B. Liver | Yes |\n| C. Spleen | No |", "B"),
        ("| A. Kidney | Yes |\n| B. Liver | Yes |\n| C. Spleen | No |", None),
    ],
)
def test_lines_that_judge_each_option(reply: str, expected: str | None) -> None:
    assert letter(reply, 4) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('A student marked "The answer is D" and lost the point. Hadrian built it, so mark C.', "C"),
        ("Initially I was going to say C. On reflection the median holds. Final: B.", "B"),
        ("Many students would choose A. The right one is D.", "D"),
        ("The value is 240, so don't be fooled by option C. I take B.", "B"),
        ("La respuesta correcta es la opción B. A veces se confunde con Neruda (D).", "B"),
        ("A would be worse.\n\nBest next step: C – check potassium first.", "C"),
        ("C it is.", "C"),
    ],
)
def test_what_others_think_or_was_thought_before_is_no_choice(reply: str, expected: str) -> None:
    assert letter(reply, 4) == expected


def test_the_only_option_in_bold_is_where_a_reply_arrives() -> None:
    reply = "Some (option A) ask for duties, others (option B) for consent. Here what counts is **welfare**."
    assert read_choice(reply, "ABC", ["duty", "consent", "welfare"]) == "C"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("A queue is first in, first out. A stack.", "B"),
        ("A queue is first in, first out, so that's not it. Stack it is.", "B"),
        ("- Queue: in order → no\n- Stack: last in first out → yes\n- Heap: by priority → no", "B"),
        ("The order A-B-A-C-A is that of a stack.", "B"),
        ("Everyone says queue, yet the text clearly states stack.", "B"),
    ],
)
def test_texts_of_options_with_their_articles(reply: str, expected: str) -> None:
    assert read_choice(reply, "ABCD", ["Queue", "Stack", "Heap", "Tree"]) == expected


# ---- no letter is favoured -------------------------------------------------------------------------------------------

LONE_LETTER = re.compile(r"(?<![\w'°])[A-J](?![\w'+#])")
_LABEL = r"^\W*(?:Option )?[A-J](?:[).:]|\W* [-–—:])"
BOUND_TO_ITS_LETTERS = re.compile(
    r"(?<!\w)(?:I|[b-j])(?!\w)|(?<!\w)a(?=[).:\]]|\W*$)|(?<!\w)A(?= [a-z])|\d ?[A-J]\b|[A-J]-[A-J]"
    r"|\b[A-J] (?:to|through) [A-J]\b|\b(?:first|second|third|fourth|fifth|last|option \d|above)\b"
    rf"|{_LABEL}[^\0]*{_LABEL}",
    re.MULTILINE,
)
"""Replies with words or units that look like letters, small letters, positions, or a list in alphabetic order."""


def renamed_cases() -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, str]]]:
    """Each reply of the banks that names options by capital letters, and the same with other letters for them."""
    for path in sorted(REPLIES.glob("multiple_choice*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            choices, reply = case["example"].get("choices"), case["response"]
            if not isinstance(choices, list) or "correct_letter" not in case["example"]:
                continue
            letters = "ABCDEFGHIJ"[: len(choices)]
            found = {*LONE_LETTER.findall(reply)}
            texts = " ".join(map(str, choices))
            if not found or not found <= {*letters} or BOUND_TO_ITS_LETTERS.search(reply) or LONE_LETTER.search(texts):
                continue
            for shift in range(1, len(letters)):
                names = dict(zip(letters, letters[shift:] + letters[:shift]))
                example = {**case["example"], "choices": choices[-shift:] + choices[:-shift]}
                example["correct_letter"] = names[case["example"]["correct_letter"]]
                renamed = LONE_LETTER.sub(lambda found, names=names: names[found[0]], reply)  # type: ignore[misc]
                yield case, {"example": example, "response": renamed}, names


def test_no_letter_is_favoured() -> None:
    tried = 0
    for case, renamed, names in renamed_cases():
        chosen = SCORER.score(case["example"], {"response": case["response"]}).details["letter"]  # type: ignore[attr-defined]
        expected = names[chosen] if chosen else None
        scores = SCORER.score(renamed["example"], {"response": renamed["response"]})
        assert scores.details["letter"] == expected, f"{renamed['response']!r}, which was {case['response']!r}"  # type: ignore[attr-defined]
        tried += 1
    assert tried > 500
