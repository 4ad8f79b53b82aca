"""The one-to-one assignment of rows to columns with the greatest total weight."""

from __future__ import annotations

from collections.abc import Sequence


def find_best_assignment(weights: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Find the pairs (row, column) of greatest total weight; if there are enough columns, every row gets one.

    This is the Hungarian method with potentials; the time is cubic in the size of the table.
    """
    if not weights or not weights[0]:
        return []
    if len(weights) > len(weights[0]):
        return sorted((row, column) for column, row in find_best_assignment(list(zip(*weights))))
    rows, columns = len(weights), len(weights[0])
    row_price, column_price = [0.0] * (rows + 1), [0.0] * (columns + 1)
    owner = [0] * (columns + 1)  # row of each column; column 0 means "not yet paired", rows count from 1
    for row in range(1, rows + 1):
        owner[0] = row
        column, before = _find_cheapest_path(weights, owner, row_price, column_price)
        while column:
            owner[column] = owner[before[column]]
            column = before[column]
    return sorted((owner[column] - 1, column - 1) for column in range(1, columns + 1) if owner[column])


def _find_cheapest_path(
    weights: Sequence[Sequence[float]], owner: list[int], row_price: list[float], column_price: list[float]
) -> tuple[int, list[int]]:
    """Grow a tree of tight pairs from the new row until it reaches a free column; adjust the prices."""
    columns = len(owner) - 1
    slack, before, seen = [float("inf")] * (columns + 1), [0] * (columns + 1), [False] * (columns + 1)
    column = 0
    while True:
        seen[column] = True
        row, step, nearest = owner[column], float("inf"), 0
        for other in range(1, columns + 1):
            if seen[other]:
                continue
            cost = -weights[row - 1][other - 1] - row_price[row] - column_price[other]
            if cost < slack[other]:
                slack[other], before[other] = cost, column
            if slack[other] < step:
                step, nearest = slack[other], other
        for other in range(columns + 1):
            if seen[other]:
                row_price[owner[other]] += step
                column_price[other] -= step
            else:
                slack[other] -= step
        column = nearest
        if not owner[column]:
            return column, before
