"""The metrics that a run computes when nobody chose any."""

from __future__ import annotations

from context_bench.metrics.breakdown import PerDatasetBreakdown
from context_bench.metrics.cost import CostOfPass
from context_bench.metrics.latency import Latency
from context_bench.metrics.quality import MeanScore, PassRate
from context_bench.metrics.token_stats import CompressionRatio, ParetoRank
from context_bench.types import Metric

__all__ = ["default_metrics"]


def default_metrics(
    score_field: str = "score", threshold: float = 0.7, *, datasets: int = 1, systems: int = 1
) -> list[Metric]:
    """The five metrics of every run; more datasets add a breakdown, more systems a Pareto rank."""
    metrics: list[Metric] = [
        MeanScore(score_field),
        PassRate(threshold, score_field),
        CompressionRatio(),
        CostOfPass(threshold, score_field),
        Latency(),
    ]
    if datasets > 1:
        metrics.append(PerDatasetBreakdown(score_field))
    if systems > 1:
        metrics.append(ParetoRank())
    return metrics
