"""Did what the answer needs survive in the context, or the conversation, that the system put out?

This needs no model, so it is the base of every comparison without a network. Texts are compared word by word: layout,
case, punctuation and escapes may change (a minified JSON keeps its facts), words, numbers and their signs may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from context_bench.evaluators.text_search import TextSearch, read_sent_texts
from context_bench.results import Scores
from context_bench.text.golds import evidence_texts, gold_answers

__all__ = ["ContextRecall"]


class ContextRecall:
    """Scores `evidence_recall` and `answer_in_context`; for rerankers `recall_at_k`, `ndcg` and `mrr`.

    `evidence_recall` is the share of the evidence spans that are still there, each in one piece;
    `answer_in_context` is 1.0 when an accepted answer is there in whole words (for an answer in parts the
    share of its parts). Both are looked for in the conversation where the example has `turns` and the system made no
    context of them; what only a repetition of the question holds does not count. The rank scores compare returned
    `documents` with `relevant_ids`.

    Args:
        k: How many documents from the top `recall_at_k` looks at.
    """

    name = "context-recall"
    version = 2
    score_fields = ("evidence_recall", "answer_in_context", "recall_at_k", "ndcg", "mrr")

    def __init__(self, k: int = 5) -> None:
        self.k = k

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Search the returned context, and judge the order of returned documents."""
        texts, documents = read_sent_texts(original, processed), processed.get("documents")
        if texts is None:
            return Scores(reason="the system returned no context")
        scores: dict[str, float] = {}
        if documents is not None and original.get("relevant_ids"):
            scores |= score_ranking([_read_id(item) for item in documents], original["relevant_ids"], self.k)
        search = TextSearch(texts, original)
        if evidence := evidence_texts(original):
            scores["evidence_recall"] = sum(search.find_span(span) is not None for span in evidence) / len(evidence)
        if golds := gold_answers(original):
            scores["answer_in_context"] = max(sum(map(search.has_words, gold)) / len(gold) for gold in golds)
        return Scores(scores, reason=None if scores else "no evidence, no gold answer and no relevant ids")


def score_ranking(ranking: Sequence[Any], relevant_ids: Sequence[Any], k: int) -> dict[str, float]:
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


def _read_id(document: Any) -> Any:
    return document.get("id") if isinstance(document, Mapping) else document
