"""The overlap of a reply with a reference that is not a gold answer: a stand-in where a judge should decide.

It tells whether a system changes what a model says; it does not tell which of two answers is better.
"""

from __future__ import annotations

from typing import Any

from context_bench.evaluators.rouge import rouge_l, tokenize
from context_bench.results import Scores
from context_bench.text.golds import response_text, turn_answers

__all__ = ["ReferenceOverlap"]


class ReferenceOverlap:
    """Scores `reference_overlap`: ROUGE-L F1 with the `reference`.

    A `reference` that is a list has a text for each turn: each of the `turn_responses` is compared with its
    own, and the score is the mean over the turns that have one.
    """

    name = "reference-overlap"
    version = 2
    score_fields = ("reference_overlap",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare every turn with its reference."""
        reference = original.get("reference")
        references = [reference] if isinstance(reference, str) else list(reference or ())
        replies = turn_answers(processed) if len(references) > 1 else []
        if not replies:
            # One reply to a whole conversation answers its last turn.
            replies = [*[""] * (len(references) - 1), response_text(processed)]
        pairs = [(said, wanted) for said, wanted in zip([*replies, *[""] * len(references)], references) if wanted]
        overlaps = [_score_overlap(str(said or ""), str(wanted)) for said, wanted in pairs if tokenize(str(wanted))]
        if not overlaps:
            return Scores(reason="no reference")
        return Scores({"reference_overlap": sum(overlaps) / len(overlaps)})


def _score_overlap(said: str, wanted: str) -> float:
    return rouge_l(tokenize(said), tokenize(wanted)).f1
