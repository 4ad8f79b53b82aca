"""Words and meaning together: two rankings are joined by reciprocal rank fusion (Cormack et al., 2009).

A turn scores 1 / (60 + rank) in each ranking. Scores of BM25 and cosines are never compared, only ranks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from context_bench.memory.systems.ranked_memory import RankedIndex, RankedMemory
from context_bench.memory.systems.turn_store import check_count
from context_bench.memory.systems.vector_search import VectorIndex, load_embedder
from context_bench.memory.systems.word_search import WordIndex

__all__ = ["FusedIndex", "HybridMemory"]

_DAMPING = 60


class FusedIndex:
    """Several indexes over the same texts, ranked as one.

    Args:
        indexes: The indexes; all get every text.
        depth: How many of each ranking count.
    """

    def __init__(self, indexes: Sequence[RankedIndex], depth: int) -> None:
        self._indexes, self._depth = indexes, depth

    @property
    def nbytes(self) -> int:
        """The bytes of all indexes."""
        return sum(index.nbytes for index in self._indexes)

    def add(self, texts: list[str]) -> None:
        """Add texts to each index."""
        for index in self._indexes:
            index.add(texts)

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and fused scores, best first, equals in their own order."""
        scores: dict[int, float] = defaultdict(float)
        for index in self._indexes:
            for rank, (place, _) in enumerate(islice(index.rank(question), self._depth), 1):
                scores[place] += 1 / (_DAMPING + rank)
        yield from sorted(scores.items(), key=lambda each: (-each[1], each[0]))


class HybridMemory(RankedMemory):
    """Finds turns by words and by meaning, and joins both rankings.

    Args:
        depth: How many of each ranking count.
    """

    def __init__(self, depth: int = 100) -> None:
        super().__init__("hybrid")
        self.depth = check_count(depth, "depth")
        self._embed = load_embedder()

    def _make_index(self) -> FusedIndex:
        return FusedIndex((WordIndex(), VectorIndex(self._embed)), self.depth)
