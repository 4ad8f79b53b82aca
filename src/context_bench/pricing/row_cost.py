"""The cost of a row: by the bills that a tap saw, by the usage that came back, or estimated from counted tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.pricing.price import Price
from context_bench.pricing.price_table import Prices
from context_bench.utils.tokens import read_token_count

__all__ = ["COSTS", "price_judges", "price_row"]

COSTS = ("cost_usd", "cost_is_estimate", "judge_cost_usd")
"""The fields that `price_row` sets on a row."""

_JUDGES = frozenset({"llm-judge"})
"""Evaluators that pay for a model; their details are in the metadata under their names."""


def price_row(
    prices: Prices, model: str | None, metadata: Mapping[str, Any], upstream_tokens: int | None
) -> dict[str, Any]:
    """Return the dollars of a row; nothing where the price or the tokens are not known.

    Args:
        prices: Of the run.
        model: That the system asks.
        metadata: Of the row.
        upstream_tokens: Tokens that the model read, by our own count, if that is known.
    """
    costs: dict[str, Any] = {}
    price = prices.of(model)
    if price is not None:
        costs |= _price_answer(price, metadata, upstream_tokens)
    return costs | price_judges(prices, metadata)


def price_judges(prices: Prices, metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the dollars that the judges of a row cost; nothing where none was asked, or its price is not known."""
    if _JUDGES.isdisjoint(metadata):
        return {}
    spent = [cost for name in _JUDGES if (cost := _price_judge(prices, metadata.get(name))) is not None]
    return {"judge_cost_usd": sum(spent)} if spent else {}


def _price_answer(price: Price, metadata: Mapping[str, Any], upstream_tokens: int | None) -> dict[str, Any]:
    bills = metadata.get("billed_usage")
    tapped = "upstream_calls" in metadata
    cost = None
    if isinstance(bills, list):  # all calls that a model answered, those that the proxy made on top included
        cost = price.sum_costs(bills)
    elif not tapped:  # behind a tap the proxy's own word is not the bill: it may leave out calls that it made on top
        cost = price.cost(metadata)
    if cost is not None:
        return {"cost_usd": cost}
    written = read_token_count(metadata.get("written_tokens" if tapped else "response_tokens"))
    if upstream_tokens is None or written is None:
        return {}
    # Tokens of answers that the proxy lost, both ways together, are priced as input: the least that they cost.
    lost = read_token_count(metadata.get("lost_upstream_tokens")) or 0
    calls = max(1, read_token_count(metadata.get("upstream_calls")) or 1)
    each = price.dollars((upstream_tokens + lost) / calls, written / calls)
    return {"cost_usd": each * calls, "cost_is_estimate": True}


def _price_judge(prices: Prices, details: Any) -> float | None:
    if not isinstance(details, Mapping) or not isinstance(details.get("model"), str):
        return None
    price = prices.of(details["model"])
    return None if price is None else price.cost(details)
