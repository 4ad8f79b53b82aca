"""Tokens saved and spent, and the Pareto rank of quality against cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.running import BatchTally, PlaceholderTally, RatioSpread, RunningMetric, ScoreCount
from context_bench.numbers import COMPRESSION_RATIO, COST_OF_PASS, MEAN_OUTPUT_TOKENS, MEAN_SCORE
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.traits import MetricTraits


class TokenTally(BatchTally):
    def __init__(self) -> None:
        self._count = 0
        self._tokens = RatioSpread()

    def add_all(self, rows: Sequence[EvalRow]) -> None:
        """Add several rows at once."""
        parts = [(row, row.output_tokens, row.input_tokens) for row in rows if row.error is None]
        self._count += len(parts)
        self._tokens.add_all(parts)

    def result(self) -> dict[str, float]:
        tokens, count = self._tokens, self._count or 1
        return {
            COMPRESSION_RATIO: 1.0 - tokens.ratio if tokens.below else 0.0,
            "mean_input_tokens": tokens.below / count,
            MEAN_OUTPUT_TOKENS: tokens.above / count,
        }

    def unmeasured(self) -> dict[str, str]:
        """Mark all three as unmeasured if no row succeeded, and the ratio if there was nothing to compress."""
        if not self._count:
            return dict.fromkeys(self.result(), "no row succeeded")
        return {} if self._tokens.below else {COMPRESSION_RATIO: "the examples have no prompt tokens"}

    def intervals(self) -> dict[str, Interval]:
        return {COMPRESSION_RATIO: self._tokens.interval().subtract_from(1.0)} if self._tokens.below else {}


@dataclass(frozen=True)
class CompressionRatio(RunningMetric):
    """1 - output/input over summed tokens: positive if the output is smaller, negative if it is larger.

    It divides sums instead of averaging ratios, so that a long example weighs as much as it costs. Errored rows are
    left out. Without rows all numbers are 0.0.
    """

    name = "compression-ratio"
    tally = TokenTally


class CostTally(BatchTally):
    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._cost = RatioSpread(positive=True)

    def add_all(self, rows: Sequence[EvalRow]) -> None:
        """Add several rows at once."""
        self._cost.add_all([(row, row.output_tokens, self._rows.passes(row, self._threshold)) for row in rows])

    def result(self) -> dict[str, float]:
        return {COST_OF_PASS: self._cost.ratio, "num_passing": float(self._cost.below)}

    def unmeasured(self) -> dict[str, str]:
        """Mark both numbers as unmeasured if no row has the score, because it is unknown whether anything passed."""
        return self._rows.unmeasured(COST_OF_PASS, "num_passing")

    def intervals(self) -> dict[str, Interval]:
        return {COST_OF_PASS: self._cost.interval()} if self._cost.below else {}


@dataclass(frozen=True)
class CostOfPass(RunningMetric):
    """Output tokens spent for each passing example (after arXiv:2504.13359); lower is better.

    Tokens of failed examples count, because they were spent too. The cost is infinite if nothing passes.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "cost-of-pass"
    tally = CostTally


@dataclass(frozen=True)
class ParetoRank(RunningMetric):
    """The Pareto front of a system, by quality and cost.

    A single system cannot be ranked: `compute` returns 0.0, and `evaluate` inserts the results of `rank_systems` for
    all. The field "score" stands for the mean score. `leave_out` names systems that do not compete. `evaluate` also
    inserts `pareto_front`: 1 on the front, 0 off it, by paired intervals of score and cost.
    """

    quality_field: str = "score"
    cost_field: str = COST_OF_PASS
    leave_out: Sequence[str] = ()
    name = "pareto-rank"

    def __post_init__(self) -> None:
        object.__setattr__(self, "leave_out", tuple(self.leave_out))  # as JSON it comes back as a list

    def start(self) -> PlaceholderTally:
        """Collect nothing: a rank needs all systems; see `rank`."""
        return PlaceholderTally(pareto_rank=0.0)

    def __context_bench_traits__(self) -> MetricTraits:
        return MetricTraits(rank=self.rank, cost_field=self.cost_field)

    def rank(self, summary: Mapping[str, Mapping[str, float]]) -> dict[str, int]:
        quality = MEAN_SCORE if self.quality_field == "score" else self.quality_field
        competing = {name: values for name, values in summary.items() if name not in self.leave_out}
        return self.rank_systems(competing, quality_field=quality, cost_field=self.cost_field)

    @staticmethod
    def rank_systems(
        summary: Mapping[str, Mapping[str, float]], quality_field: str = MEAN_SCORE, cost_field: str = COST_OF_PASS
    ) -> dict[str, int]:
        """Sort systems into fronts: 1 for those that no other beats, 2 once those are removed, and so on.

        A system beats another if it is at least as good in both and better in one. An infinite
        cost ranks after every finite one. A system without the fields, or with NaN there, has no rank.
        """

        def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
            return a[0] >= b[0] and a[1] <= b[1] and a != b

        points = {}
        for name, values in summary.items():
            quality, cost = values.get(quality_field, math.nan), values.get(cost_field, math.nan)
            if not (math.isnan(quality) or math.isnan(cost)):
                points[name] = (quality, cost)
        ranks: dict[str, int] = {}
        for group in (
            {name: point for name, point in points.items() if math.isfinite(point[1])},
            {name: point for name, point in points.items() if not math.isfinite(point[1])},
        ):
            front = max(ranks.values(), default=0)
            while group:
                front += 1
                best = [name for name in group if not any(beats(group[other], group[name]) for other in group)]
                ranks.update(dict.fromkeys(best, front))
                group = {name: point for name, point in group.items() if name not in best}
        return {name: ranks[name] for name in points}
