"""LoCoMo's official scorer, rule by rule: the same numbers as its authors' code gives.

Category 2 and 4: F1 of stemmed words. 3: against the gold up to its first ";". 1: gold and answer are split at commas,
and each part of the gold takes its best. 5: the answer must hold "no information available" or "not mentioned".
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from context_bench.memory.datasets.locomo import CATEGORIES
from context_bench.memory.scoring.question_record import read_question
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text
from context_bench.text.porter import stem_word
from context_bench.text.squad import token_f1

__all__ = ["LocomoScore", "is_official_refusal", "score_answer"]

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the|and)\b")
_CORRUPTING = ("H", "T", "A", "M", "I")


class LocomoScore:
    """Scores `locomo_f1` (categories 1 to 4), `locomo_refusal` (5), each category by name, and `locomo_official`.

    `locomo_f1_clean` is `locomo_f1` without the questions whose gold is known to be wrong. `locomo_official` is over
    all five categories, as the authors' code adds them up; always refusing earns 0.228 there, so it is no headline.
    """

    name = "locomo"
    version = 2
    score_fields = (
        *("locomo_f1", "locomo_f1_clean", "locomo_refusal", "locomo_official"),
        *(f"locomo_{name}" for name in CATEGORIES.values()),
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Score one answer by the rule of its category."""
        record = read_question(original)
        category = record.get("category") if record else None
        if record is None or category not in CATEGORIES:
            return Scores(reason="not a question of LoCoMo")
        if not isinstance(processed.get("response"), str):
            return Scores(reason="the system gave no answer")
        answer = response_text(processed)
        if category == 5:
            value = float(is_official_refusal(_read_choice(answer, record.get("options"))))
            scores = {"locomo_refusal": value}
        else:
            golds = gold_answers(original)
            if not golds:
                return Scores(reason="no gold answer")
            value = score_answer(category, answer, golds[0][0])
            scores = {"locomo_f1": value}
            if record.get("known_error") not in _CORRUPTING:
                scores["locomo_f1_clean"] = value
        return Scores({**scores, "locomo_official": value, f"locomo_{CATEGORIES[category]}": value})


def score_answer(category: int, answer: str, gold: str) -> float:
    """Score an answer of category 1 to 4."""
    if category == 3:
        gold = gold.split(";")[0].strip()
    if category != 1:
        return _score_words(answer, gold)
    parts = [part.strip() for part in answer.split(",")]
    golds = [part.strip() for part in gold.split(",")]
    return sum(max(_score_words(part, each) for part in parts) for each in golds) / len(golds)


def is_official_refusal(answer: str) -> bool:
    """Tell whether an answer to category 5 is right by the official rule."""
    lowered = answer.lower()
    return "no information available" in lowered or "not mentioned" in lowered


def _score_words(answer: str, gold: str) -> float:
    return token_f1(_split_stems(answer), _split_stems(gold))[0]


def _split_stems(text: str) -> list[str]:
    plain = text.replace(",", "").lower().translate(_WITHOUT_PUNCTUATION)
    return [stem_word(word) for word in _ARTICLES.sub(" ", plain).split()]


def _read_choice(answer: str, options: Any) -> str:
    """Replace the letter of a choice by its text, as the official code does: `a`, `(a)`, and no other form."""
    chosen = answer.strip().lower()
    if not isinstance(options, Mapping) or len(chosen) not in (1, 3):
        return answer
    letter = "a" if chosen in ("a", "(a)") else "b"
    return str(options[letter])
