"""Did the memory find the turns that answer the question? Recall, precision and nDCG against evidence ids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.memory.scoring.question_record import read_question, read_retrieved, read_shown
from context_bench.results import Scores

__all__ = ["DEPTHS", "MemoryRetrieval", "measure_ranking"]

DEPTHS = (1, 5, 10, 20)
"""The numbers of memories after which recall is measured."""


class MemoryRetrieval:
    """Scores `retrieval_recall`, `retrieval_precision`, and for ranked lists `retrieval_recall_at_<k>` and `_ndcg`.

    Only what fits whole into the budget of the reader counts. A memory stands for the turns in its `ids`. Recall is the
    share of the evidence turns that are among them, precision the share of memories that stand for an evidence turn;
    for recall at k the first k memories count. A list without a `score` on any item is not a ranking (the whole history
    is none): it has recall and precision alone. Questions without evidence have no score: LoCoMo's official code counts
    them as 1.
    """

    name = "memory-retrieval"
    version = 2
    score_fields = (
        *("retrieval_recall", "retrieval_precision", "retrieval_ndcg"),
        *(f"retrieval_recall_at_{depth}" for depth in DEPTHS),
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Compare the ids of what was found with those of the evidence."""
        record, found, shown = read_question(original), read_retrieved(processed), read_shown(processed)
        if record is None:
            return Scores(reason="not a question about a conversation")
        evidence = [str(each) for each in record.get("evidence_ids") or ()]
        if not evidence:
            return Scores(reason="the question has no evidence ids")
        if found is None or shown is None:
            return Scores(reason="the system does not say what it retrieved")
        if found and not any(item.get("ids") for item in found):
            return Scores(reason="the retrieved memories name no turns (ids)")
        return Scores(measure_ranking(shown, evidence))


def measure_ranking(found: Sequence[Mapping[str, Any]], evidence: Sequence[str]) -> dict[str, float]:
    """Measure a list of memories against the ids of the evidence turns."""
    relevant = set(evidence)
    groups = [relevant.intersection(map(str, item.get("ids") or ())) for item in found]
    scores = {"retrieval_recall": _count_found(groups) / len(relevant)}
    if found:
        scores["retrieval_precision"] = sum(map(bool, groups)) / len(groups)
    if not found or any(item.get("score") is not None for item in found):
        for depth in DEPTHS:
            scores[f"retrieval_recall_at_{depth}"] = _count_found(groups[:depth]) / len(relevant)
        scores["retrieval_ndcg"] = _measure_ndcg(groups, len(relevant))
    return scores


def _count_found(groups: Sequence[set[str]]) -> int:
    return len(set[str]().union(*groups))


def _measure_ndcg(groups: Sequence[set[str]], relevant: int) -> float:
    """Each memory gains by the evidence turns that none before it had; the ideal has one in each place."""
    seen: set[str] = set()
    gain = 0.0
    for place, group in enumerate(groups):
        gain += len(group - seen) / math.log2(place + 2)
        seen |= group
    ideal = sum(1 / math.log2(place + 2) for place in range(relevant))
    # A memory that sums up several turns may beat an ideal of single ones.
    return min(1.0, gain / ideal)
