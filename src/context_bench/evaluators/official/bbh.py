"""BIG-Bench Hard: what follows "the answer is" against the target.

A target such as (B) is read as a choice among the options that the task lists. All other targets must be
met word for word; only case, the spaces between words, marks around the answer and a final full stop are passed over.
"""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import Any

from context_bench.evaluators.choice.option_reading import read_choice
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["BBHScore", "find_stated_answer"]

_LETTER = re.compile(r"\(([A-Z])\)")
_OPTION = re.compile(r"(?m)^\(([A-Z])\)[ \t]*(.*)$")
_STATED = re.compile(r"(?i)\banswer(?:\W{0,3}\s+is\b|\s*[*_]*:)[\s*_:]*|\\boxed\{")
_SENTENCE_END = re.compile(r"\.(?=\s)|\n")
_SHOWN = 200
_AROUND = " \t\r\n*_`\"'“”‘’$"


class BBHScore:
    """Scores `bbh_accuracy`: 1.0 when the reply's answer is the target of the task."""

    name = "bbh"
    version = 3
    needs_answer = True
    score_fields = ("bbh_accuracy",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Read the answer in the form that the target has, and compare."""
        golds = [" ".join(gold) for gold in gold_answers(original)]
        if not golds:
            return Scores(reason="no target")
        reply = response_text(processed)
        letters = [found[1] for gold in golds if (found := _LETTER.fullmatch(gold.strip()))]
        if letters:
            chosen = _read_letter(reply, str(original.get("question") or original.get("context") or ""), letters[0])
            return Scores({"bbh_accuracy": float(chosen in letters)}, details={"answer": chosen})
        said = find_stated_answer(reply)
        right = _fold_case(said) in map(_fold_case, golds)
        return Scores({"bbh_accuracy": float(right)}, details={"answer": said[:_SHOWN]})


def _read_letter(reply: str, task: str, correct: str) -> str | None:
    """Read the letter that the reply chooses among the options of the task."""
    options = dict(_OPTION.findall(task))
    letters = ascii_uppercase[: max(len(options), ascii_uppercase.index(correct) + 1)]
    texts = [options[letter] for letter in letters] if [*options] == [*letters] else []
    return read_choice(reply, letters, texts)


def find_stated_answer(reply: str) -> str:
    """Find what follows the last "the answer is", up to the end of the sentence; without one the last line."""
    text = reply.strip()
    stated = list(_STATED.finditer(text))
    if stated and (said := _trim(_SENTENCE_END.split(text[stated[-1].end() :].lstrip(), maxsplit=1)[0])):
        return said.partition("}")[0] if stated[-1][0].endswith("{") else said
    return _trim(text.rpartition("\n")[2])


def _trim(text: str) -> str:
    return text.strip(_AROUND).removesuffix(".").strip(_AROUND)


def _fold_case(text: str) -> str:
    return " ".join(text.casefold().split())
