"""Break-even, against the bill written out turn by turn."""

from __future__ import annotations

import math

import pytest

from context_bench.stats import memory_queries_to_repay, rewrite_break_even, rewrite_turns_to_repay


def _bill(tokens: float, turns: int, *, rewritten: bool) -> float:
    return tokens * sum(1.25 if rewritten and turn == 0 else 0.1 for turn in range(turns))


@pytest.mark.parametrize(("turns", "share"), [(1, 0.92), (10, 0.53), (50, 0.19)])
def test_what_a_rewrite_must_remove(turns: int, share: float) -> None:
    removed = rewrite_break_even(turns, read=0.1, write=1.25)
    assert removed == pytest.approx(share, abs=0.01)
    assert _bill((1 - removed) * 1000, turns, rewritten=True) == pytest.approx(_bill(1000, turns, rewritten=False))
    assert rewrite_turns_to_repay(removed, read=0.1, write=1.25) == pytest.approx(turns)


def test_a_rewrite_that_removes_nothing_never_pays() -> None:
    assert rewrite_turns_to_repay(0.0, read=0.1, write=1.25) == math.inf


@pytest.mark.parametrize(("warm", "writing", "queries"), [(1, 425, 425), (0, 425, 28), (1, 43, 43), (0, 43, 3)])
def test_what_a_memory_must_be_asked(warm: float, writing: int, queries: int) -> None:
    """115k of history against 2k retrieved; the writing is what is repaid after so many questions with a warm cache."""
    cost = writing * (115_000 * 0.1 - 2_000)
    assert memory_queries_to_repay(cost, 115_000, 2_000, warm=warm, read=0.1, write=1.25) == pytest.approx(
        queries, abs=1
    )


def test_a_memory_that_costs_more_than_the_history_never_pays() -> None:
    assert memory_queries_to_repay(1, 1000, 200, warm=1, read=0.1, write=1.25) == math.inf
