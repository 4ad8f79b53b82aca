"""Answers against gold answers by the words they share, after SQuAD v1.1.

Text is lower-cased, stripped of punctuation and of the articles a, an and the. Each score is the best
over all accepted answers.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from typing import Any

from context_bench.golds import Gold, gold_answers, response_text
from context_bench.results import Scores

__all__ = ["AnswerQuality", "normalize", "token_f1"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize(text: str) -> str:
    """SQuAD v1.1: lower case, no punctuation, no articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def token_f1(prediction: list[str], gold: list[str]) -> tuple[float, float]:
    """F1 and recall of two bags of words."""
    common = sum((Counter(prediction) & Counter(gold)).values())
    if not common:
        return 0.0, 0.0
    precision, recall = common / len(prediction), common / len(gold)
    return 2 * precision * recall / (precision + recall), recall


class AnswerQuality:
    """Scores `f1`, `exact_match`, `recall` (share of the gold's words given) and `contains`.

    `contains` is 1.0 when the normalised gold is a substring of the normalised response. A gold in parts
    is contained when every part is.
    """

    name = "answer-quality"
    version = 1
    score_fields = ("f1", "exact_match", "recall", "contains")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare the response with each accepted answer and keep the best of each score."""
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no gold answer")
        response = normalize(response_text(processed))
        words = response.split()
        best = [0.0, 0.0, 0.0, 0.0]
        for gold in golds:
            best = [max(pair) for pair in zip(best, _compare(gold, response, words))]
        return Scores(dict(zip(self.score_fields, best)))


def _compare(gold: Gold, response: str, words: list[str]) -> tuple[float, float, float, float]:
    parts = [normalize(part) for part in gold]
    whole = " ".join(parts)
    exact = float(response == whole)
    if not whole.strip():  # the gold was nothing but articles and punctuation: only equality can be judged
        return exact, exact, exact, exact
    f1, recall = token_f1(words, whole.split())
    return f1, exact, recall, float(all(part in response for part in parts))
