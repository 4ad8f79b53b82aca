"""What every metric keeps to.

Runs for every registered metric that can be made without arguments: install a plugin with an entry point
in `context_bench.metrics`, and it is held to the same.
"""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import pytest

from context_bench import EvalRow, Metric
from context_bench.registry import registry
from context_bench.summary import describe_metric, rebuild_metrics
from rows import failed_row, make_row

ROWS: dict[str, list[EvalRow]] = {
    "none": [],
    "only errors": [failed_row(latency=1.0), failed_row(input_tokens=5)],
    "only unscored": [make_row(None, input_tokens=5, output_tokens=3, latency=0.5)],
    "mixed": [
        make_row(scores={"f1": 0.8, "score": 0.8}, input_tokens=100, output_tokens=40, latency=0.5, dataset="a"),
        make_row(scores={"f1": 0.2, "score": 0.2}, input_tokens=50, output_tokens=60, latency=1.5, dataset="b"),
        make_row(None, input_tokens=10, output_tokens=10, latency=0.1),
        failed_row(input_tokens=7, latency=30.0, dataset="a"),
    ],
}


@pytest.fixture(params=registry.list("metric"))
def metric(request: pytest.FixtureRequest) -> Any:
    return registry.get("metric", request.param)()


@pytest.fixture(params=ROWS)
def rows(request: pytest.FixtureRequest) -> list[EvalRow]:
    return copy.deepcopy(ROWS[request.param])


def test_it_has_a_name_under_which_it_is_registered(metric: Any) -> None:
    assert isinstance(metric, Metric)
    assert registry.get("metric", metric.name) is type(metric)


def test_it_computes_named_numbers(metric: Any, rows: list[EvalRow]) -> None:
    values = metric.compute(rows)
    assert isinstance(values, dict)
    assert all(isinstance(key, str) and isinstance(value, float) for key, value in values.items())
    assert not any(math.isnan(value) for value in values.values())


def test_rows_are_left_as_they_were(metric: Any, rows: list[EvalRow]) -> None:
    before = copy.deepcopy(rows)
    metric.compute(rows)
    assert rows == before


def test_the_order_of_rows_makes_no_difference(metric: Any, rows: list[EvalRow]) -> None:
    expected = metric.compute(rows)
    random.Random(0).shuffle(rows)
    assert metric.compute(rows) == pytest.approx(expected)


def test_row_by_row_gives_what_all_at_once_gives(metric: Any, rows: list[EvalRow]) -> None:
    if not hasattr(metric, "start"):
        pytest.skip("it wants all rows at once")
    tally = metric.start()
    for row in rows:
        tally.add(row)
    assert tally.result() == metric.compute(rows)


def test_computing_twice_gives_the_same(metric: Any, rows: list[EvalRow]) -> None:
    assert metric.compute(rows) == metric.compute(rows)


def test_it_can_be_made_again_from_what_a_run_records(metric: Any) -> None:
    (again,) = rebuild_metrics([describe_metric(metric)])
    assert describe_metric(again) == describe_metric(metric)
