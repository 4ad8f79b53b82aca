"""Prices of tokens: per million by model, a dated table of them, and the cost of a request by its usage."""

from context_bench.pricing.check import check_prices, describe_prices
from context_bench.pricing.price import COSTS, Price, Tier, price_judges, price_row
from context_bench.pricing.price_table import Match, Prices, load_shipped_prices
from context_bench.pricing.saved import Saving, find_saving

__all__ = [
    "COSTS",
    "Match",
    "Price",
    "Prices",
    "Saving",
    "Tier",
    "check_prices",
    "describe_prices",
    "find_saving",
    "load_shipped_prices",
    "price_judges",
    "price_row",
]
