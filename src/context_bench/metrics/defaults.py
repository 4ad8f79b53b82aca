"""The metrics that a run computes when none are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.cost_of_pass import CostOfPass
from context_bench.metrics.evidence_shares import EvidenceShares
from context_bench.metrics.latency import Latency
from context_bench.metrics.per_dataset import PerDatasetBreakdown
from context_bench.metrics.prefix_stability import PrefixStability
from context_bench.metrics.prompt_savings import PromptSavings
from context_bench.metrics.proxy_overhead import ProxyOverhead
from context_bench.metrics.quality import MeanScore, PassRate
from context_bench.metrics.repeats import Repeats
from context_bench.metrics.retention import Retention
from context_bench.metrics.token_meters import TokenMeters
from context_bench.metrics.token_stats import CompressionRatio, ParetoRank
from context_bench.metrics.upstream_cost import UpstreamCost
from context_bench.metrics.upstream_tokens import UpstreamTokens
from context_bench.types import Metric

__all__ = ["DEFAULT_THRESHOLD", "default_metrics"]


def default_metrics(
    score_field: str = "score",
    threshold: float = DEFAULT_THRESHOLD,
    *,
    datasets: int = 1,
    systems: int = 1,
    tapped: bool = False,
    controls: Sequence[str] = (),
    cost_field: str = "cost_of_pass",
    judged: bool = False,
    repeats: int = 1,
) -> list[Metric]:
    """Build the five metrics of every run; a tap, repeats, several datasets or systems, and controls add their own."""
    metrics: list[Metric] = [
        MeanScore(score_field),
        PassRate(threshold, score_field),
        CompressionRatio(),
        CostOfPass(threshold, score_field),
        Latency(),
    ]
    if judged and score_field != "judge_score":
        metrics.append(MeanScore("judge_score"))
    if repeats > 1:
        metrics.append(Repeats(repeats, threshold, score_field))
    if tapped:
        metrics += [
            PromptSavings(),
            UpstreamTokens(),
            UpstreamCost(threshold, score_field),
            ProxyOverhead(),
            TokenMeters(),
            PrefixStability(),
            EvidenceShares(threshold, score_field),
        ]
    if datasets > 1:
        metrics.append(PerDatasetBreakdown(score_field))
    if systems > 1:
        metrics.append(ParetoRank(cost_field=cost_field, leave_out=tuple(controls)))
    if controls:
        metrics.append(Retention())
    return metrics
