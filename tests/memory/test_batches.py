"""How turns come into a memory."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.memory.conversations import plan_steps


def turn(name: str, session: str = "s1", user: str | None = None, **more: Any) -> Any:
    return {"id": name, "content": name, "session": session, **({"user": user} if user else {}), **more}


TURNS = [turn("a"), turn("b"), turn("c"), turn("d", "s2")]


def plan(turns: list[Any], granularity: str, **options: Any) -> list[Any]:
    return [
        (kind, user, [each["id"] for each in given] if kind == "ingest" else given)
        for kind, user, given in plan_steps(turns, granularity, **options)
    ]


@pytest.mark.parametrize(
    ("granularity", "batches"),
    [("turn", ["a", "b", "c", "d"]), ("pair", ["ab", "c", "d"]), ("session", ["abc", "d"])],
)
def test_granularity(granularity: str, batches: list[str]) -> None:
    assert plan(TURNS, granularity) == [("ingest", None, list(batch)) for batch in batches]


def test_a_batch_is_of_one_user() -> None:
    turns = [turn("a", user="x"), turn("b", user="y"), turn("c", user="y")]
    assert plan(turns, "session") == [("ingest", "x", ["a"]), ("ingest", "y", ["b", "c"])]


def test_a_request_to_forget_is_a_call_of_its_own_where_there_is_one() -> None:
    turns = [turn("a"), turn("b", forget={"what": "a"}), turn("c")]
    assert plan(turns, "session", forgets=True) == [
        ("ingest", None, ["a"]),
        ("forget", None, {"what": "a"}),
        ("ingest", None, ["c"]),
    ]
    assert plan(turns, "session") == [("ingest", None, ["a", "b", "c"])]


def test_dates_stand_before_the_text_for_who_does_not_read_them() -> None:
    dated = [turn("a", timestamp="2023-05-08T10:00:00")]
    ((_, _, native),) = plan_steps(dated, "turn")
    ((_, _, written),) = plan_steps(dated, "turn", takes_dates=False)
    assert native == dated
    assert written[0]["content"] == "[8 May 2023, 10:00] a"
