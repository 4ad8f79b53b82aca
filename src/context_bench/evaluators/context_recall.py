"""Did what the answer needs survive in the context that the system put out?

This needs no model, so it is the base of every comparison without a network. Texts are compared word by
word: layout, case and punctuation may change (a minified JSON keeps its facts), words may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.golds import evidence_texts, gold_answers
from context_bench.results import Scores
from context_bench.words import split_words

__all__ = ["ContextRecall", "words"]


def words(text: str) -> str:
    """The words of a text, case-folded, each between single spaces: `in` then finds whole words only."""
    return f" {' '.join(split_words(text))} "


class ContextRecall:
    """Scores `evidence_recall` and `answer_in_context`; for rerankers `recall_at_k`, `ndcg` and `mrr`.

    `evidence_recall` is the share of the evidence spans that are still there, each in one piece;
    `answer_in_context` is 1.0 when an accepted answer is there in whole words (for an answer in parts the
    share of its parts). The rank scores compare returned `documents` with `relevant_ids`.

    Args:
        k: How many documents from the top `recall_at_k` looks at.
    """

    name = "context-recall"
    version = 1
    score_fields = ("evidence_recall", "answer_in_context", "recall_at_k", "ndcg", "mrr")

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Search the returned context, and judge the order of returned documents."""
        context, documents = processed.get("context"), processed.get("documents")
        if not isinstance(context, str):
            return Scores(reason="the system put out no context")
        scores: dict[str, float] = {}
        if documents is not None and original.get("relevant_ids"):
            scores |= rank_scores([_id(item) for item in documents], original["relevant_ids"], self.k)
        evidence, golds = evidence_texts(original), gold_answers(original)
        haystack = words(context) if evidence or golds else ""
        if evidence:
            scores["evidence_recall"] = _share(evidence, context, haystack)
        if golds:
            scores["answer_in_context"] = max(_share(gold, context, haystack) for gold in golds)
        return Scores(scores, reason=None if scores else "no evidence, no gold answer and no relevant ids")


def _share(needles: Sequence[str], context: str, haystack: str) -> float:
    """How many of the texts are there; one without any word (a sign, an emoji) is looked for as it is."""
    wanted = [(words(needle), needle.strip()) for needle in needles]
    return sum(plain in haystack if plain.strip() else raw in context for plain, raw in wanted) / len(wanted)


def rank_scores(ranking: Sequence[Any], relevant_ids: Sequence[Any], k: int) -> dict[str, float]:
    """Recall among the first k, nDCG over the whole ranking and the reciprocal rank of the first hit.

    Relevance is binary; a document that is returned twice counts once, where it first stands.
    """
    relevant = set(relevant_ids)
    hits = [place for place, item in enumerate(dict.fromkeys(ranking)) if item in relevant]
    ideal = sum(1 / math.log2(place + 2) for place in range(len(relevant)))
    return {
        "recall_at_k": sum(place < k for place in hits) / len(relevant),
        "ndcg": sum(1 / math.log2(place + 2) for place in hits) / ideal,
        "mrr": 1 / (hits[0] + 1) if hits else 0.0,
    }


def _id(document: Any) -> Any:
    return document.get("id") if isinstance(document, Mapping) else document
