"""Two rankings joined by their ranks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from context_bench.errors import UsageError
from context_bench.memory.systems.search import FusedIndex, HybridMemory
from memory.histories import make_turns


class Fixed:
    """An index with one ranking for every question."""

    def __init__(self, *places: int) -> None:
        self.places = places
        self.texts: list[str] = []

    @property
    def nbytes(self) -> int:
        return len(self.texts)

    def add(self, texts: list[str]) -> None:
        self.texts += texts

    def rank(self, question: str) -> Iterator[tuple[int, float]]:
        return ((place, 1.0) for place in self.places)


def test_ranks_are_added_up() -> None:
    index = FusedIndex((Fixed(0, 1, 2), Fixed(2, 0)), depth=10)
    assert dict(index.rank("?")) == pytest.approx({0: 1 / 61 + 1 / 62, 2: 1 / 63 + 1 / 61, 1: 1 / 62})
    assert [place for place, _ in index.rank("?")] == [0, 2, 1]


def test_equals_come_in_their_own_order_and_only_the_best_of_each_count() -> None:
    assert [place for place, _ in FusedIndex((Fixed(3, 1), Fixed(2, 0)), depth=1).rank("?")] == [2, 3]


def test_every_index_gets_every_text() -> None:
    first, second = Fixed(), Fixed()
    index = FusedIndex((first, second), 5)
    index.add(["a", "b"])
    assert first.texts == second.texts == ["a", "b"]
    assert index.nbytes == 4


def test_the_hybrid_memory_finds_by_words_and_by_meaning() -> None:
    pytest.importorskip("wordllama", reason="the extra `memory`")
    system = HybridMemory()
    system.ingest(make_turns("My puppy chewed the sofa.", "The code is 112358.", "We flew to Lisbon."))
    assert system.retrieve("112358?", k=1)[0]["ids"] == ["s1:2"]
    assert system.retrieve("What did the dog destroy?", k=1)[0]["ids"] == ["s1:1"]


def test_a_wrong_depth_is_refused() -> None:
    with pytest.raises(UsageError, match="depth must be an integer of at least 1"):
        HybridMemory(depth=0)
