"""The simulated cache on recorded sessions: against the counters and dollars of the API, where real records are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from context_bench.pricing import Price
from context_bench.replay.cache_bill import BlockReader, Simulator, fit_scales, price_recorded
from context_bench.traffic.readers import read_sessions
from context_bench.utils.tokens import get_tokenizer

PRICE = Price(3.0, 15.0, 0.30, 3.75, 6.0)  # claude-sonnet-4
DATA = os.environ.get("CONTEXT_BENCH_DATA")

# The first eight signs of a session, its requests, and the dollars that its recorded counters cost.
SESSIONS = {"1af7fc5e": (7, 0.0932), "5c0375b4": (20, 0.3312), "fe5e1c67": (170, 2.3932)}


def test_a_text_that_was_cut_inside_an_emoji_is_read() -> None:
    body = {"system": "Be \ud83d", "tools": [{"name": "\ud83d"}], "messages": [{"role": "user", "content": "\ud83d"}]}
    assert len(BlockReader(get_tokenizer()).read(body)) == 3


@pytest.mark.skipif(DATA is None, reason="CONTEXT_BENCH_DATA does not name the folder with recorded sessions")
def test_dollars_of_real_sessions_are_simulated_within_two_percent() -> None:
    found = {}
    for session in read_sessions([Path(str(DATA)) / "traffic" / "claude-code"]):
        count = get_tokenizer()
        reader = BlockReader(count)
        # Fitted on the first half of each thread.
        billed = Simulator(session.threads, fit_scales(session.threads, count, half=True), reader).run()
        whole = sum(price_recorded(each.request, PRICE) or 0 for each in billed)
        assert sum(each.dollars(PRICE) for each in billed) == pytest.approx(whole, rel=0.02)
        found[session.id[:8]] = (len(billed), round(whole, 4))
    assert found == SESSIONS
