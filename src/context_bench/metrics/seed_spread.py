"""How much the score of a system varies with its seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import stdev
from typing import Any

from context_bench.metrics.running import RunningMetric, mean
from context_bench.results import EvalRow
from context_bench.stats import Interval


@dataclass(frozen=True)
class SeedSpread(RunningMetric):
    """Standard deviation of the mean score over seeds; with several datasets, of the mean of their means.

    Rows name their seed in `metadata`, as the rows of merged seeds do. A failed row counts as 0.
    """

    score_field: str = "score"
    name = "seed-spread"

    def start(self) -> SeedSpreadTally:
        return SeedSpreadTally(self.score_field)


@dataclass
class SeedSpreadTally:
    """Adds up scores by seed and dataset."""

    score_field: str
    _sums: dict[Any, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, row: EvalRow) -> None:
        value = 0.0 if row.error is not None else row.scores.get(self.score_field)
        if value is not None and (seed := row.metadata.get("seed")) is not None:
            sums = self._sums.setdefault(seed, {}).setdefault(row.dataset, [0.0, 0.0])
            sums[0] += value
            sums[1] += 1

    def result(self) -> dict[str, float]:
        means = [mean([total / count for total, count in sums.values()]) for sums in self._sums.values()]
        return {"seed_spread": stdev(means) if len(means) > 1 else math.nan} if means else {}

    def intervals(self) -> dict[str, Interval]:
        return {}
