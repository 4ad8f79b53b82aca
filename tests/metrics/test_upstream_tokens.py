"""UpstreamTokens: sums over all rows that know them."""

from __future__ import annotations

from context_bench.metrics import UpstreamTokens
from rows import failed_row, tapped_row


def test_upstream_tokens_are_summed_over_all_rows_that_know_them() -> None:
    rows = [
        tapped_row(100, extra_upstream_calls=2),
        tapped_row(50, extra_upstream_calls=0),
        tapped_row(),
        failed_row(upstream_tokens=30),
    ]
    assert UpstreamTokens().compute(rows) == {
        "upstream_tokens": 180.0,
        "mean_upstream_tokens": 60.0,
        "extra_upstream_calls": 2.0,
    }


def test_calls_that_were_not_counted_are_no_zero() -> None:
    assert set(UpstreamTokens().compute([tapped_row(5)])) == {"upstream_tokens", "mean_upstream_tokens"}
    assert UpstreamTokens().compute([tapped_row(5, extra_upstream_calls=0)])["extra_upstream_calls"] == 0.0


def test_lost_calls_and_cached_answers_have_sums_of_their_own() -> None:
    rows = [
        tapped_row(100, lost_upstream_calls=1, lost_upstream_tokens=110, cached_answer=False),
        tapped_row(0, lost_upstream_calls=0, lost_upstream_tokens=0, cached_answer=True),
        tapped_row(0, lost_upstream_calls=2, lost_upstream_tokens=40, cached_answer=True),
    ]
    assert UpstreamTokens().compute(rows) == {
        "upstream_tokens": 100.0,
        "mean_upstream_tokens": 100 / 3,
        "lost_upstream_calls": 3.0,
        "lost_upstream_tokens": 150.0,
        "cached_answers": 2.0,
    }
