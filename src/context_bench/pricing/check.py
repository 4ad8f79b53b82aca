"""Prices of a run: whether every model has one, and which entry each is priced by, for the run's record."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from context_bench.errors import UsageError
from context_bench.pricing.price_table import Prices, load_shipped_prices
from context_bench.traits import asks_model, find_model

__all__ = ["check_prices", "describe_prices"]


def check_prices(systems: Sequence[Any], prices: Prices | None, *, needed: bool) -> Prices:
    """See that every model of a run has a price.

    Args:
        systems: Systems and judges; those that ask a model are checked.
        prices: None takes the table that ships with the package; a model that it does not list is then noted in the
            summary, and nothing is warned of.
        needed: There is a limit on cost. A model that nothing counts against it is an error then, else a warning.

    Returns:
        The prices that the run has.
    """
    chosen = load_shipped_prices() if prices is None else prices
    unpriced = {
        find_model(each) or None: each.name
        for each in systems
        if asks_model(each) and chosen.of(find_model(each)) is None
    }
    for model, name in unpriced.items():
        what = f"{model!r} is" if model else f"the model of {name!r} is not known, so it is"
        if needed:
            raise UsageError(
                f"{what} not priced, and the limit on cost could not be kept: add it to the prices (--prices), "
                "or `default`"
            )
        if prices is not None:
            warnings.warn(
                f"{what} not priced: what it costs is not told (add it to the prices, or `default`)", stacklevel=3
            )
    return chosen


def describe_prices(prices: Prices, members: Iterable[Any]) -> dict[str, Any]:
    """Say by which entry each system or judge with a model is priced, for the record of a run."""
    entries: dict[str, Any] = {}
    for member in members:
        if not asks_model(member):
            continue
        model = find_model(member) or None
        match = prices.find(model)
        entry = {"entry": match.entry, "how": match.how, "price": match.price.to_dict()} if match else {"entry": None}
        entries[member.name] = {"model": model, **entry}
    return {"source": prices.source, "date": prices.date, "models": entries}
