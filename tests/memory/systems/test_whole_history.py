"""The whole history, its end, its evidence, or nothing."""

from __future__ import annotations

from context_bench.memory.systems.turn_store import ClosedBook, Last, Naive, Oracle
from memory.histories import make_turns

TURNS = make_turns("red", "green", "blue", "black")


def _list_ids(found: list[dict[str, list[str]]]) -> list[str]:
    return [each for item in found for each in item["ids"]]


def test_naive_returns_every_turn_in_order_whatever_is_asked_for() -> None:
    system = Naive()
    system.ingest(TURNS[:2])
    system.ingest(TURNS[2:])
    found = system.retrieve("what?", k=1, budget_tokens=1)
    assert _list_ids(found) == ["s1:1", "s1:2", "s1:3", "s1:4"]
    assert not any("score" in item for item in found)
    assert system.query("what?") == "Ana: red\nAna: green\nAna: blue\nAna: black"
    assert system.is_control


def test_last_returns_the_newest_first() -> None:
    system = Last(n=2)
    system.ingest(TURNS)
    assert _list_ids(system.retrieve("what?")) == ["s1:4", "s1:3"]
    assert _list_ids(system.retrieve("what?", k=1)) == ["s1:4"]
    assert _list_ids(system.retrieve("what?", k=9)) == ["s1:4", "s1:3"]
    assert system.name == "last:n=2"
    assert not system.is_control


def test_last_has_no_more_than_there_is() -> None:
    system = Last(n=20)
    system.ingest(TURNS[:1])
    assert _list_ids(system.retrieve("what?")) == ["s1:1"]


def test_oracle_returns_the_evidence_that_it_was_pointed_to() -> None:
    system = Oracle()
    system.ingest(TURNS)
    assert system.retrieve("what?") == []
    system.point_to(["s1:3", "s1:1", "s9:9"])
    assert _list_ids(system.retrieve("what?", k=1)) == ["s1:1", "s1:3"]
    system.reset()
    system.ingest(TURNS)
    assert system.retrieve("what?") == []


def test_closed_book_keeps_nothing() -> None:
    system = ClosedBook()
    system.ingest(TURNS)
    assert system.retrieve("red?") == []
    assert system.query("red?") == ""
    assert system.memories() == []


def test_users_are_kept_apart() -> None:
    system = Naive()
    system.ingest(TURNS[:1], user="a")
    system.ingest(TURNS[1:2], user="b")
    assert _list_ids(system.retrieve("what?", user="b")) == ["s1:2"]
    assert system.memories() == ["Ana: red", "Ana: green"]
    system.reset()
    assert system.memories() == []
