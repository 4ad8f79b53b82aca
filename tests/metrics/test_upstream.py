"""What the tap saw, summed up: from sums, over the rows that tell it, and nothing where none does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench import EvalRow
from context_bench.metrics import (
    PrefixStability,
    PromptSavings,
    ProxyOverhead,
    TokenMeters,
    UpstreamCost,
    UpstreamTokens,
)
from rows import failed_row, make_row

EVERY = [PromptSavings, UpstreamCost, UpstreamTokens, ProxyOverhead, PrefixStability, TokenMeters]


def _row(upstream: int | None = None, **metadata: Any) -> EvalRow:
    return make_row(1.0, upstream_tokens=upstream, input_tokens=1000, metadata={"output": "response", **metadata})


@pytest.mark.parametrize("metric", EVERY)
def test_rows_that_nobody_measured_give_no_keys(metric: Any) -> None:
    assert metric().compute([]) == {}
    assert metric().compute([make_row(1.0), make_row(), failed_row(), _row()]) == {}


@pytest.mark.parametrize("metric", EVERY)
@pytest.mark.parametrize("value", [None, "12", math.nan, math.inf, [], {}])
def test_what_is_no_number_is_left_out(metric: Any, value: Any) -> None:
    keys = ("downstream_tokens", "untouched", "extra_upstream_calls", "proxy_overhead", "first_token_overhead")
    more = (
        "prefix_stability",
        "first_message_changed",
        "rewritten_history",
        "claimed_tokens_saved",
        "billed_prompt_tokens",
    )
    assert metric().compute([_row(**dict.fromkeys((*keys, *more), value))]) == {}


# --- PromptSavings


def test_savings_come_from_sums() -> None:
    # 900 of 1,000 saved and nothing of 100: 1 - 200/1100, which is not the mean of 0.9 and 0
    rows = [_row(100, downstream_tokens=1000, untouched=False), _row(100, downstream_tokens=100, untouched=True)]
    assert PromptSavings().compute(rows) == {
        "prompt_savings": pytest.approx(9 / 11),
        "downstream_tokens": 1100.0,
        "mean_downstream_tokens": 550.0,
        "untouched_share": 0.5,
    }


def test_more_may_be_sent_on_than_was_sent() -> None:
    assert PromptSavings().compute([_row(300, downstream_tokens=200)])["prompt_savings"] == -0.5


def test_only_rows_with_both_sides_count() -> None:
    rows = [
        _row(50, downstream_tokens=100),
        _row(70),
        _row(None, downstream_tokens=500, untouched=True),
        failed_row(upstream_tokens=1, metadata={"downstream_tokens": 900}),
    ]
    assert PromptSavings().compute(rows) == {
        "prompt_savings": 0.5,
        "downstream_tokens": 100.0,
        "mean_downstream_tokens": 100.0,
    }


def test_a_compressor_with_a_reader_is_sent_the_example() -> None:
    assert PromptSavings().compute([_row(250, output="context")])["prompt_savings"] == 0.75
    assert PromptSavings().compute([_row(250, output="context", downstream_tokens=500)])["prompt_savings"] == 0.5


def test_nothing_sent_is_nothing_saved() -> None:
    assert PromptSavings().compute([_row(0, downstream_tokens=0)]) == {}


# --- UpstreamTokens


def test_upstream_tokens_are_summed_over_all_rows_that_know_them() -> None:
    rows = [_row(100, extra_upstream_calls=2), _row(50, extra_upstream_calls=0), _row(), failed_row(upstream_tokens=30)]
    assert UpstreamTokens().compute(rows) == {
        "upstream_tokens": 180.0,
        "mean_upstream_tokens": 60.0,
        "extra_upstream_calls": 2.0,
    }


def test_calls_that_were_not_counted_are_no_zero() -> None:
    assert set(UpstreamTokens().compute([_row(5)])) == {"upstream_tokens", "mean_upstream_tokens"}
    assert UpstreamTokens().compute([_row(5, extra_upstream_calls=0)])["extra_upstream_calls"] == 0.0


# --- ProxyOverhead


def test_overhead_by_hand() -> None:
    # sorted 1..5: the median is rank 2, p95 rank 3.8, counted from 0
    rows = [_row(proxy_overhead=seconds) for seconds in (5.0, 1.0, 4.0, 2.0, 3.0)]
    assert ProxyOverhead().compute([*rows, failed_row(metadata={"proxy_overhead": 99.0})]) == pytest.approx(
        {"proxy_overhead_mean": 3.0, "proxy_overhead_median": 3.0, "proxy_overhead_p95": 4.8}
    )
    streamed = [_row(proxy_overhead=0.0, first_token_overhead=seconds) for seconds in (0.1, 0.3)]
    assert ProxyOverhead().compute([*streamed, *rows])["first_token_overhead_median"] == pytest.approx(0.2)


# --- PrefixStability


def test_the_means_of_conversations() -> None:
    rows = [
        _row(prefix_stability=1.0, first_message_changed=False, rewritten_history=0.0),
        _row(prefix_stability=0.5, first_message_changed=True, rewritten_history=0.25),
        _row(),
    ]
    assert PrefixStability().compute(rows) == {
        "prefix_stability": 0.75,
        "first_message_changed": 0.5,
        "rewritten_history": 0.125,
    }


# --- TokenMeters


def test_three_meters_each_on_its_own_rows() -> None:
    rows = [
        _row(40, downstream_tokens=100, claimed_tokens_saved=75, billed_prompt_tokens=45),
        _row(90, downstream_tokens=100, billed_prompt_tokens=95),
        _row(billed_prompt_tokens=10, claimed_tokens_saved=-5.5),
        _row(),
        failed_row(upstream_tokens=1, metadata={"downstream_tokens": 9, "claimed_tokens_saved": 9, "prompt_tokens": 9}),
    ]
    assert TokenMeters().compute(rows) == {
        "claimed_tokens_saved": 69.5,
        "claimed_rows": 2.0,
        "counted_tokens_saved": 70.0,
        "counted_rows": 2.0,
        "usage_prompt_tokens": 150.0,
        "usage_rows": 3.0,
    }


# --- UpstreamCost


def test_cost_is_what_the_model_read_and_wrote_for_each_pass() -> None:
    # 100 + 10 for the pass, 200 + 20 for the failure, nothing for the row that nobody measured: 330 for one pass
    rows = [
        make_row(0.7, upstream_tokens=100, metadata={"response_tokens": 10}),
        make_row(0.1, upstream_tokens=200, metadata={"response_tokens": 20}),
        make_row(1.0),
    ]
    assert UpstreamCost().compute(rows) == {"upstream_cost_of_pass": 330.0}
    assert UpstreamCost(threshold=0.05).compute(rows) == {"upstream_cost_of_pass": 165.0}
    assert UpstreamCost(threshold=0.9).compute(rows) == {"upstream_cost_of_pass": math.inf}
