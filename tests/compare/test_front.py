"""The Pareto front by paired intervals: who is put off it, by whom, and what a failure costs."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.compare.front import Front, FrontTally
from context_bench.compare.pairing import read_value
from context_bench.results import EvalRow
from rows import failed_row, make_row

READ = read_value("score", "score", 0.7)


def _row(system: str, place: int, score: float, tokens: int, **facts: Any) -> EvalRow:
    metadata = {"output": "context", **facts.pop("metadata", {})}
    return make_row(score, system=system, example_id=place, output_tokens=tokens, metadata=metadata, **facts)


def _fail(system: str, place: int) -> EvalRow:
    return failed_row(system=system, example_id=place)


def _find(
    rows: list[EvalRow], competing: list[str] | None = None, baseline: str | None = None, **options: Any
) -> Front:
    names = list(dict.fromkeys(row.system for row in rows))
    tally = FrontTally(names, names, READ, **options)
    tally.add(rows)
    found = tally.result(competing or names, baseline)
    assert found is not None
    return found


def test_a_failure_counts_on_both_axes() -> None:
    """Flaky fails on the 31 longest prompts: over the others it reads fewer tokens, and shared the front so."""
    rows = [_row("passthrough", place, 1.0, 100 + place) for place in range(100)]
    rows += [_row("flaky", place, 1.0, 100 + place) if place < 69 else _fail("flaky", place) for place in range(100)]
    found = _find(rows)
    assert found.names == ("passthrough",)
    assert found.reasons == {"flaky": "passthrough scores higher and is not shown to cost more"}
    assert found.costs == {"passthrough": 149.5, "flaky": 149.5}  # who answers the failed ones pays the full prompt


def test_who_saves_and_is_not_shown_to_be_worse_puts_the_others_off() -> None:
    rows = [_row("whole", place, float(place % 10 > 0), 200 + place) for place in range(60)]
    rows += [_row("half", place, float(place % 10 > 1 or place == 1), 100 + place // 2) for place in range(60)]
    found = _find(rows)
    assert found.names == ("half",)  # five of 60 broken, none fixed: p is above 0.05
    assert found.reasons == {"whole": "half costs less and is not shown to score lower"}


def test_less_quality_for_less_money_is_a_choice() -> None:
    rows = [_row("whole", place, 1.0, 200) for place in range(60)]
    rows += [_row("half", place, float(place % 2), 100) for place in range(60)]
    assert _find(rows) == Front("pareto_tokens_read", {"whole": 200, "half": 100}, ("whole", "half"), {})


def test_two_that_cannot_be_told_apart_are_both_on_it() -> None:
    rows = [_row("a", place, float(place % 3 > 0), 100) for place in range(30)]
    rows += [_row("b", place, float(place % 4 > 0), 100) for place in range(30)]
    assert _find(rows).names == ("a", "b")


def test_a_baseline_that_does_not_compete_puts_others_off() -> None:
    rows = [_row("direct", place, 1.0, 100) for place in range(60)]
    rows += [_row("adds", place, 1.0, 140) for place in range(60)]
    rows += [_row("saves", place, 1.0, 60) for place in range(60)]
    found = _find(rows, ["adds", "saves"], "direct")
    assert found.names == ("saves",)
    assert found.reasons == {"adds": "saves costs less and is not shown to score lower"}
    assert _find(rows, ["adds"], "direct").names == ()
    assert _find(rows, ["adds"], "direct").reasons == {"adds": "direct costs less and is not shown to score lower"}


def test_conversations_count_as_one_example_each() -> None:
    """Thirty pairs that differ the same way would show it; they are three conversations."""
    rows = [_row("a", place, 1.0, 100, metadata={"cluster": place // 10}) for place in range(30)]
    rows += [_row("b", place, float(place >= 10), 100, metadata={"cluster": place // 10}) for place in range(30)]
    assert _find(rows).names == ("a", "b")
    single = [_row(row.system, int(row.example_id), row.scores["score"], 100) for row in rows]
    assert _find(single).names == ("a",)


@pytest.mark.parametrize(
    ("dollars", "upstream", "key"),
    [
        (0.002, 80, "pareto_cost_usd"),
        (None, 80, "pareto_tokens_read"),
        (None, None, "pareto_tokens_written"),
        (0.0, None, "pareto_tokens_written"),
    ],
)
def test_which_cost_it_goes_by(dollars: float | None, upstream: int | None, key: str) -> None:
    facts: dict[str, Any] = {"upstream_tokens": upstream, "metadata": {"output": "response", "cost_usd": dollars}}
    rows = [_row(name, place, 1.0, 5, **facts) for place in range(3) for name in "ab"]
    assert _find(rows).key == key


def test_there_is_no_front_of_contexts_and_answers() -> None:
    rows = [_row("a", place, 1.0, 5, metadata={"output": "response"}) for place in range(3)]
    tally = FrontTally("ab", "ab", READ)
    tally.add([*rows, *[_row("b", place, 1.0, 500) for place in range(3)]])
    assert tally.result(["a", "b"]) is None


def test_answers_to_one_example_are_averaged_and_the_last_ones_counted() -> None:
    rows = [
        _row(name, place, float(repeat == 0 or name == "a"), 100, repeat=repeat)
        for place in range(40)
        for repeat in range(2)
        for name in "ab"
    ]
    found = _find(rows, repeats=2)
    assert found.reasons == {"b": "a scores higher and is not shown to cost more"}
    tally = FrontTally("ab", "ab", READ, 2)
    tally.add(rows[:-1])  # the last answer has not come
    for _ in range(2):
        seen = tally.result(["a", "b"])
        assert seen is not None
        assert seen.names == ("a",)
