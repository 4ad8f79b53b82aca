"""Prices of tokens: dollars per million by model, a dated table of prices, and the cost of a request by its usage."""

from context_bench.pricing.price import (
    COSTS,
    PRICED_BY_CALL,
    Price,
    Saving,
    Tier,
    find_saving,
    list_usages,
    price_judges,
    price_row,
)
from context_bench.pricing.price_table import Match, Prices, check_prices, describe_prices, load_shipped_prices

__all__ = [
    "COSTS", "PRICED_BY_CALL", "Match", "Price", "Prices", "Saving", "Tier", "check_prices", "describe_prices",
    "find_saving", "list_usages", "load_shipped_prices", "price_judges", "price_row",
]  # fmt: skip
