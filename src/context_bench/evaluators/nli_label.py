"""Natural language inference: the verdict of a reply against the gold label."""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.nli.label_reading import label_verdict, read_verdict
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["NLILabelMatch"]


class NLILabelMatch:
    """Scores `nli_accuracy`: 1.0 when the reply gives the gold verdict.

    Gold labels come in the spellings of Contract NLI, SciFact and their kin, and map to three classes:
    entailment, contradiction, neutral. A refusal is none of them. The details hold the class that was read.
    """

    name = "nli-label-match"
    version = 3
    needs_answer = True
    score_fields = ("nli_accuracy",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Read the verdict and compare."""
        golds = [" ".join(gold) for gold in gold_answers(original)]
        wanted = {verdict for gold in golds if (verdict := label_verdict(gold))}
        if not wanted:
            return Scores(reason=f"{golds[0]!r} is not a known label" if golds else "no gold label")
        verdict = read_verdict(response_text(processed))
        details = {"verdict": verdict.value if verdict else None}
        return Scores({"nli_accuracy": float(verdict in wanted)}, details=details)
