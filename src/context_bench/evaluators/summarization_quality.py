"""Summaries against reference summaries by ROUGE-L, equal to the `rouge-score` package."""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.rouge import rouge_l, tokenize
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["SummarizationQuality"]


class SummarizationQuality:
    """Scores `rouge_l_precision`, `rouge_l_recall` and `rouge_l_f1`.

    With several references all three are those of the reference with the best F1, the first of equals.
    """

    name = "summarization-quality"
    version = 2
    score_fields = ("rouge_l_precision", "rouge_l_recall", "rouge_l_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare the response with each reference and keep the best one."""
        golds = gold_answers(original)
        if not golds:
            return Scores(reason="no reference summary")
        response = tokenize(response_text(processed))
        best = max((rouge_l(response, tokenize("\n".join(gold))) for gold in golds), key=lambda rouge: rouge.f1)
        return Scores(dict(zip(self.score_fields, best)))
