"""TokenMeters: three counts, each on the rows that tell it."""

from __future__ import annotations

from context_bench.metrics import TokenMeters
from rows import failed_row, tapped_row


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
