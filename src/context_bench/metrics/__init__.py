"""Metrics: each turns the rows of one system into summary numbers. One file each."""

from context_bench.metrics.billed_ratio import BilledRatio
from context_bench.metrics.card_pass_rate import CardPassRate
from context_bench.metrics.cost_of_pass import CostOfPass
from context_bench.metrics.defaults import DEFAULT_THRESHOLD, default_metrics
from context_bench.metrics.dollar_cost import DollarCost
from context_bench.metrics.evidence_shares import EvidenceShares
from context_bench.metrics.latency import Latency
from context_bench.metrics.official_score import OfficialScore
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

__all__ = [
    "DEFAULT_THRESHOLD",
    "BilledRatio",
    "CardPassRate",
    "CompressionRatio",
    "CostOfPass",
    "DollarCost",
    "EvidenceShares",
    "Latency",
    "MeanScore",
    "OfficialScore",
    "ParetoRank",
    "PassRate",
    "PerDatasetBreakdown",
    "PrefixStability",
    "PromptSavings",
    "ProxyOverhead",
    "Repeats",
    "Retention",
    "TokenMeters",
    "UpstreamCost",
    "UpstreamTokens",
    "default_metrics",
]
