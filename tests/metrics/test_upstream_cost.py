"""UpstreamCost: what the model read and wrote, over all calls, for each pass."""

from __future__ import annotations

import math

from context_bench.metrics import UpstreamCost
from rows import failed_row, make_row


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
