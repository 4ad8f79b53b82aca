"""How a turn is written, and how much of a ranking is returned."""

from __future__ import annotations

import pytest

from context_bench.errors import UsageError
from context_bench.memory.conversations import Retrieved
from context_bench.memory.systems.turn_store import TurnStore, check_count, cut_ranking, write_turn
from context_bench.utils.tokens import count_tokens
from memory.histories import make_turns


@pytest.mark.parametrize(
    ("turn", "text"),
    [
        ({"speaker": "Ana", "role": "user", "content": "Hello"}, "Ana: Hello"),
        ({"role": "assistant", "content": "Hello"}, "Assistant: Hello"),
        ({"content": "Hello"}, "Hello"),
        ({"speaker": "Ana", "content": None}, "Ana: "),
    ],
)
def test_a_turn_is_written_with_its_speaker(turn: dict[str, object], text: str) -> None:
    assert write_turn(turn) == text


def test_a_kept_turn_comes_back_with_id_date_and_session() -> None:
    store = TurnStore()
    (turn,) = make_turns("I moved to Lyon.")
    store.add(turn)
    found = store.read(0, 0.5)
    assert (found["text"], found["ids"], found["score"]) == ("Ana: I moved to Lyon.", ["s1:1"], 0.5)
    assert (found["timestamp"], found["session"]) == ("2024-05-01T09:00:00", "s1")


def test_a_turn_without_an_id_stands_for_none() -> None:
    store = TurnStore()
    store.add({"content": "Hello"})
    assert store.read(0) == {"text": "Hello", "ids": []}


RANKING = [Retrieved(text=text, ids=[text[0]]) for text in ("one two three", "four five", "six")]


@pytest.mark.parametrize(("k", "kept"), [(None, 3), (1, 1), (2, 2), (9, 3)])
def test_at_most_k_are_returned(k: int | None, kept: int) -> None:
    assert cut_ranking(RANKING, k, None) == RANKING[:kept]


@pytest.mark.parametrize(("texts", "kept"), [(3, 3), (2, 2), (1, 1)])
def test_a_budget_ends_the_list_at_the_first_that_does_not_fit(texts: int, kept: int) -> None:
    budget = sum(count_tokens(item["text"]) for item in RANKING[:texts])
    assert cut_ranking(RANKING, None, budget) == RANKING[:kept]
    assert len(cut_ranking(RANKING, None, budget - 1)) == kept - 1


def test_ten_are_returned_where_nobody_says_how_many() -> None:
    assert len(cut_ranking(RANKING * 10, None, None)) == 10


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3"])
def test_a_count_must_be_a_positive_integer(value: object) -> None:
    with pytest.raises(UsageError, match="n must be an integer of at least 1"):
        check_count(value, "n")
