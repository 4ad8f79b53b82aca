"""Compares answers with gold answers by shared words, after SQuAD v1.1.

Text is lower-cased, stripped of punctuation and of the articles a, an and the. Each score is the best
over all accepted answers.
"""

from __future__ import annotations

from typing import Any

from context_bench.results import Scores
from context_bench.text.golds import compare_words, gold_answers, response_text


class AnswerQuality:
    """Scores `f1`, `exact_match`, `recall` (share of the gold's words given) and `contains`.

    `contains` is 1.0 when the normalised gold is a substring of the normalised response. A gold in parts is contained
    when the response contains every part. A reply without any text scores 0, whatever the gold.
    """

    name = "answer-quality"
    version = 3
    score_fields = ("f1", "exact_match", "recall", "contains")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no gold answer")
        text = response_text(processed)
        if not text.strip() and not processed.get("tool_calls"):
            return dict.fromkeys(self.score_fields, 0.0)
        return dict(zip(self.score_fields, compare_words(text, golds)))
