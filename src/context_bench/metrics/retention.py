"""How much of the context's worth a system keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from context_bench.metrics.row_by_row import NoTally, RunningMetric
from context_bench.traits import MetricTraits

__all__ = ["Retention"]


@dataclass(frozen=True)
class Retention(RunningMetric):
    """(score - floor) / (direct - floor): 0 is a model without the context, 1 is one with all of it.

    The two ends are systems of the same run: the model asked without a context and with the full one. Without
    them, or where the context does not help (direct is not above floor), nobody has a retention; nor have the
    controls themselves, or a system without a score. It may be below 0 and above 1.
    """

    floor: str = "floor"
    direct: str = "direct"
    ceiling: str = "ceiling"
    name = "retention"
    keys = ("retention",)

    def start(self) -> NoTally:
        """Collect nothing: one system alone has no retention; see `compare`."""
        return NoTally()

    def __context_bench_traits__(self) -> MetricTraits:
        return MetricTraits(compare=self.compare)

    def compare(self, summary: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Compute the retention of every system that is not a control."""
        scores = {name: score for name, values in summary.items() if (score := _score(values)) is not None}
        floor, direct = scores.get(self.floor), scores.get(self.direct)
        if floor is None or direct is None or direct <= floor:
            return {}
        controls = (self.floor, self.direct, self.ceiling)
        return {
            name: {"retention": (score - floor) / (direct - floor)}
            for name, score in scores.items()
            if name not in controls
        }


def _score(values: Mapping[str, float]) -> float | None:
    """Read the mean score; None where no row was scored."""
    score = values.get("mean_score", math.nan)
    nothing = values.get("num_examples") == values.get("num_unscored", 0)
    return None if math.isnan(score) or nothing else score
