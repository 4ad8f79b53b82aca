"""Summaries by ROUGE-1, ROUGE-2 and ROUGE-Lsum, equal to the `rouge-score` package."""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.rouge import rouge_lsum, rouge_n, tokenize
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["RougeSuite"]


class RougeSuite:
    """Scores `rouge_1_f1`, `rouge_2_f1` and `rouge_lsum_f1`, each the best over the references.

    ROUGE-Lsum takes each line as a sentence, as `rouge-score` does by default.
    """

    name = "rouge-suite"
    version = 2
    score_fields = ("rouge_1_f1", "rouge_2_f1", "rouge_lsum_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare the response with each reference and keep the best of each score."""
        references = ["\n".join(gold) for gold in gold_answers(original)]
        if not references:
            return Scores(reason="no reference summary")
        response = response_text(processed)
        tokens = tokenize(response)
        best = [0.0, 0.0, 0.0]
        for reference in references:
            wanted = tokenize(reference)
            rouges = (rouge_n(tokens, wanted, 1), rouge_n(tokens, wanted, 2), rouge_lsum(response, reference))
            best = [max(value, rouge.f1) for value, rouge in zip(best, rouges)]
        return Scores(dict(zip(self.score_fields, best)))
