"""After how many questions a memory has paid for its writing, against sending the whole history each time.

Only for systems that are not worse than the full context: to be cheaper and wrong is no saving.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from context_bench.results import EvalResult
from context_bench.stats.break_even import memory_queries_to_repay

__all__ = ["READ_PRICE", "WRITE_PRICE", "Repayment", "find_repayments"]

READ_PRICE, WRITE_PRICE = 0.1, 1.25
"""Prices of reading from a provider's cache and of writing to it, as multiples of plain input."""


@dataclass(frozen=True)
class Repayment:
    """The questions about one conversation after which its memory has paid for itself.

    Attributes:
        warm: Where each question comes while the history is still in the provider's cache.
        cold: Where it never is.
        reason: Why nothing is claimed; empty where something is.
    """

    warm: float = math.nan
    cold: float = math.nan
    reason: str = ""


def find_repayments(result: EvalResult) -> dict[str, Repayment]:
    """Find the break-even of every system that competes, in tokens: all tokens cost the same here."""
    comparison = result.comparison
    verdicts = {each.name: each for each in comparison.verdicts} if comparison is not None else {}
    found: dict[str, Repayment] = {}
    for name, verdict in verdicts.items():
        if verdict.control or comparison is None or not comparison.baseline.startswith("naive"):
            continue
        if not verdict.not_worse:
            found[name] = Repayment(reason=f"{verdict.word}: not claimed")
        else:
            found[name] = _compute(result, name, result.summary[comparison.baseline])
    return found


def _compute(result: EvalResult, name: str, full: Mapping[str, float]) -> Repayment:
    values = result.summary[name]
    rows = [row for row in result.rows if row.system == name and row.error is None]
    conversations = len({row.metadata.get("group") for row in rows})
    history = full.get("answer_tokens", math.nan)
    written = values.get("ingest_tokens", math.nan) + values.get("ingest_embed_tokens", math.nan)
    asked = values.get("query_tokens", math.nan) + values.get("query_embed_tokens", math.nan)
    cost = asked + values.get("answer_tokens", math.nan)
    if not conversations or math.isnan(written + cost + history):
        return Repayment(reason="not measured")
    writing = written * values.get("ingest_turns", 0.0) / 1000 / conversations
    if writing == 0:
        return Repayment(0.0, 0.0)
    warm, cold = (
        memory_queries_to_repay(writing, history, cost, warm=chance, read=READ_PRICE, write=WRITE_PRICE)
        for chance in (1.0, 0.0)
    )
    return Repayment(warm, cold)
