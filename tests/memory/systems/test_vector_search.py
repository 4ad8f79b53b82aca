"""Search by vectors: ranks by cosine, grows, and says which extra is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from context_bench.memory.systems.search import VectorIndex
from memory.histories import make_turns

np = pytest.importorskip("numpy", reason="the extra `memory`")


def _embed_by_letters(texts: list[str]) -> Any:
    rows = np.array([[text.count(letter) for letter in "abc"] for text in texts], dtype=np.float32)
    with np.errstate(invalid="ignore"):
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_it_ranks_by_cosine_and_equals_in_their_own_order() -> None:
    index = VectorIndex(_embed_by_letters)
    index.add(["aab", "b", "aab", "ccc"])
    ranking = list(index.rank("a"))
    assert [place for place, _ in ranking] == [0, 2, 1, 3]
    assert ranking[0][1] == pytest.approx(2 / 5**0.5)
    assert ranking[3][1] == 0


def test_a_text_without_a_direction_is_found_last_and_breaks_nothing() -> None:
    index = VectorIndex(_embed_by_letters)
    index.add(["", "a"])
    assert [place for place, _ in index.rank("a")] == [1, 0]


def test_an_empty_index_finds_nothing() -> None:
    index = VectorIndex(_embed_by_letters)
    index.add([])
    assert list(index.rank("a")) == []


def test_it_grows_far_beyond_its_first_size() -> None:
    index = VectorIndex(_embed_by_letters)
    for _ in range(3):
        index.add(["b"] * 3000)
    index.add(["a"])
    assert len(index) == 9001
    assert 9001 * 3 * 4 <= index.nbytes <= (9001 * 3 // 2 + 4096) * 3 * 4  # at most half as much again is free
    assert next(index.rank("a"))[0] == 9000


def test_the_embedding_memory_finds_by_meaning() -> None:
    pytest.importorskip("wordllama", reason="the extra `memory`")
    from context_bench.memory.systems.search import EmbeddingMemory

    system = EmbeddingMemory()
    system.ingest(make_turns("My puppy chewed the sofa.", "Interest rates rose again.", "We flew to Lisbon."))
    assert system.retrieve("What did the dog destroy?", k=1)[0]["ids"] == ["s1:1"]
    assert system.query("banks and money").startswith("Ana: Interest rates")
    system.ingest(make_turns("The cat sleeps."), user="b")
    assert [item["text"] for item in system.retrieve("dog", user="b")] == ["Ana: The cat sleeps."]
    system.reset()
    assert system.memories() == []


def test_a_missing_package_is_one_sentence() -> None:
    program = (
        "import sys; sys.modules['wordllama'] = None\n"
        "from context_bench.errors import MissingExtra\n"
        "from context_bench.memory.systems.search import EmbeddingMemory\n"
        "try: EmbeddingMemory()\n"
        "except MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", timeout=120)
    assert "the memory system `embedding` needs an optional dependency" in done.stdout
    assert "[memory]" in done.stdout
