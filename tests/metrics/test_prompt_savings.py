"""PromptSavings: from sums, over the rows that tell both sides, with bounds where some do not."""

from __future__ import annotations

import pytest

from context_bench.metrics import PromptSavings
from rows import failed_row, tapped_row


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
