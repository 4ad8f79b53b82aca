"""Break-even: when a rewritten prompt repays the lost cache, and when a memory repays its writing.

Prices are multiples of the price of plain input. Claim these numbers only for a system that is not worse.
"""

from __future__ import annotations

import math

__all__ = ["memory_queries_to_repay", "rewrite_break_even", "rewrite_turns_to_repay"]


def rewrite_break_even(turns: float, *, read: float, write: float) -> float:
    """Return the share of the history that a rewrite must remove to pay off within `turns` further turns.

    An unchanged history is read from the cache in each turn; a rewritten one is written to the cache once and read from
    it in the other turns. `read` and `write` are prices as multiples of plain input.
    """
    return 1 - turns * read / (write + (turns - 1) * read)


def rewrite_turns_to_repay(removed: float, *, read: float, write: float) -> float:
    """Return the number of further turns after which a rewrite has paid for itself."""
    return (1 - removed) * (write - read) / (read * removed) if removed > 0 else math.inf


def memory_queries_to_repay(
    writing: float, history: float, query: float, *, warm: float, read: float, write: float, price: float = 1.0
) -> float:
    """Return the number of questions after which a memory has repaid its writing; infinite if it never does.

    `price` is the price of one token of plain input. `writing` and one `query` are in the same unit; `read` and `write`
    are multiples of `price`. `warm` is the probability that the next question arrives before the provider's cache
    expires.
    """
    saved = price * history * (warm * read + (1 - warm) * write) - query
    return writing / saved if saved > 0 else math.inf
