"""Did the memory find the turns that answer the question? Recall, precision and nDCG against evidence ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from context_bench.memory.scoring.question_record import read_question, read_retrieved, read_shown
from context_bench.memory.scoring.reasons import NO_IDS
from context_bench.results import Scores
from context_bench.text.shown_turns import list_shown_turns

__all__ = ["DEPTHS", "MemoryRetrieval", "measure_ranking"]

DEPTHS = (1, 5, 10, 20)
"""The numbers of memories after which recall is measured."""


class MemoryRetrieval:
    """Scores `retrieval_recall`, `retrieval_precision`, `retrieval_recall_at_<k>` and `retrieval_ndcg`.

    Only what fits whole into the budget of the reader counts. A memory stands for a turn of its `ids` where it shows
    the words of that turn, or enough of them to recover what it said. Recall is the share of the evidence turns that
    are shown, precision the share of memories that show one; for recall at k the first k memories count.
    `retrieval_recall_claimed` is the share that is named, shown or not: a memory that keeps facts in its own words has
    a recall between the two. The list of a control is not a ranking: it has recall and precision alone. Questions
    without evidence have no score: LoCoMo's official code counts them as 1.
    """

    name = "memory-retrieval"
    version = 3
    score_fields = (
        *("retrieval_recall", "retrieval_recall_claimed", "retrieval_precision", "retrieval_ndcg"),
        *(f"retrieval_recall_at_{depth}" for depth in DEPTHS),
    )

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> Scores:
        """Compare the turns that are named and shown with those of the evidence."""
        record, found, whole = read_question(original), read_retrieved(processed), read_shown(processed)
        if record is None:
            return Scores(reason="not a question about a conversation")
        evidence = {str(each) for each in record.get("evidence_ids") or ()}
        if not evidence:
            return Scores(reason="the question has no evidence ids")
        if found is None or whole is None:
            return Scores(reason="the system does not say what it retrieved")
        if found and not any(item.get("ids") for item in found):
            return Scores(reason=NO_IDS)
        shown = [evidence & turns for turns in list_shown_turns(whole, original, processed)]
        if processed.get("is_control"):
            return Scores(_measure_set(shown, len(evidence)))
        named = [evidence.intersection(map(str, item.get("ids") or ())) for item in whole]
        claimed = {"retrieval_recall_claimed": _count_found(named) / len(evidence)}
        return Scores({**measure_ranking(shown, len(evidence)), **claimed})


def measure_ranking(groups: Sequence[set[str]], relevant: int) -> dict[str, float]:
    """Measure a ranking: the evidence turns that each memory shows, of so many that there are."""
    scores = _measure_set(groups, relevant)
    for depth in DEPTHS:
        scores[f"retrieval_recall_at_{depth}"] = _count_found(groups[:depth]) / relevant
    return {**scores, "retrieval_ndcg": _measure_ndcg(groups, relevant)}


def _measure_set(groups: Sequence[set[str]], relevant: int) -> dict[str, float]:
    precision = {"retrieval_precision": sum(map(bool, groups)) / len(groups)} if groups else {}
    return {"retrieval_recall": _count_found(groups) / relevant, **precision}


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
