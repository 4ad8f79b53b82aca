"""Every accumulator: two parts merged are the whole, in any split; the state goes through strict JSON and back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from context_bench.stats import ClusterSums, CurveSums, Moments, PairedSums, RatioSums, RepeatSums, Values

SOURCE = random.Random(3)
ROWS = [(SOURCE.choice([0, 1, 0.25, 0.5]), SOURCE.choice([0, 1, 0.5]), SOURCE.randrange(4)) for _ in range(60)]

KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], None]]] = {
    "moments": (Moments, lambda sums, row: sums.add(row[0])),
    "pairs": (PairedSums, lambda sums, row: sums.add(row[0], row[1])),
    "ratios": (RatioSums, lambda sums, row: sums.add(row[2], row[2] + 1)),
    "clusters": (ClusterSums, lambda sums, row: sums.add(f"g{row[2]}", row[0])),
    "values": (Values, lambda sums, row: sums.add(row[0])),
    "values in buckets": (lambda: Values(10), lambda sums, row: sums.add(row[0])),
    "repeats": (RepeatSums, lambda sums, row: sums.add([row[0], row[1]], (row[0] == 1) + (row[1] == 1))),
    "curves": (CurveSums, lambda sums, row: sums.add([row[0], row[1], 0.5])),
}


def _make(kind: str, rows: list[Any]) -> Any:
    made, add = KINDS[kind][0](), KINDS[kind][1]
    for row in rows:
        add(made, row)
    return made


def _state(made: Any) -> Any:
    state = json.loads(json.dumps(made.state(), allow_nan=False))
    if "kept" in state:
        state["kept"].sort()
    return state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [0, 1, 30, 60])
def test_parts_merged_are_the_whole(kind: str, cut: int) -> None:
    first, second = _make(kind, ROWS[:cut]), _make(kind, ROWS[cut:])
    before = _state(second)
    first.merge(second)
    assert _state(first) == _state(_make(kind, ROWS))
    assert _state(second) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 60])
def test_the_state_goes_through_json(kind: str, count: int) -> None:
    made = _make(kind, ROWS[:count])
    again = type(made).from_state(json.loads(json.dumps(made.state(), allow_nan=False)))
    assert _state(again) == _state(made)
    KINDS[kind][1](again, ROWS[0])
    KINDS[kind][1](made, ROWS[0])
    assert _state(again) == _state(made)


@pytest.mark.parametrize("kind", ["clusters", "curves", "repeats"])
def test_a_merged_accumulator_shares_nothing_with_its_parts(kind: str) -> None:
    first, second = _make(kind, []), _make(kind, ROWS)
    first.merge(second)
    before = _state(second)
    KINDS[kind][1](first, ROWS[0])
    assert _state(second) == before


def test_many_numbers_at_once() -> None:
    one, other = _make("moments", ROWS), Moments()
    other.extend([])
    other.extend(row[0] for row in ROWS)
    assert other == one
