"""Multiple choice: compares the letter that a reply chooses with the correct letter."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from context_bench.evaluators.choice.option_reading import read_choice
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

DEFAULT_OPTIONS = 10
_LETTER = re.compile(r"\W*([A-Za-z])\W*")


class MultipleChoiceAccuracy:
    """Scores `mc_accuracy`: 1.0 when the reply chooses the correct letter, and no other.

    Only letters of existing options count: one for each of the `choices`, or A to J without `choices`. A reply that
    gives the text or the value of exactly one option chooses it. Without a `correct_letter`, the correct letter is that
    of the choice which equals the `answer`. The details contain the letter that was read from the reply.
    """

    name = "multiple-choice-accuracy"
    version = 3
    needs_answer = True
    score_fields = ("mc_accuracy",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        options = list_option_texts(original)
        correct = find_correct_letter(original, options)
        if correct is None:
            return Scores(reason="no correct_letter, and no answer that is one of the choices")
        count = len(options) or max(DEFAULT_OPTIONS, ascii_uppercase.index(correct) + 1)
        question = str(original.get("question") or "")
        chosen = read_choice(response_text(processed), ascii_uppercase[:count], options, question)
        return Scores({"mc_accuracy": float(chosen == correct)}, details={"letter": chosen})


def list_option_texts(example: Mapping[str, Any]) -> list[str]:
    """Return the texts of the options in their order; `choices` may be a list, {"text": [...]} or {"A": ...}."""
    choices = example.get("choices")
    if isinstance(choices, Mapping):
        choices = choices["text"] if isinstance(choices.get("text"), list) else list(choices.values())
    if not isinstance(choices, list | tuple):
        return []
    return [str(choice) for choice in choices[: len(ascii_uppercase)]]


def find_correct_letter(example: Mapping[str, Any], options: list[str]) -> str | None:
    """Return the gold letter: the given letter, or the letter of the only option that equals the answer."""
    given = _LETTER.fullmatch(str(example.get("correct_letter") or ""))
    if given:
        return given[1].upper()
    if not options:
        return None
    wanted = {" ".join(" ".join(gold).casefold().split()) for gold in gold_answers(example)}
    same = [place for place, option in enumerate(options) if " ".join(option.casefold().split()) in wanted]
    if len(same) == 1:
        return ascii_uppercase[same[0]]
    letters = {match[1].upper() for answer in wanted if (match := _LETTER.fullmatch(answer))}
    if not same and len(letters) == 1 and letters <= {*ascii_uppercase[: len(options)]}:
        return letters.pop()
    return None
