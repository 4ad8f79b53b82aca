"""Every accumulator: two parts merged are the whole, in any split."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from banks import each_case
from context_bench.stats import ClusterSums, Moments, PairedSums, RatioSums

SOURCE = random.Random(3)
ROWS = [(SOURCE.choice([0, 1, 0.25, 0.5]), SOURCE.choice([0, 1, 0.5]), SOURCE.randrange(4)) for _ in range(60)]

KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], None]]] = {
    "moments": (Moments, lambda sums, row: sums.add(row[0])),
    "pairs": (PairedSums, lambda sums, row: sums.add(row[0], row[1])),
    "ratios": (RatioSums, lambda sums, row: sums.add(row[2], row[2] + 1)),
    "clusters": (ClusterSums, lambda sums, row: sums.add(f"g{row[2]}", row[0])),
}


def _make(kind: str, rows: list[Any]) -> Any:
    made, add = KINDS[kind][0](), KINDS[kind][1]
    for row in rows:
        add(made, row)
    return made


@each_case("kind", KINDS)
@each_case("cut", [0, 1, 30, 60])
def test_parts_merged_are_the_whole(kind: str, cut: int) -> None:
    first, second = _make(kind, ROWS[:cut]), _make(kind, ROWS[cut:])
    before = copy.deepcopy(second)
    first.merge(second)
    assert first == _make(kind, ROWS)
    assert second == before


def test_a_merged_accumulator_shares_nothing_with_its_parts() -> None:
    first, second = _make("clusters", []), _make("clusters", ROWS)
    first.merge(second)
    before = copy.deepcopy(second)
    KINDS["clusters"][1](first, ROWS[0])
    assert second == before


def test_many_numbers_at_once() -> None:
    one, other = _make("moments", ROWS), Moments()
    other.extend([])
    other.extend(row[0] for row in ROWS)
    assert other == one
