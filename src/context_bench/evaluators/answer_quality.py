"""Answers against gold answers by the words they share, after SQuAD v1.1.

Text is lower-cased, stripped of punctuation and of the articles a, an and the. Each score is the best
over all accepted answers.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any

from context_bench.results import Scores
from context_bench.text.golds import Gold, gold_answers, response_text, split_normalized, token_f1

_split_gold = lru_cache(maxsize=1024)(split_normalized)  # each system's answer is compared with the same gold


class AnswerQuality:
    """Scores `f1`, `exact_match`, `recall` (share of the gold's words given) and `contains`.

    `contains` is 1.0 when the normalised gold is a substring of the normalised response. A gold in parts
    is contained when every part is. A reply without any text scores 0, whatever the gold.
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
        words = split_normalized(text)
        response = " ".join(words)
        best = _compare(golds[0], response, words)
        for gold in golds[1:]:
            best = tuple(map(max, best, _compare(gold, response, words)))
        return dict(zip(self.score_fields, best))


def _compare(gold: Gold, response: str, words: list[str]) -> tuple[float, ...]:
    parts = [_split_gold(part) for part in gold]
    whole = parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))
    exact = float(words == whole)
    if not whole:  # the gold was nothing but articles and punctuation: only equality can be judged
        return exact, exact, exact, exact
    f1, recall = token_f1(words, whole)
    return f1, exact, recall, float(all(" ".join(part) in response for part in parts))
