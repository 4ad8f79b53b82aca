"""From rows to a summary: every metric for every system, with the counts that each number stands on.

A metric with a method `rank(summary)` compares systems: its ranks are put in once all are summarised.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from context_bench.errors import UnknownName, UsageError
from context_bench.registry import registry
from context_bench.types import Metric

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["counts", "describe_metric", "rebuild_metrics", "summarize"]


def counts(rows: list[EvalRow], score_field: str) -> dict[str, float]:
    """How many rows there are, and how many of them carry no score and why."""
    errors = sum(row.error is not None for row in rows)
    unscored = sum(row.error is None and score_field not in row.scores for row in rows)
    return {
        "num_examples": float(len(rows)),
        "num_errors": float(errors),
        "error_rate": errors / len(rows) if rows else 0.0,
        "num_unscored": float(unscored),
    }


def summarize(
    rows: Iterable[EvalRow], systems: Iterable[str], metrics: Iterable[Metric], score_field: str = "score"
) -> dict[str, dict[str, float]]:
    """Compute every metric for every system, and the ranks between them."""
    by_system: dict[str, list[EvalRow]] = {name: [] for name in systems}
    for row in rows:
        by_system.setdefault(row.system, []).append(row)
    metrics = list(metrics)
    summary: dict[str, dict[str, float]] = {}
    for name, own in by_system.items():
        summary[name] = {}
        for metric in metrics:
            summary[name].update(_computed(metric, own))
        summary[name].update(counts(own, score_field))
    if len(summary) > 1:
        for metric in metrics:
            if hasattr(metric, "rank"):
                _put_ranks(metric.rank(summary), summary, by_system)
    return summary


def _computed(metric: Metric, rows: list[EvalRow]) -> dict[str, float]:
    values = metric.compute(rows)
    if not isinstance(values, Mapping):
        raise UsageError(
            f"metric {metric.name!r} returned {type(values).__name__}: compute() returns a dict of numbers"
        )
    return dict(values)


def _put_ranks(
    ranks: Mapping[str, int], summary: dict[str, dict[str, float]], by_system: Mapping[str, list[EvalRow]]
) -> None:
    for name, values in summary.items():
        if name in ranks:
            values["pareto_rank"] = float(ranks[name])
        else:
            values.pop("pareto_rank", None)
    kinds = {row.metadata.get("output") for name in ranks for row in by_system[name] if row.error is None}
    if len(kinds - {None}) > 1:
        warnings.warn(
            "the Pareto rank compares systems that return a context with systems that return an answer: "
            "their output tokens count different things",
            stacklevel=2,
        )


def describe_metric(metric: Metric) -> dict[str, Any]:
    """A metric as data, from which `rebuild_metrics` makes it again."""
    params = dataclasses.asdict(metric) if dataclasses.is_dataclass(metric) else dict(vars(metric))
    return {"name": metric.name, "params": params}


def rebuild_metrics(described: Iterable[Mapping[str, Any]]) -> list[Metric]:
    """Metrics from what `describe_metric` said of them; those that this process does not know are left out."""
    metrics: list[Metric] = []
    for item in described:
        try:
            known = registry.get("metric", item["name"])
            metrics.append(known(**item.get("params", {})) if callable(known) else known)
        except (UnknownName, TypeError):
            continue
    return metrics
