"""Latency: percentiles by linear interpolation between the two nearest ranks."""

from __future__ import annotations

import random
import statistics

import pytest

from context_bench.metrics import Latency
from context_bench.stats.quantiles import percentile
from rows import failed_row, make_row


def _summary(*seconds: float) -> dict[str, float]:
    return Latency().compute([make_row(latency=value) for value in seconds])


def test_five_values_by_hand() -> None:
    # sorted 1..5: the median is rank 2, p95 rank 3.8 and p99 rank 3.96, counted from 0
    summary = _summary(5.0, 1.0, 4.0, 2.0, 3.0)
    assert summary == pytest.approx(
        {"latency_mean": 3.0, "latency_median": 3.0, "latency_p95": 4.8, "latency_p99": 4.96}
    )


def test_an_even_number_of_values_has_its_median_between_the_middle_two() -> None:
    assert _summary(1.0, 2.0, 4.0, 8.0)["latency_median"] == 3.0


def test_a_hundred_and_one_values_hit_the_ranks_exactly() -> None:
    summary = _summary(*map(float, range(101)))
    assert (summary["latency_median"], summary["latency_p95"], summary["latency_p99"]) == pytest.approx((50, 95, 99))


def test_one_value_is_every_percentile() -> None:
    assert set(_summary(0.25).values()) == {0.25}


def test_no_rows_and_only_failures_give_zeros() -> None:
    zeros = {"latency_mean": 0.0, "latency_median": 0.0, "latency_p95": 0.0, "latency_p99": 0.0}
    assert Latency().compute([]) == zeros
    assert Latency().compute([failed_row(latency=30.0)]) == zeros


def test_errored_rows_are_left_out() -> None:
    rows = [make_row(latency=1.0), failed_row(latency=30.0), make_row(latency=3.0)]
    assert Latency().compute(rows)["latency_mean"] == 2.0


def test_unscored_rows_have_a_latency_too() -> None:
    assert Latency().compute([make_row(None, latency=2.0)])["latency_mean"] == 2.0


@pytest.mark.parametrize("count", [2, 3, 10, 57, 1000])
def test_percentiles_agree_with_the_standard_library(count: int) -> None:
    rng = random.Random(count)
    values = sorted(rng.expovariate(1.0) for _ in range(count))
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    for number in (50, 95, 99):
        assert percentile(values, number / 100) == pytest.approx(cuts[number - 1], rel=1e-12)


def test_percentiles_agree_with_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    rng = random.Random(3)
    for count in range(1, 60):
        values = sorted(rng.random() for _ in range(count))
        for number in (0, 5, 50, 95, 99, 100):
            assert percentile(values, number / 100) == pytest.approx(float(numpy.percentile(values, number)), rel=1e-12)
