"""A compressor that reads the question: keep what shares its words.

Okapi BM25 over the sentences of one context, or over documents. Simple, fast, and hard to beat on look-up questions: a
learned compressor should show that it does.
"""

from __future__ import annotations

import math
from collections import Counter

from context_bench.errors import UsageError
from context_bench.systems.pieces import pick, split
from context_bench.systems.prompts import join_documents
from context_bench.systems.token_budget import Budget
from context_bench.text.words import split_words
from context_bench.types import Example
from context_bench.utils.tokens import get_tokenizer

__all__ = ["BM25"]


class BM25:
    """Keeps the sentences or lines that match the question best, in their own order.

    Documents are ranked, and with a ratio or a budget of their own cut to the best that fit.

    Args:
        ratio: The share of tokens that is kept (0.5 by default).
        budget: The number of tokens that is kept, instead of a share.
        k1: How soon repeated words stop to count.
        b: How much long sentences are held back, from 0 to 1.
    """

    reads_gold = False

    def __init__(self, ratio: float | None = None, budget: int | None = None, k1: float = 1.5, b: float = 0.75) -> None:
        if not 0 <= b <= 1 or k1 < 0:
            raise UsageError(f"b must be from 0 to 1 and k1 at least 0 (got b={b}, k1={k1})")
        self.budget = Budget(ratio, budget)
        self.k1, self.b = k1, b
        self._cuts_documents = ratio is not None or budget is not None
        self.name = "bm25"

    @property
    def fingerprint(self) -> str:
        """The settings that make its output differ."""
        cuts = " cuts documents" if self._cuts_documents else ""
        return f"bm25/1 k1={self.k1} b={self.b} {self.budget.fingerprint}{cuts}"

    def process(self, example: Example) -> Example:
        """Return the best pieces that fit; documents best first, those that fit where a size was given."""
        query = split_words(_query(example))
        documents = example.get("documents")
        if documents:
            texts = [f"{item.get('title') or ''} {item['text']}" for item in documents]
            ranked = [documents[index] for index in self._order(query, texts)]
            return {"documents": self._pick(ranked) if self._cuts_documents else ranked}
        text = example["context"]
        pieces = split(text)
        return {"context": pick(pieces, self._order(query, pieces), self.budget.tokens(text))}

    def _pick(self, ranked: list[Example]) -> list[Example]:
        """Take documents, best first, while their texts fit together."""
        count = get_tokenizer()
        whole = join_documents(ranked)
        left = tokens = self.budget.tokens(whole)
        if count(whole) <= tokens:
            return ranked
        kept: list[Example] = []
        for item in ranked:
            cost = count(join_documents([item]))
            if cost <= left:
                kept.append(item)
                left -= cost
        # What stands between the texts costs as well: the last to come goes first.
        while kept and count(join_documents(kept)) > tokens:
            kept.pop()
        return kept

    def _order(self, query: list[str], texts: list[str]) -> list[int]:
        """Indexes of the texts, best first; equals in their own order."""
        bags = [Counter(split_words(text)) for text in texts]
        sizes = [bag.total() for bag in bags]
        mean = sum(sizes) / len(sizes) if sizes else 0.0
        scores = [0.0] * len(texts)
        for term in dict.fromkeys(query):
            found = [index for index, bag in enumerate(bags) if term in bag]
            weight = math.log(1 + (len(bags) - len(found) + 0.5) / (len(found) + 0.5))
            for index in found:
                often = bags[index][term]
                damping = self.k1 * (1 - self.b + self.b * sizes[index] / mean)
                scores[index] += weight * (often * (self.k1 + 1) / (often + damping))
        return sorted(range(len(texts)), key=lambda index: (-scores[index], index))


def _query(example: Example) -> str:
    if example.get("question"):
        return str(example["question"])
    asked = [turn.get("content") for turn in example.get("turns") or () if turn.get("role") == "user"]
    return str(asked[-1]) if asked else ""
