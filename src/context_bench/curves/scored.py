"""The scores of one system by example: their mean, and their difference from those of another on the same examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from context_bench.stats import (
    ClusterSums,
    Difference,
    Interval,
    Mean,
    Moments,
    PairedSums,
    average_differences,
    average_means,
    clustered_difference,
    clustered_mean,
    estimate_mean,
    paired_difference,
)

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["Key", "Scores", "compare_scores", "estimate_score", "read_scores"]

Key = tuple[str | int, int]
"""Example and repeat."""

Scores = dict[str, dict[Key, tuple[float, str | None]]]
"""By dataset and example: the score, and what the example shares with others, such as a document."""


def read_scores(rows: Iterable[EvalRow], field: str, *, repeats: bool) -> Scores:
    """Read the scores of one system's rows: an errored row counts as 0, one without a score is left out.

    Args:
        rows: Of one system.
        field: The score that counts.
        repeats: Whether examples were answered several times: the answers to one example are not independent.
    """
    scores: Scores = {}
    for row in rows:
        value = 0.0 if row.error is not None else row.scores.get(field)
        if value is None:
            continue
        group = row.metadata.get("cluster")
        if group is None and repeats:
            group = row.example_id
        own = scores.setdefault(row.dataset, {})
        own[row.example_id, row.repeat] = (value, None if group is None else str(group))
    return scores


def estimate_score(scores: Scores) -> Interval:
    """Give the mean score, of several datasets the mean of their means, by clusters where examples share them."""
    return average_means([_estimate(list(own.values())) for own in scores.values()])


def _estimate(values: Sequence[tuple[float, str | None]]) -> Mean:
    clusters = _find_clusters(values)
    if clusters is not None:
        return clustered_mean(clusters)
    moments = Moments()
    moments.extend([value for value, _ in values])
    return estimate_mean(moments)


def compare_scores(one: Scores, two: Scores) -> Difference:
    """Give the difference of two systems on the examples that both have, of several datasets the mean difference."""
    parts = []
    for tag, own in one.items():
        other = two.get(tag, {})
        pairs = [(value - other[key][0], group) for key, (value, group) in own.items() if key in other]
        if pairs:
            parts.append(_compare(pairs))
    return parts[0] if len(parts) == 1 else average_differences(parts)


def _compare(pairs: Sequence[tuple[float, str | None]]) -> Difference:
    clusters = _find_clusters(pairs)
    if clusters is not None:
        return clustered_difference(clusters)
    changes = [change for change, _ in pairs]
    up = sum(change > 0 for change in changes)
    down = sum(change < 0 for change in changes)
    return paired_difference(PairedSums(len(changes), sum(changes), sum([each * each for each in changes]), up, down))


def _find_clusters(values: Sequence[tuple[float, str | None]]) -> ClusterSums | None:
    """Add up by cluster, where every example is in one and some share one."""
    groups = {group for _, group in values}
    if None in groups or len(groups) == len(values):
        return None
    clusters = ClusterSums()
    for value, group in values:
        clusters.add(str(group), value)
    return clusters
