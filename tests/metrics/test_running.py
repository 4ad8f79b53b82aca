"""The shape that the metrics share."""

from __future__ import annotations

import pytest

from context_bench.metrics import default_metrics
from context_bench.metrics.running import PlaceholderTally, RunningMetric
from context_bench.registry import registry
from rows import make_row


@pytest.mark.parametrize("name", registry.list("metric"))
def test_every_metric_of_ours_counts_row_by_row(name: str) -> None:
    metric = registry.get("metric", name)()
    assert isinstance(metric, RunningMetric)
    rows = [make_row(1.0), make_row(0.0), make_row(0.5)]
    tally = metric.start()
    for row in rows:
        tally.add(row)
    assert tally.result() == metric.compute(rows)
    assert metric.compute(rows) == metric.compute(rows)  # each starts anew


def test_all_that_a_run_computes_by_itself_are_of_that_shape() -> None:
    every = default_metrics(datasets=2, systems=2, tapped=True, controls=("floor",), judged=True)
    assert all(isinstance(metric, RunningMetric) for metric in every)


def test_a_metric_must_say_how_it_starts() -> None:
    class Halfway(RunningMetric):
        name = "halfway"

    with pytest.raises(TypeError, match="start"):
        Halfway()  # type: ignore[abstract]


def test_what_compares_systems_counts_no_rows() -> None:
    tally = PlaceholderTally(pareto_rank=0.0)
    tally.add(make_row(1.0))
    assert tally.result() == {"pareto_rank": 0.0}
    assert PlaceholderTally().result() == {}
