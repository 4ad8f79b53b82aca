"""Latency, and the time that a proxy adds."""

from __future__ import annotations

import random
import statistics
from typing import Any

import pytest

from context_bench import EvalRow
from context_bench.metrics import FirstToken, Latency, ProxyOverhead
from context_bench.stats.quantiles import percentile
from context_bench.summary import fold
from rows import failed_row, make_row, tapped_row

# -- latency


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


# -- proxy overhead


def _rows(*seconds: float, alone: bool = True, key: str = "proxy_overhead") -> list[EvalRow]:
    return [tapped_row(alone=alone, **{key: each}) for each in seconds]


def _notes(rows: list[EvalRow]) -> dict[str, Any]:
    tally = ProxyOverhead().start()
    fold(tally, rows)
    return tally.notes()


def test_overhead_by_hand() -> None:
    # sorted 1..5: the median is rank 2, p95 rank 3.8, counted from 0
    rows = _rows(5.0, 1.0, 4.0, 2.0, 3.0)
    assert ProxyOverhead().compute([*rows, failed_row(metadata={"proxy_overhead": 99.0})]) == pytest.approx(
        {
            "proxy_overhead_mean": 3.0,
            "proxy_overhead_median": 3.0,
            "proxy_overhead_p95": 4.8,
            "proxy_overhead_rows": 5.0,
        }
    )
    streamed = _rows(0.1, 0.3, key="first_token_overhead")
    assert ProxyOverhead().compute([*streamed, *rows])["first_token_overhead_median"] == pytest.approx(0.2)


def test_with_twenty_alone_only_those_count() -> None:
    alone, together = _rows(*[0.1] * 20), _rows(*[1.2] * 80, alone=False)
    values = ProxyOverhead().compute([*together, *alone])
    assert (values["proxy_overhead_median"], values["proxy_overhead_p95"]) == (0.1, 0.1)
    assert values["proxy_overhead_rows"] == 20.0
    assert _notes([*together, *alone]) == {}


def test_with_fewer_all_count_and_a_note_says_that_this_includes_waiting() -> None:
    rows = [*_rows(*[0.1] * 19), *_rows(*[1.2] * 81, alone=False)]
    values = ProxyOverhead().compute(rows)
    assert (values["proxy_overhead_median"], values["proxy_overhead_rows"]) == (1.2, 100.0)
    assert _notes(rows) == {
        "proxy_overhead_median": "includes waiting: 19 of 100 rows had no other request of the system in flight, and "
        "20 are needed; --max-workers 1 measures only the proxy"
    }


def test_few_rows_that_were_all_alone_include_no_waiting() -> None:
    assert ProxyOverhead().compute(_rows(0.1, 0.3))["proxy_overhead_rows"] == 2.0
    assert _notes(_rows(0.1, 0.3)) == {}


def test_rows_that_do_not_say_may_have_waited() -> None:
    assert "includes waiting: 0 of 1" in _notes([tapped_row(proxy_overhead=0.1)])["proxy_overhead_median"]


def test_the_first_token_has_a_note_of_its_own() -> None:
    rows = _rows(*[0.1] * 30, alone=False, key="first_token_overhead")
    assert set(_notes(rows)) == {"first_token_overhead_median"}


def test_time_to_the_first_token() -> None:
    rows = [make_row(1.0, metadata={"time_to_first_token": seconds}) for seconds in (0.1, 0.3, 0.2)]
    values = FirstToken().compute([*rows, failed_row(metadata={"time_to_first_token": 9.0}), make_row(1.0)])
    assert values["time_to_first_token_median"] == pytest.approx(0.2)
    assert values["time_to_first_token_p95"] == pytest.approx(0.29)  # between the 2nd and 3rd of three, at 1.9
    assert FirstToken().compute([make_row(1.0)]) == {}
