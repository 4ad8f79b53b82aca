"""BilledRatio: tokens on the bill for each that we counted."""

from __future__ import annotations

import math

import pytest

from context_bench.metrics import BilledRatio
from rows import failed_row, make_row, tapped_row


def test_least_squares_through_zero() -> None:
    rows = [
        tapped_row(100, upstream_calls=1, billed_prompt_tokens=110),
        tapped_row(200, upstream_calls=1, billed_prompt_tokens=240),
    ]
    # (110 x 100 + 240 x 200) / (100^2 + 200^2) = 59,000 / 50,000
    # left over: (110 - 118)^2 + (240 - 236)^2 = 80 of 110^2 + 240^2 = 69,700
    assert BilledRatio().compute(rows) == {
        "billed_to_counted": pytest.approx(1.18),
        "billed_to_counted_residual": pytest.approx(math.sqrt(80 / 69_700)),
        "billed_to_counted_rows": 2.0,
    }


def test_one_factor_leaves_nothing_over() -> None:
    rows = [tapped_row(tokens, upstream_calls=1, billed_prompt_tokens=tokens * 3) for tokens in (7, 10**9, 123)]
    values = BilledRatio().compute(rows)
    assert (values["billed_to_counted"], values["billed_to_counted_residual"]) == (3.0, 0.0)


def test_rows_that_know_both_alone_count() -> None:
    rows = [
        tapped_row(100, upstream_calls=1, prompt_tokens=999),  # the proxy's word
        tapped_row(None, upstream_calls=1, billed_prompt_tokens=110),
        tapped_row(0, upstream_calls=0, billed_prompt_tokens=0),
        failed_row(upstream_tokens=10, metadata={"billed_prompt_tokens": 11}),
        make_row(1.0, metadata={"prompt_tokens": 5}),
    ]
    assert BilledRatio().compute(rows) == BilledRatio().compute([]) == {}
    reader = make_row(1.0, upstream_tokens=50, metadata={"prompt_tokens": 60})
    assert BilledRatio().compute([*rows, reader])["billed_to_counted"] == pytest.approx(1.2)
