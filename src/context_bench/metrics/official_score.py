"""The number that a benchmark's authors report, where it is not a mean of rows.

Rows say themselves how they count, in their metadata. `group` is a path such as `live/simple`: rows are
averaged within it, then paths level by level (the mean of BBH's tasks, BFCL's groups). `weight` units of
the score `weight_field` make a ratio of sums (IFEval's instructions). Errored rows count 0, as everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from context_bench.metrics.quality import MeanTally, ScoreCount
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow

__all__ = ["OfficialScore"]


@dataclass(frozen=True)
class OfficialScore(RunningMetric):
    """`official_score`, or `official:<tag>` for each of several datasets; nothing where rows are simply averaged."""

    score_field: str = "score"
    name = "official-score"
    keys = ("official_score", "official:{tag}")

    def start(self) -> OfficialTally:
        """Start a number for each dataset."""
        return OfficialTally(self.score_field)


class OfficialTally:
    """Collects groups and weights by dataset."""

    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._counts: dict[str, ScoreCount] = {}
        self._groups: dict[str, dict[str, MeanTally]] = {}
        self._weighted: dict[str, list[tuple[float, float]]] = {}

    def add(self, row: EvalRow) -> None:
        """Add one row; one that has no group and no weight is left out."""
        group, weight = row.metadata.get("group"), row.metadata.get("weight")
        if group is None and not weight:
            return
        field = self._field if group is not None else row.metadata.get("weight_field") or self._field
        value = self._counts.setdefault(row.dataset, ScoreCount(field)).take(row)
        if group is not None:
            groups = self._groups.setdefault(row.dataset, {})
            groups.setdefault(str(group), MeanTally(self._field)).add(row)
        elif value is not None and weight:
            self._weighted.setdefault(row.dataset, []).append((value * weight, weight))

    def result(self) -> dict[str, float]:
        """Return one number for each dataset so far."""
        numbers = {tag: _mean_of_groups(_means(groups)) for tag, groups in self._groups.items()}
        for tag, parts in self._weighted.items():
            numbers.setdefault(tag, math.fsum(earned for earned, _ in parts) / math.fsum(units for _, units in parts))
        return {_key(tag, numbers): numbers[tag] for tag in sorted(numbers)}

    def unmeasured(self) -> dict[str, str]:
        """Name the datasets of which no row has the score."""
        numbers = self._groups.keys() | self._weighted.keys()
        return {key: why for tag in numbers for key, why in self._counts[tag].unmeasured(_key(tag, numbers)).items()}


def _key(tag: str, tags: Collection[str]) -> str:
    return "official_score" if len(tags) == 1 else f"official:{tag}"


def _means(groups: Mapping[str, MeanTally]) -> dict[str, float]:
    return {path: tally.result()["mean_score"] for path, tally in groups.items() if tally.count}


def _mean_of_groups(means: Mapping[str, float]) -> float:
    """Average each level of the paths on its own, from the innermost one."""
    levels: dict[str, dict[str, float]] = {}
    for path, mean in means.items():
        head, _, rest = path.partition("/")
        levels.setdefault(head, {})[rest] = mean
    return _mean(_mean_of_groups(inner) if any(inner) else inner[""] for inner in levels.values())


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return math.fsum(known) / len(known) if known else 0.0
