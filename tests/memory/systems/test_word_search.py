"""BM25 over turns: the formula, stems and stop words, users apart, and an index that grows with its words alone."""

from __future__ import annotations

import math
from array import array

import pytest

from context_bench.errors import UsageError
from context_bench.memory.systems.search import BM25Memory, WordIndex, split_stems
from memory.histories import make_turns


def test_stop_words_go_and_words_are_stemmed() -> None:
    assert split_stems("She was running to the shelters, and the dogs ran.") == ["run", "shelter", "dog", "ran"]


def test_the_score_is_that_of_the_formula() -> None:
    index = WordIndex(k1=1.5, b=0.75)
    index.add(["red apple", "red red pear plum", "green grass"])
    # by hand: 3 texts of 2, 4 and 2 words; "red" is in 2 of them
    weight = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    first = weight * 1 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / (8 / 3)))
    second = weight * 2 * 2.5 / (2 + 1.5 * (0.25 + 0.75 * 4 / (8 / 3)))
    assert dict(index.rank("Red?")) == pytest.approx({0: first, 1: second})
    assert [place for place, _ in index.rank("red")] == ([0, 1] if first >= second else [1, 0])


def test_a_longer_history_costs_eight_bytes_for_each_word_of_a_turn_and_nothing_else() -> None:
    index = WordIndex()
    index.add(["red apple", "green pear"])
    words = index.nbytes
    index.add(["red pear"] * 1000)
    assert index.nbytes - words == 1000 * (2 * 8 + array("L").itemsize)


def test_a_memory_tells_the_size_of_its_index() -> None:
    system = BM25Memory()
    assert system.index_bytes == 0
    system.ingest(make_turns("red apple"), user="a")
    system.ingest(make_turns("red apple"), user="b")
    assert system.index_bytes == 2 * (3 * 8 + array("L").itemsize + len("anaredappl"))


def test_equals_come_in_their_own_order() -> None:
    index = WordIndex()
    index.add(["the same words"] * 3)
    index.add(["the same words"] * 2)
    assert [place for place, _ in index.rank("words")] == [0, 1, 2, 3, 4]


def test_it_finds_by_stem_what_was_said_in_another_form() -> None:
    system = BM25Memory()
    system.ingest(make_turns("I adopted two kittens.", "The weather was fine.", "We painted the kitchen."))
    assert [item["ids"] for item in system.retrieve("Which kitten did you adopt?", k=2)] == [["s1:1"]]
    assert system.query("Who was painting?") == "Ana: We painted the kitchen."


def test_a_question_without_any_known_word_finds_nothing() -> None:
    system = BM25Memory()
    assert system.retrieve("kittens?") == []
    system.ingest(make_turns("I adopted two kittens."))
    assert system.retrieve("what is it?") == []
    assert system.retrieve("") == []


def test_users_are_kept_apart_and_reset_forgets_all() -> None:
    system = BM25Memory()
    system.ingest(make_turns("The code is 111111."), user="a")
    system.ingest(make_turns("The code is 222222."), user="b")
    assert [item["text"] for item in system.retrieve("code", user="a")] == ["Ana: The code is 111111."]
    assert system.retrieve("code") == []
    system.reset()
    assert system.retrieve("code", user="a") == []
    assert system.memories() == []


@pytest.mark.parametrize("settings", [{"b": 1.5}, {"b": -0.1}, {"k1": -1}])
def test_wrong_settings_are_refused_at_once(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="b must be from 0 to 1"):
        BM25Memory(**settings)
