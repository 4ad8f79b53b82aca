"""What a tap or a reader saw."""

from __future__ import annotations

import math
from typing import Any

import pytest

from banks import each_case
from context_bench.metrics import (
    PrefixStability,
    PromptSavings,
    ProxyOverhead,
    TokenMeters,
    UpstreamCost,
    UpstreamTokens,
)
from rows import failed_row, make_row, tapped_row

# -- facts


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


@each_case("metric", EVERY)
@each_case("value", [None, "12", math.nan, math.inf, [], {}])
def test_what_is_no_number_is_left_out(metric: Any, value: Any) -> None:
    assert metric().compute([tapped_row(**dict.fromkeys(FACTS, value))]) == {}


# -- prompt savings


def test_savings_come_from_sums() -> None:
    # 900 of 1,000 saved and nothing of 100: 1 - 200/1100, which is not the mean of 0.9 and 0
    rows = [
        tapped_row(100, sent_tokens=1000, downstream_tokens=1000, untouched=False),
        tapped_row(100, sent_tokens=100, downstream_tokens=100, untouched=True),
    ]
    assert PromptSavings().compute(rows) == {
        "prompt_savings": pytest.approx(9 / 11),
        "sent_tokens": 1100.0,
        "mean_sent_tokens": 550.0,
        "untouched_share": 0.5,
    }


def test_more_may_be_sent_on_than_was_sent() -> None:
    assert PromptSavings().compute([tapped_row(300, sent_tokens=200)])["prompt_savings"] == -0.5


def test_only_rows_with_both_sides_count() -> None:
    rows = [
        tapped_row(50, sent_tokens=100),
        tapped_row(70),
        tapped_row(None, sent_tokens=500, untouched=True),
        failed_row(upstream_tokens=1, metadata={"sent_tokens": 900, "downstream_tokens": 2700}),
    ]
    assert PromptSavings().compute(rows) == {"prompt_savings": 0.5, "sent_tokens": 100.0, "mean_sent_tokens": 100.0}


def test_a_compressor_with_a_reader_is_counted_by_what_was_sent_too() -> None:
    # input_tokens is 1,000 and leaves out the instruction; what was sent is another number, and downstream a tap's
    values = PromptSavings().compute([tapped_row(250, output="context", sent_tokens=1250)])
    assert values == {"prompt_savings": 0.8, "sent_tokens": 1250.0, "mean_sent_tokens": 1250.0}
    assert PromptSavings().compute([tapped_row(250, output="context")]) == {}


def test_nothing_sent_is_nothing_saved() -> None:
    assert PromptSavings().compute([tapped_row(0, sent_tokens=0)]) == {}


# --- bounds


def test_rows_with_calls_that_cannot_be_told_give_bounds() -> None:
    rows = [
        tapped_row(50, sent_tokens=100),
        tapped_row(None, sent_tokens=100, least_upstream_tokens=40, most_upstream_tokens=140),
    ]
    values = PromptSavings().compute(rows)
    assert (values["prompt_savings"], values["sent_tokens"]) == (0.5, 100.0)
    assert values["prompt_savings_best"] == pytest.approx(1 - 90 / 200)
    assert values["prompt_savings_worst"] == pytest.approx(1 - 190 / 200)


def test_the_headline_lies_within_the_bounds() -> None:
    # All of what the unknown row was sent reached the model for certain: with it the savings can only be lower.
    rows = [
        tapped_row(50, sent_tokens=100),
        tapped_row(None, sent_tokens=100, least_upstream_tokens=100, most_upstream_tokens=120),
    ]
    values = PromptSavings().compute(rows)
    assert (values["prompt_savings_best"], values["prompt_savings_worst"]) == (0.5, pytest.approx(1 - 170 / 200))


def test_bounds_without_a_single_row_that_is_known() -> None:
    rows = [tapped_row(None, sent_tokens=100, least_upstream_tokens=40, most_upstream_tokens=90)]
    assert PromptSavings().compute(rows) == {
        "prompt_savings_best": pytest.approx(0.6),
        "prompt_savings_worst": pytest.approx(0.1),
    }


def test_no_bounds_where_nothing_is_unknown_nor_for_failed_rows() -> None:
    unknown = {"sent_tokens": 100, "least_upstream_tokens": 0, "most_upstream_tokens": 90}
    rows = [tapped_row(50, sent_tokens=100), failed_row(metadata=unknown), tapped_row(None, sent_tokens=100)]
    assert set(PromptSavings().compute(rows)) == {"prompt_savings", "sent_tokens", "mean_sent_tokens"}


def test_late_calls_widen_the_worst_case() -> None:
    tally = PromptSavings().start()
    tally.add(tapped_row(50, sent_tokens=100))
    assert tally.bound({}) == tally.bound({"late_tokens": None}) == {}
    assert tally.bound({"late_tokens": 30}) == {"prompt_savings_best": 0.5, "prompt_savings_worst": pytest.approx(0.2)}
    tally.add(tapped_row(None, sent_tokens=100, least_upstream_tokens=40, most_upstream_tokens=140))
    assert tally.bound({"late_tokens": 10})["prompt_savings_worst"] == pytest.approx(1 - 200 / 200)


# -- upstream tokens


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


# -- upstream cost


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


def test_what_extra_calls_wrote_and_what_was_lost_is_on_the_bill() -> None:
    rows = [
        make_row(1.0, upstream_tokens=100, metadata={"response_tokens": 10, "written_tokens": 25}),
        make_row(1.0, upstream_tokens=100, metadata={"response_tokens": 10, "lost_upstream_tokens": 115}),
        failed_row(upstream_tokens=300, metadata={"response_tokens": 0, "written_tokens": 30}),
    ]
    # 125 + (110 + 115) + 330, for two passes
    assert UpstreamCost().compute(rows) == {"upstream_cost_of_pass": 340.0}


def test_nothing_written_is_known_to_be_nothing() -> None:
    row = make_row(1.0, upstream_tokens=0, metadata={"response_tokens": 10, "written_tokens": 0})
    assert UpstreamCost().compute([row]) == {"upstream_cost_of_pass": 0.0}  # a cached answer: no model wrote it


# -- token meters


def test_three_meters_each_on_its_own_rows() -> None:
    rows = [
        tapped_row(40, sent_tokens=100, claimed_tokens_saved=75, billed_prompt_tokens=45),
        tapped_row(90, sent_tokens=100, billed_prompt_tokens=95),
        tapped_row(billed_prompt_tokens=10, claimed_tokens_saved=-5.5),
        tapped_row(),
        failed_row(upstream_tokens=1, metadata={"sent_tokens": 9, "claimed_tokens_saved": 9, "prompt_tokens": 9}),
    ]
    assert TokenMeters().compute(rows) == {
        "claimed_tokens_saved": 69.5,
        "claimed_rows": 2.0,
        "counted_tokens_saved": 70.0,
        "counted_rows": 2.0,
        "usage_prompt_tokens": 159.0,  # what failed was billed too
        "usage_rows": 4.0,
    }


def test_the_usage_of_a_reader_behind_a_compressor_is_its_bill() -> None:
    read = tapped_row(40, sent_tokens=100, prompt_tokens=44)
    seen = tapped_row(40, sent_tokens=100, prompt_tokens=44, upstream_calls=1)  # a tap that saw no usage
    found = TokenMeters().compute([read, read, seen])
    assert (found["usage_prompt_tokens"], found["usage_rows"]) == (88.0, 2.0)
    alone = TokenMeters().compute([tapped_row(None, prompt_tokens=44)])  # nobody knows what its model read
    assert "usage_rows" not in alone


# -- prefix stability


def test_the_means_of_conversations() -> None:
    rows = [
        tapped_row(prefix_stability=1.0, first_message_changed=False, rewritten_history=0.0),
        tapped_row(prefix_stability=0.5, first_message_changed=True, rewritten_history=0.25),
        tapped_row(),
    ]
    assert PrefixStability().compute(rows) == {
        "prefix_stability": 0.75,
        "first_message_changed": 0.5,
        "rewritten_history": 0.125,
    }
