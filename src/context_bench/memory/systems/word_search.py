"""BM25 over the turns: stop words out, words stemmed. The honest baseline of every memory system.

Postings are packed arrays, so that a history of millions of tokens needs memory for its index and its texts, and
nothing else. A question reads the postings of its own words only.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator

from context_bench.errors import UsageError
from context_bench.memory.systems.ranked_memory import RankedMemory
from context_bench.text.porter import stem_word
from context_bench.text.words import STOP_WORDS, split_words

__all__ = ["BM25Memory", "WordIndex", "split_stems"]


def split_stems(text: str) -> list[str]:
    """Split a text into the stems of its words, without those that stand in every text."""
    return [stem_word(word) for word in split_words(text) if word not in STOP_WORDS]


class WordIndex:
    """An inverted index of texts that grows, and ranks them for a question by Okapi BM25.

    Args:
        k1: How soon repeated words stop to count.
        b: How much long texts are held back, from 0 to 1.
    """

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        if not 0 <= b <= 1 or k1 < 0:
            raise UsageError(f"b must be from 0 to 1 and k1 at least 0 (got b={b}, k1={k1})")
        self.k1, self.b = k1, b
        self._postings: dict[str, array[int]] = {}
        self._sizes = array("L")
        self._total = 0

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers and words."""
        numbers = sum(len(each) for each in self._postings.values()) * 4 + len(self._sizes) * self._sizes.itemsize
        return numbers + sum(map(len, self._postings))

    def add(self, texts: list[str]) -> None:
        """Add texts, which get the next places."""
        for text in texts:
            self._add(text)

    def _add(self, text: str) -> None:
        stems = split_stems(text)
        place = len(self._sizes)
        for stem, often in Counter(stems).items():
            # Places and counts alternate: one array for each word, four bytes for each number.
            self._postings.setdefault(stem, array("I")).extend((place, often))
        self._sizes.append(len(stems))
        self._total += len(stems)

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and scores, best first, equals in their own order; texts without a word in common are left out.

        A heap gives the best without sorting all.
        """
        heap = [(-score, place) for place, score in self._score(question).items()]
        heapq.heapify(heap)
        while heap:
            score, place = heapq.heappop(heap)
            yield place, -score

    def _score(self, question: str) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        size = len(self._sizes)
        mean = self._total / size if size else 0.0
        for stem in dict.fromkeys(split_stems(question)):
            postings = self._postings.get(stem)
            if postings is None:
                continue
            found = len(postings) // 2
            weight = math.log(1 + (size - found + 0.5) / (found + 0.5))
            for place, often in zip(postings[::2], postings[1::2]):
                damping = self.k1 * (1 - self.b + self.b * self._sizes[place] / mean)
                scores[place] += weight * (often * (self.k1 + 1) / (often + damping))
        return scores


class BM25Memory(RankedMemory):
    """Finds the turns that share words with the question, weighted by how rare they are.

    Args:
        k1: How soon repeated words stop to count.
        b: How much long turns are held back, from 0 to 1.
    """

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        super().__init__("bm25")
        self.k1, self.b = k1, b
        self._make_index()  # a wrong setting is an error here, not at the first turn

    def _make_index(self) -> WordIndex:
        return WordIndex(self.k1, self.b)
