"""The best one-to-one assignment, against trying every one."""

from __future__ import annotations

import itertools
import random

import pytest

from context_bench.evaluators.assignment import find_best_assignment


def best_total(weights: list[list[float]]) -> float:
    rows, columns = len(weights), len(weights[0])
    if rows > columns:
        weights = [list(column) for column in zip(*weights)]
        rows, columns = columns, rows
    return max(
        sum(weights[row][column] for row, column in enumerate(order))
        for order in itertools.permutations(range(columns), rows)
    )


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 3), (4, 2), (2, 4), (5, 5), (6, 4)])
def test_finds_the_greatest_total(shape: tuple[int, int]) -> None:
    source = random.Random(sum(shape))
    for _ in range(30):
        weights = [[source.choice([0.0, 0.5, source.random()]) for _ in range(shape[1])] for _ in range(shape[0])]
        found = find_best_assignment(weights)
        assert len({row for row, _ in found}) == len({column for _, column in found}) == len(found) == min(shape)
        assert sum(weights[row][column] for row, column in found) == pytest.approx(best_total(weights))


def test_nothing_to_pair() -> None:
    assert find_best_assignment([]) == []
    assert find_best_assignment([[], []]) == []
