"""The official DROP scores: exact match and an F1 that pairs predicted with gold spans.

A response that is a text is one span, as in the official evaluation: nothing is cut at commas or at
"and". A system that returns a list of texts predicts several. Reasoning in think tags is not part of
the answer. F1 is rounded to two digits for each example, as published.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from context_bench.evaluators.assignment import find_best_assignment
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, is_blank, response_text

__all__ = ["DropScore", "drop_em_f1", "normalize_span"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def normalize_span(text: str) -> str:
    """Lower case, no articles, no punctuation outside numbers, and every number as a float."""
    return " ".join(" ".join(map(_normalize_token, re.split("[ -]", text.lower()))).split())


def _normalize_token(token: str) -> str:
    if not _is_number(token):
        token = token.translate(_WITHOUT_PUNCTUATION)
    if _is_number(token):
        token = str(float(token))
    return _ARTICLES.sub(" ", token)


def _compute_pair_f1(predicted: set[str], gold: set[str]) -> float:
    numbers = {word for word in gold if _is_number(word)}
    if numbers and not numbers & predicted:
        return 0.0
    common = len(predicted & gold)
    precision = common / len(predicted) if predicted else 1.0
    recall = common / len(gold) if gold else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def drop_em_f1(prediction: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1 of predicted against gold spans, both given raw."""
    predicted, wanted = [normalize_span(span) for span in prediction], [normalize_span(span) for span in gold]
    exact = float(set(predicted) == set(wanted) and len(predicted) == len(wanted))
    table = [[_compute_pair_f1(set(given.split()), set(span.split())) for given in predicted] for span in wanted]
    total = sum(table[row][column] for row, column in find_best_assignment(table))
    # Rounded as numpy does it, which is not how Python rounds 0.225.
    return exact, round(total / max(len(predicted), len(wanted)) * 100) / 100


class DropScore:
    """Scores `drop_em` and `drop_f1`, each the best over the accepted answers; a gold is a tuple of spans."""

    name = "drop"
    version = 3
    score_fields = ("drop_em", "drop_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare the predicted spans with each accepted answer."""
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no gold answer")
        if is_blank(processed):
            return dict.fromkeys(self.score_fields, 0.0)
        response = processed.get("response")
        if isinstance(response, list | tuple):
            prediction = [str(span) for span in response]
        else:
            prediction = [response_text(processed)]
        pairs = [drop_em_f1(prediction, gold) for gold in golds]
        return Scores({"drop_em": max(em for em, _ in pairs), "drop_f1": max(f1 for _, f1 in pairs)})
