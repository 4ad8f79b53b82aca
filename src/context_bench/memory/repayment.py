"""After how many questions a memory has paid for its writing, against sending the whole history each time.

Only for systems that are not worse than the full context: to be cheaper and wrong is no saving. In dollars where all
that was spent has a price, at the reader's own prices for its cache; else in tokens that all cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.results import EvalResult
from context_bench.stats.break_even import memory_queries_to_repay

__all__ = ["READ_PRICE", "WRITE_PRICE", "Repayment", "find_repayments", "price_right_answer"]

READ_PRICE, WRITE_PRICE = 0.1, 1.25
"""Prices of reading from a provider's cache and of writing to it, as multiples of plain input, where none is known."""


@dataclass(frozen=True)
class Repayment:
    """The questions about one conversation after which its memory has paid for itself.

    Attributes:
        warm: Where each question comes while the history is still in the provider's cache.
        cold: Where it never is.
        unit: What was compared: `dollars` or `tokens`.
        reason: Why nothing is claimed; empty where something is.
    """

    warm: float = math.nan
    cold: float = math.nan
    unit: str = ""
    reason: str = ""


@dataclass(frozen=True)
class _Costs:
    """The costs of writing and of asking, in one unit; NaN where they were not measured.

    Attributes:
        writing: To write one conversation.
        asking: One question to the memory, its answer included.
        answering: What the reader wrote for one question with the whole history.
        price: One token of plain input.
        read: One that is read from the cache, as a multiple of it.
        write: One that is written to it.
    """

    unit: str
    writing: float
    asking: float
    answering: float
    price: float = 1.0
    read: float = READ_PRICE
    write: float = WRITE_PRICE

    @property
    def known(self) -> bool:
        return not math.isnan(self.writing + self.asking + self.answering)


def find_repayments(result: EvalResult) -> dict[str, Repayment]:
    """Find the break-even of every system that competes."""
    comparison = result.comparison
    if comparison is None or not comparison.baseline.startswith("naive"):
        return {}
    found: dict[str, Repayment] = {}
    for verdict in comparison.verdicts:
        if verdict.control:
            continue
        if verdict.not_worse:
            found[verdict.name] = _compute(result, verdict.name, comparison.baseline)
        else:
            found[verdict.name] = Repayment(reason=f"{verdict.word}: not claimed")
    return found


def price_right_answer(result: EvalResult, name: str) -> float:
    """Divide all dollars of a system by its right answers: to write, to ask, and to answer.

    Returns:
        NaN where something has no price, infinite where nothing was right.
    """
    values = result.summary[name]
    spent = math.fsum(
        (
            values.get("ingest_usd", math.nan) * values.get("ingest_turns", math.nan) / 1000,
            values.get("query_usd", math.nan) * (values["num_examples"] - values["num_errors"]),
            0.0 if _answers_itself(result, name) else values.get("cost_usd", math.nan),
        )
    )
    judged = values["num_examples"] - values.get("num_unscored", 0.0)
    right = values.get("pass_rate", math.nan) * judged
    return spent / right if right else spent * math.inf


def _answers_itself(result: EvalResult, name: str) -> bool:
    report: Mapping[str, Any] = (result.config.get("reports") or {}).get(name) or {}
    return (report.get("memory") or {}).get("answers") == "own"


def _compute(result: EvalResult, name: str, baseline: str) -> Repayment:
    full = result.summary[baseline]
    history = full.get("mean_upstream_tokens", math.nan)
    costs = _find_dollars(result, name, baseline)
    if costs is None or not costs.known:
        costs = _find_tokens(result, name, baseline)
    if not costs.known or math.isnan(history):
        return Repayment(reason="not measured")
    warm, cold = (
        memory_queries_to_repay(
            costs.writing,
            history,
            costs.asking - costs.answering,
            warm=chance,
            read=costs.read,
            write=costs.write,
            price=costs.price,
        )
        for chance in (1.0, 0.0)
    )
    return Repayment(warm, cold, costs.unit)


def _find_dollars(result: EvalResult, name: str, baseline: str) -> _Costs | None:
    """Find the costs in dollars; None where the reader has no price."""
    entry = ((result.config.get("prices") or {}).get("models") or {}).get(baseline) or {}
    price = entry.get("price") or {}
    if not price.get("input"):
        return None
    values = result.summary[name]
    reader = 0.0 if _answers_itself(result, name) else values.get("cost_per_1k_usd", math.nan) / 1000
    return _Costs(
        "dollars",
        writing=_share_by_conversation(result, name, values.get("ingest_usd", math.nan)),
        asking=values.get("query_usd", math.nan) + reader,
        answering=_count_written(result.summary[baseline]) * price["output"] / 1e6,
        price=price["input"] / 1e6,
        read=price.get("cached_input", price["input"]) / price["input"],
        write=price.get("cache_write_5m", price["input"]) / price["input"],
    )


def _find_tokens(result: EvalResult, name: str, baseline: str) -> _Costs:
    values = result.summary[name]
    written = values.get("ingest_tokens", math.nan) + values.get("ingest_embed_tokens", math.nan)
    asked = values.get("query_tokens", math.nan) + values.get("query_embed_tokens", math.nan)
    reader = 0.0 if _answers_itself(result, name) else values.get("answer_tokens", math.nan)
    return _Costs(
        "tokens",
        writing=_share_by_conversation(result, name, written),
        asking=asked + reader,
        answering=_count_written(result.summary[baseline]),
    )


def _count_written(full: Mapping[str, float]) -> float:
    """Count the tokens that the reader wrote for one question."""
    return full.get("answer_tokens", math.nan) - full.get("mean_upstream_tokens", math.nan)


def _share_by_conversation(result: EvalResult, name: str, per_thousand: float) -> float:
    """Turn a cost of 1,000 turns into that of one conversation."""
    rows = [row for row in result.rows if row.system == name and row.error is None]
    conversations = len({row.metadata.get("group") for row in rows})
    turns = result.summary[name].get("ingest_turns", math.nan)
    return per_thousand * turns / 1000 / conversations if conversations else math.nan
