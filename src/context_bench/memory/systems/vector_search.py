"""Search by meaning, offline: every turn is a vector of a small model that comes inside a package.

The model is WordLlama (256 dimensions, 16 MB, token embeddings of a large model): 6,000 turns a second on one core.
It is the extra `memory`; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from context_bench.errors import MissingExtra
from context_bench.memory.systems.ranked_memory import RankedMemory

__all__ = ["EmbeddingMemory", "VectorIndex", "load_embedder"]

Embedder = Callable[[list[str]], Any]
"""Takes texts, returns one row of 32-bit numbers of length 1 for each."""

_ROWS = 4096
"""Rows by which the matrix grows at least."""


@cache
def load_embedder() -> Embedder:
    """Load WordLlama from its own package."""
    try:
        import wordllama
    except ImportError as error:
        raise MissingExtra("the memory system `embedding`", "memory") from error
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)

    def embed(texts: list[str]) -> Any:
        # A text without any token has no direction: its row is zero, and it is found last.
        return model.embed([text or " " for text in texts], norm=True)

    return embed


class VectorIndex:
    """Rows of vectors that grow, ranked by their cosine with a question.

    Args:
        embed: Turns texts into rows.
    """

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed
        self._matrix: Any = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """The bytes of its matrix, with the rows that are still free."""
        return 0 if self._matrix is None else int(self._matrix.nbytes)

    def add(self, texts: list[str]) -> None:
        """Add texts, which get the next places."""
        import numpy as np

        if not texts:
            return
        rows = np.asarray(self._embed(texts), dtype=np.float32)
        needed = self._size + len(rows)
        if self._matrix is None or needed > len(self._matrix):
            grown = np.zeros((max(needed, self._size + self._size // 2 + _ROWS), rows.shape[1]), dtype=np.float32)
            if self._size:
                grown[: self._size] = self._matrix[: self._size]
            self._matrix = grown
        self._matrix[self._size : needed] = np.nan_to_num(rows)
        self._size = needed

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        """Yield places and cosines, best first, equals in their own order."""
        import numpy as np

        if not self._size:
            return
        wanted = np.nan_to_num(np.asarray(self._embed([question]), dtype=np.float32)[0])
        scores = self._matrix[: self._size] @ wanted
        for place in np.argsort(-scores, kind="stable"):
            yield int(place), float(scores[place])


class EmbeddingMemory(RankedMemory):
    """Finds the turns whose vectors are nearest to the question's."""

    def __init__(self) -> None:
        super().__init__("embedding")
        self._embed = load_embedder()

    def _make_index(self) -> VectorIndex:
        return VectorIndex(self._embed)
