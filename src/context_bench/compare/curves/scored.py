"""The scores of one system by example: their mean, and their difference from those of another on the same examples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from context_bench.compare.comparison import read_group
from context_bench.stats import Difference, Interval, PairSums, ScoreSums, average_differences, average_means

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["Scores", "compare_scores", "estimate_score", "read_scores"]

Scores = dict[str, dict[str | int, tuple[float, str | None]]]
"""By dataset and example: the score, of several answers their mean, and what the example shares with others."""


def read_scores(rows: Iterable[EvalRow], field: str) -> Scores:
    """Read the scores of one system's rows: an errored row counts as 0, one without a score is left out.

    Args:
        rows: Of one system.
        field: The score that counts.
    """
    answers: dict[str, dict[str | int, list[float]]] = {}
    groups: dict[tuple[str, str | int], str] = {}
    for row in rows:
        value = 0.0 if row.error is not None else row.scores.get(field)
        if value is None:
            continue
        if (group := read_group(row)) is not None:
            groups[row.dataset, row.example_id] = group
        answers.setdefault(row.dataset, {}).setdefault(row.example_id, []).append(value)
    return {
        tag: {key: (sum(values) / len(values), groups.get((tag, key))) for key, values in own.items()}
        for tag, own in answers.items()
    }


def estimate_score(scores: Scores) -> Interval:
    """Give the mean score, of several datasets the mean of their means, by clusters where examples share them."""
    parts = []
    for own in scores.values():
        sums = ScoreSums()
        for value, group in own.values():
            sums.add(value, group)
        parts.append(sums.estimate())
    return average_means(parts)


def compare_scores(one: Scores, two: Scores) -> Difference:
    """Give the difference of two systems on the examples that both have, of several datasets the mean difference."""
    parts = []
    for tag, own in one.items():
        other, pairs = two.get(tag, {}), PairSums()
        for key, (value, group) in own.items():
            if key in other:
                pairs.add(value, other[key][0], group)
        if pairs.n:
            parts.append(pairs.difference())
    return parts[0] if len(parts) == 1 else average_differences(parts)
