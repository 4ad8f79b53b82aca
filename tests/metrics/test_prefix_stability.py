"""PrefixStability: means over conversations."""

from __future__ import annotations

from context_bench.metrics import PrefixStability
from rows import tapped_row


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
