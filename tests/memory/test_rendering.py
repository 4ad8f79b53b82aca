"""What a reader gets: within the budget, in the order of time, with dates."""

from __future__ import annotations

from typing import Any

import pytest

from banks import each_case
from context_bench.memory.conversations import index_turns, render_history, render_retrieved, write_date

TURNS: list[Any] = [
    {"id": "a", "role": "user", "speaker": "Ana", "content": "one two three", "timestamp": "2023-05-08T13:56:00"},
    {"id": "b", "role": "user", "content": "four five", "timestamp": "2023-05-09T00:00:00"},
    {"id": "c", "role": "user", "content": "six", "timestamp": None},
]


def words(text: str) -> int:
    """A tokenizer that can be checked by hand: a token for each word."""
    return len(text.split())


def found(*items: tuple[str, str]) -> list[Any]:
    return [{"text": text, "ids": [name] if name else []} for name, text in items]


def render(items: list[Any], budget: int | None) -> str:
    return render_retrieved(items, index_turns(TURNS), budget, words)[0]


def test_the_order_is_that_of_the_conversation_with_dates() -> None:
    text = render(found(("c", "six"), ("", "no turn"), ("b", "four five"), ("a", "one two three")), None)
    assert text.splitlines() == ["[8 May 2023, 13:56] one two three", "[9 May 2023] four five", "six", "no turn"]


def test_the_best_ones_are_taken_until_the_budget_is_full_and_dates_count() -> None:
    # "[9 May 2023] four five" is 5 words, "[8 May 2023, 13:56] one two three" 7
    items = found(("b", "four five"), ("a", "one two three"))
    assert render(items, 12).splitlines() == ["[8 May 2023, 13:56] one two three", "[9 May 2023] four five"]
    assert render(items, 5) == "[9 May 2023] four five"


@each_case("budget", range(1, 13))
def test_no_budget_is_exceeded_and_the_last_one_is_cut(budget: int) -> None:
    text = render(found(("b", "four five"), ("a", "one two three")), budget)
    assert words(text) <= budget
    assert words(text) >= budget - 1


@pytest.mark.parametrize(("budget", "whole"), [(4, 0), (5, 1), (11, 1), (12, 2), (None, 2)])
def test_what_is_there_as_a_whole_is_counted(budget: int | None, whole: int) -> None:
    items = found(("b", "four five"), ("a", "one two three"))
    assert render_retrieved(items, index_turns(TURNS), budget, words)[1] == whole


def test_a_date_that_stands_in_the_text_is_not_put_there_twice() -> None:
    assert render(found(("b", "[9 May 2023] four five")), None) == "[9 May 2023] four five"


def test_a_whole_history() -> None:
    assert render_history(TURNS).splitlines() == [
        "[8 May 2023, 13:56] Ana: one two three",
        "[9 May 2023] user: four five",
        "user: six",
    ]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("2023-05-08T13:56:00Z", "8 May 2023, 13:56"),
        ("2023-05-08", "8 May 2023"),
        ("last week", "last week"),
        (None, ""),
    ],
)
def test_dates(given: str | None, written: str) -> None:
    assert write_date(given) == written
