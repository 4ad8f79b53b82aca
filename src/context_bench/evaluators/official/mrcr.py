"""MRCR: how much of the wanted reply was given back, character by character, after the prefix that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import SequenceMatcher
from typing import Any

from context_bench.results import Scores
from context_bench.text.golds import gold_answers, response_text

__all__ = ["MRCRScore"]


class MRCRScore:
    """Scores `mrcr_score`: the ratio of Python's SequenceMatcher, or 0 where `meta.prefix` does not come first."""

    name = "mrcr"
    version = 2
    score_fields = ("mrcr_score",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Compare what follows the prefix."""
        golds = [" ".join(gold) for gold in gold_answers(original)]
        meta = original.get("meta")
        prefix = meta.get("prefix") if isinstance(meta, Mapping) else None
        if not golds:
            return Scores(reason="no gold answer")
        if not prefix:
            return Scores(reason="no meta.prefix")
        response = response_text(processed)
        if not response.startswith(prefix):
            return Scores({"mrcr_score": 0.0})
        given = response.removeprefix(prefix)
        ratios = (SequenceMatcher(None, given, gold.removeprefix(prefix)).ratio() for gold in golds)
        return Scores({"mrcr_score": max(ratios)})
