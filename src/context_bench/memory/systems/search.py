"""Memories that search the turns: BM25 by words, embeddings by meaning, or both together.

BM25 omits stop words and stems the rest; every memory system should be compared with it. Postings are packed arrays, so
that a history of millions of tokens needs little RAM beyond its texts. A question reads only the postings of its words.

Embeddings come from WordLlama (256 dimensions, 16 MB, token embeddings of a large model), the extra `memory`: 6,000
turns per second on one core, without a download.

Reciprocal rank fusion (Cormack et al., 2009) combines both: a turn scores 1 / (60 + rank) in each ranking. Only ranks
are compared, never BM25 scores with cosines.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from context_bench.errors import MissingExtra, UsageError
from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.turn_store import TurnStore, check_count, cut_ranking, join_texts
from context_bench.text.words import STOP_WORDS, split_words, stem_word


class RankedIndex(Protocol):
    """A growing collection of texts that can be ranked for a question."""

    @property
    def nbytes(self) -> int:
        """The size of the index in bytes."""

    def add(self, texts: list[str]) -> None:
        """Append texts."""

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and scores, best first."""


class RankedMemory(ABC):
    """Finds turns by an index. Each turn is indexed separately, for any granularity."""

    is_control = False
    takes_dates = True

    def __init__(self, name: str) -> None:
        self.name = name
        self._users: dict[str, tuple[TurnStore, RankedIndex]] = {}

    @abstractmethod
    def _make_index(self) -> RankedIndex:
        """Make an empty index."""

    def reset(self) -> None:
        self._users.clear()

    def ingest(self, turns: Sequence[Mapping[str, Any]], user: str = "") -> None:
        store, index = self._open(user)
        index.add([store.add(turn) for turn in turns])

    def retrieve(
        self, question: str, k: int | None = None, budget_tokens: int | None = None, user: str = ""
    ) -> list[Retrieved]:
        store, index = self._open(user)
        ranking = (store.read(place, score) for place, score in index.rank(question))
        return cut_ranking(ranking, k, budget_tokens)

    def query(self, question: str, user: str = "") -> str:
        """Return the retrieved texts as one, since there is no model to answer."""
        return join_texts(self.retrieve(question, user=user))

    def memories(self) -> list[str]:
        return [text for store, _ in self._users.values() for text in store.list_texts()]

    @property
    def index_bytes(self) -> int:
        return sum(index.nbytes for _, index in self._users.values())

    def _open(self, user: str) -> tuple[TurnStore, RankedIndex]:
        if user not in self._users:
            self._users[user] = (TurnStore(), self._make_index())
        return self._users[user]


def split_stems(text: str) -> list[str]:
    """Split a text into the stems of its words, without stop words."""
    return [stem_word(word) for word in split_words(text) if word not in STOP_WORDS]


class WordIndex:
    """A growing inverted index that ranks texts for a question by Okapi BM25."""

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
        numbers = sum(len(each) for each in self._postings.values()) * 4 + len(self._sizes) * self._sizes.itemsize
        return numbers + sum(map(len, self._postings))

    def add(self, texts: list[str]) -> None:
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
        """Yield places and scores from a heap, best first, ties in order; only texts with a common word."""
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
    """Finds the turns that share words with the question; rare words weigh more."""

    def __init__(self, k1: float = 1.5, b: float = 0.75) -> None:
        super().__init__("bm25")
        self.k1, self.b = k1, b
        self._make_index()  # fail here on a wrong setting, not at the first turn

    def _make_index(self) -> WordIndex:
        return WordIndex(self.k1, self.b)


Embedder = Callable[[list[str]], Any]  # maps texts to unit vectors, one row of 32-bit numbers each

MIN_GROWTH_ROWS = 4096  # the matrix grows by at least this many rows


@cache
def load_embedder() -> Embedder:
    try:
        import wordllama
    except ImportError as error:
        raise MissingExtra("the memory system `embedding`", "memory") from error
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    def embed(texts: list[str]) -> Any:
        # A text without tokens has a zero row, and ranks last.
        return model.embed([text or " " for text in texts], norm=True)

    return embed


class VectorIndex:
    """A growing matrix of vectors, ranked by their cosine with a question."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self._matrix: Any = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        return 0 if self._matrix is None else int(self._matrix.nbytes)

    def add(self, texts: list[str]) -> None:
        import numpy as np

        if not texts:
            return
        rows = np.asarray(self._embed(texts), dtype=np.float32)
        needed = self._size + len(rows)
        if self._matrix is None or needed > len(self._matrix):
            size = max(needed, self._size + self._size // 2 + MIN_GROWTH_ROWS)
            grown = np.zeros((size, rows.shape[1]), dtype=np.float32)
            if self._size:
                grown[: self._size] = self._matrix[: self._size]
            self._matrix = grown
        self._matrix[self._size : needed] = np.nan_to_num(rows)
        self._size = needed

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and cosines, best first, ties in order."""
        import numpy as np

        if not self._size:
            return
        wanted = np.nan_to_num(np.asarray(self._embed([question]), dtype=np.float32)[0])
        scores = self._matrix[: self._size] @ wanted
        for place in np.argsort(-scores, kind="stable"):
            yield int(place), float(scores[place])


class EmbeddingMemory(RankedMemory):
    """Finds the turns with the vectors nearest to the question's."""

    def __init__(self) -> None:
        super().__init__("embedding")
        self._embed = load_embedder()

    def _make_index(self) -> VectorIndex:
        return VectorIndex(self._embed)


RANK_DAMPING = 60


class FusedIndex:
    """A combination of several indexes over the same texts, from the first `depth` results of each."""

    def __init__(self, indexes: Sequence[RankedIndex], depth: int) -> None:
        self._indexes, self._depth = indexes, depth

    @property
    def nbytes(self) -> int:
        return sum(index.nbytes for index in self._indexes)

    def add(self, texts: list[str]) -> None:
        for index in self._indexes:
            index.add(texts)

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and fused scores, best first, ties in order."""
        scores: dict[int, float] = defaultdict(float)
        for index in self._indexes:
            for rank, (place, _) in enumerate(islice(index.rank(question), self._depth), 1):
                scores[place] += 1 / (RANK_DAMPING + rank)
        yield from sorted(scores.items(), key=lambda each: (-each[1], each[0]))


class HybridMemory(RankedMemory):
    """Finds turns by words and by meaning, and combines both rankings."""

    def __init__(self, depth: int = 100) -> None:
        super().__init__("hybrid")
        self.depth = check_count(depth, "depth")
        self._embed = load_embedder()

    def _make_index(self) -> FusedIndex:
        return FusedIndex((WordIndex(), VectorIndex(self._embed)), self.depth)
