"""Metrics: each turns the rows of one system into summary numbers, which `context_bench.numbers` declares."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.errors import UsageError
from context_bench.metrics.dollar_cost import BilledRatio, DollarCost
from context_bench.metrics.evidence import Engagement, EvidenceShares
from context_bench.metrics.quality import (
    CardPassRate,
    MeanScore,
    OfficialScore,
    PassRate,
    PerDatasetBreakdown,
    Repeats,
    Retention,
)
from context_bench.metrics.times import FirstToken, Latency, ProxyOverhead
from context_bench.metrics.token_stats import CompressionRatio, CostOfPass, ParetoRank
from context_bench.metrics.upstream import PrefixStability, PromptSavings, TokenMeters, UpstreamCost, UpstreamTokens
from context_bench.numbers import COST_OF_PASS
from context_bench.refs import Ref, call_with, check_arguments, check_plain, parse, resolve
from context_bench.tallies import FunctionMetric
from context_bench.traits import find_name
from context_bench.types import Metric

__all__ = [
    "DEFAULT_THRESHOLD",
    "BilledRatio",
    "CardPassRate",
    "CompressionRatio",
    "CostOfPass",
    "DollarCost",
    "Engagement",
    "EvidenceShares",
    "FirstToken",
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


METRICS: dict[str, Any] = {
    kind.name: kind
    for kind in (
        *(MeanScore, PassRate, CardPassRate, PerDatasetBreakdown, OfficialScore, Repeats, Retention),
        *(
            CompressionRatio,
            CostOfPass,
            ParetoRank,
            DollarCost,
            BilledRatio,
            Latency,
            FirstToken,
            ProxyOverhead,
            EvidenceShares,
        ),
        Engagement,
        *(PromptSavings, UpstreamTokens, UpstreamCost, TokenMeters, PrefixStability),
    )
} | {
    "by-type": "context_bench.memory.metrics:ByType",
    "memory-costs": "context_bench.memory.metrics:MemoryCosts",
    "seed-spread": "context_bench.metrics.seed_spread:SeedSpread",
    "probe-shares": "context_bench.memory.probes:ProbeShares",
}
"""The built-in metrics by name; those of memory runs are imported where they are used."""


def default_metrics(
    score_field: str = "score",
    threshold: float = DEFAULT_THRESHOLD,
    *,
    datasets: int = 1,
    systems: int = 1,
    tapped: bool = False,
    controls: Sequence[str] = (),
    cost_field: str = COST_OF_PASS,
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
    if systems > 1 or tapped:
        metrics.append(Engagement(score_field))
    if datasets > 1:
        metrics.append(PerDatasetBreakdown(score_field))
    if systems > 1:
        metrics.append(ParetoRank(cost_field=cost_field, leave_out=tuple(controls)))
    if controls:
        metrics.append(Retention())
    return metrics


def choose_metrics(
    score_field: str,
    threshold: float | None = None,
    *,
    passes_by_card: bool = True,
    official: bool = False,
    **facts: Any,
) -> list[Metric]:
    """Build the metrics of a run without `metrics`: those of `default_metrics`, which takes `facts`, and a few more.

    The additional ones give no number unless a card recommends a threshold or billed tokens are known.
    """
    threshold = DEFAULT_THRESHOLD if threshold is None else threshold
    metrics = default_metrics(score_field, threshold, **facts)
    if passes_by_card:
        metrics.append(CardPassRate(score_field))
    if official:
        metrics.append(OfficialScore(score_field))
    return [*metrics, DollarCost(threshold, score_field), BilledRatio(), FirstToken()]


def load_metrics(text: str) -> Iterator[Metric]:
    """Build the metric that a reference names; several when it is a sweep."""
    for ref in parse("metric", text):
        metric = _build(ref, resolve("metric", ref))
        find_name(metric)
        if not isinstance(metric, Metric):
            raise UsageError(f"{ref.text!r} is not a metric: it needs .name and .compute(rows)")
        check_plain(metric, "compute")
        yield metric


def _build(ref: Ref, found: Any) -> Any:
    if inspect.isroutine(found) and _takes_rows(found) and not ref.parameters and not ref.argument:
        return _adapt_function(found)
    if isinstance(found, type) or (callable(found) and not isinstance(found, Metric)):
        return call_with(found, ref)
    if ref.parameters or ref.argument:
        raise UsageError(f"{ref.text!r}: this metric is already an instance and takes no parameters")
    return found


def _takes_rows(function: Any) -> bool:
    """Whether a function needs one argument: then it is a metric, else it makes one."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [each for each in parameters if each.default is each.empty and each.kind in positional]
    return [each.name for each in needed] == ["rows"]


def adapt_metrics(given: Any) -> list[Metric]:
    """Build metrics from objects, names, references or functions of rows; anything else is an error."""
    metrics: list[Metric] = []
    for each in given if isinstance(given, Iterable) and not isinstance(given, str) else [given]:
        if isinstance(each, str):
            metrics += load_metrics(each)
        elif not isinstance(each, type) and find_name(each) is not None and isinstance(each, Metric):
            check_plain(each, "compute")
            metrics.append(each)
        elif inspect.isroutine(each):
            metrics.append(_adapt_function(each))
        else:
            kind = each.__name__ if isinstance(each, type) else type(each).__name__
            raise UsageError(f"{kind} is not a metric: pass an object with .name and .compute(rows), or a name")
    return metrics


def _adapt_function(function: Any) -> Metric:
    check_plain(function, "__call__")
    check_arguments(function, 1, "a metric must take one argument, the rows of a system")
    return FunctionMetric(function)
