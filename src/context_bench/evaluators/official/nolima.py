"""NoLiMa: is a gold answer, letter for letter, in the reply?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["NoLiMaScore"]

RULES = ("contains", "EM", "lastline_contains", "lastline_EM")


class NoLiMaScore:
    """Scores `nolima_score` by the published rule in `meta.metric`: `contains` unless another is named.

    Case counts. `EM` wants the whole reply to be an answer; the `lastline_` rules, made for chains of
    thought, look at the last line only.
    """

    name = "nolima"
    version = 2
    score_fields = ("nolima_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Look for each accepted answer."""
        golds = [" ".join(gold) for gold in gold_answers(original)]
        meta = original.get("meta")
        rule = str(meta.get("metric") or RULES[0]) if isinstance(meta, Mapping) else RULES[0]
        if not golds:
            return Scores(reason="no gold answer")
        if rule not in RULES:
            return Scores(reason=f"meta.metric must be one of {', '.join(RULES)} (got {rule!r})")
        response = response_text(processed).strip()
        if rule.startswith("lastline_"):
            response = response.split("\n")[-1]
        found = response in golds if rule.endswith("EM") else any(gold in response for gold in golds)
        return Scores({"nolima_score": float(found)})
