"""Answers as HotpotQA and 2WikiMultihopQA score them: SQuAD's measures, but a yes or no is right or wrong.

Where the gold or the answer is yes, no or noanswer, sharing words earns nothing unless they are equal.
"""

from __future__ import annotations

from typing import Any

from context_bench.results import Scores
from context_bench.text.golds import gold_answers, is_blank, response_text
from context_bench.text.squad import normalize_answer, token_f1

__all__ = ["HotpotScore"]

_VERDICTS = frozenset({"yes", "no", "noanswer"})


class HotpotScore:
    """Scores `hotpot_em` and `hotpot_f1`, each the best over the accepted answers."""

    name = "hotpot"
    version = 3
    score_fields = ("hotpot_em", "hotpot_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare the response with each accepted answer."""
        golds = [normalize_answer(" ".join(gold)) for gold in gold_answers(original)]
        if not golds:
            return Scores(reason="no gold answer")
        if is_blank(processed):
            return dict.fromkeys(self.score_fields, 0.0)
        response = normalize_answer(response_text(processed))
        return Scores(
            {
                "hotpot_em": float(response in golds),
                "hotpot_f1": max(_compute_f1(response, gold) for gold in golds),
            }
        )


def _compute_f1(response: str, gold: str) -> float:
    if response == gold:
        return 1.0
    return 0.0 if _VERDICTS & {response, gold} else token_f1(response.split(), gold.split())[0]
