"""What tokens cost: prices per million by model, a dated table of them, and what a request costs by its usage."""

from context_bench.pricing.table import Price, Prices, check_prices

__all__ = ["Price", "Prices", "check_prices"]
