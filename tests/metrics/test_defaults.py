"""The metrics of a run that chose none."""

from __future__ import annotations

from context_bench.metrics import default_metrics
from context_bench.metrics.quality import MeanScore, PassRate
from context_bench.metrics.token_stats import CostOfPass


def test_five_metrics_for_every_run() -> None:
    names = [metric.name for metric in default_metrics()]
    assert names == ["mean-score", "pass-rate", "compression-ratio", "cost-of-pass", "latency"]


def test_more_datasets_add_a_breakdown_and_more_systems_a_rank() -> None:
    assert default_metrics(datasets=2)[-1].name == "per-dataset-breakdown"
    assert default_metrics(systems=2)[-1].name == "pareto-rank"
    assert [metric.name for metric in default_metrics(datasets=2, systems=2)[5:]] == [
        "per-dataset-breakdown",
        "pareto-rank",
    ]


def test_field_and_threshold_reach_every_metric_that_has_them() -> None:
    mean, passes, _, cost, *_ = default_metrics("f1", 0.5)
    assert (mean, passes, cost) == (MeanScore("f1"), PassRate(0.5, "f1"), CostOfPass(0.5, "f1"))
    assert default_metrics("f1", datasets=2)[-1].score_field == "f1"  # type: ignore[attr-defined]
