"""Metrics of the tap on rows that say nothing, or nothing that can be read."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.metrics import (
    PrefixStability,
    PromptSavings,
    ProxyOverhead,
    TokenMeters,
    UpstreamCost,
    UpstreamTokens,
)
from rows import failed_row, make_row, tapped_row

EVERY = [PromptSavings, UpstreamCost, UpstreamTokens, ProxyOverhead, PrefixStability, TokenMeters]

FACTS = (
    *("sent_tokens", "downstream_tokens", "untouched", "extra_upstream_calls", "lost_upstream_calls"),
    *("lost_upstream_tokens", "cached_answer", "least_upstream_tokens", "most_upstream_tokens", "written_tokens"),
    *("proxy_overhead", "first_token_overhead", "alone", "prefix_stability", "first_message_changed"),
    *("rewritten_history", "claimed_tokens_saved", "billed_prompt_tokens"),
)


@pytest.mark.parametrize("metric", EVERY)
def test_rows_that_nobody_measured_give_no_keys(metric: Any) -> None:
    assert metric().compute([]) == {}
    assert metric().compute([make_row(1.0), make_row(), failed_row(), tapped_row()]) == {}


@pytest.mark.parametrize("metric", EVERY)
@pytest.mark.parametrize("value", [None, "12", math.nan, math.inf, [], {}])
def test_what_is_no_number_is_left_out(metric: Any, value: Any) -> None:
    assert metric().compute([tapped_row(**dict.fromkeys(FACTS, value))]) == {}
