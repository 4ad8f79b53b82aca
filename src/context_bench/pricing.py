"""What tokens cost: prices per million, by model, from a file that the user gives. No price is built in."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError
from context_bench.traits import asks_model, find_model
from context_bench.utils.tokens import read_token_count

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Price", "Prices", "check_prices"]


@dataclass(frozen=True)
class Price:
    """Dollars for a million tokens. Cached input costs as much as other input unless it is given."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, usage: Mapping[str, Any]) -> float | None:
        """Dollars for one request by its usage; None when the server reported none."""
        prompt = read_token_count(usage.get("prompt_tokens"))
        completion = read_token_count(usage.get("completion_tokens"))
        if prompt is None or completion is None:
            return None
        cached = min(prompt, read_token_count(usage.get("cached_tokens")) or 0)
        return self.dollars(prompt, completion, cached)

    def dollars(self, prompt: float, completion: float, cached: float = 0) -> float:
        """Dollars for so many tokens, of which `cached` of the prompt were read from a cache."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        return (self.input * (prompt - cached) + cached_price * cached + self.output * completion) / 1e6


class Prices:
    """Prices by model name; `default` serves models that are not listed."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = dict(prices)

    @classmethod
    def from_file(cls, path: str | Path) -> Prices:
        """Read a TOML or JSON file: a table for each model with `input`, `output` and maybe `cached_input`."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except OSError as error:
            raise UsageError(f"cannot read the prices in {path}: {error.strerror or error}") from error
        except ValueError as error:
            raise UsageError(f"the prices in {path} are broken: {error}") from error
        if not isinstance(document, Mapping):
            raise UsageError(f"the prices in {path} are broken: it needs a table for each model")
        return cls({str(model): _price(path, str(model), values) for model, values in document.items()})

    def of(self, model: str | None) -> Price | None:
        """The price of a model, or the default, or None."""
        return self._prices.get(model or "") or self._prices.get("default")


def check_prices(systems: Sequence[Any], prices: Prices | None, *, needed: bool) -> None:
    """See that every model of a run has a price.

    Args:
        systems: Those that ask a model are checked.
        prices: None when no cost is to be reckoned.
        needed: There is a limit on cost. A model that nothing counts against it is an error then, else a warning.
    """
    if needed and prices is None:
        raise UsageError("a limit on cost needs prices: without them nothing is known to cost anything")
    if prices is None:
        return
    unpriced = {
        find_model(each) or None: each.name
        for each in systems
        if asks_model(each) and prices.of(find_model(each)) is None
    }
    for model, name in unpriced.items():
        what = f"{model!r} is" if model else f"the model of {name!r} is not known, so it is"
        if needed:
            raise UsageError(
                f"{what} not priced, and the limit on cost could not be kept: add it to the prices, or `default`"
            )
        warnings.warn(
            f"{what} not priced: what it costs is not told (add it to the prices, or `default`)", stacklevel=3
        )


def _price(path: Path, model: str, values: Any) -> Price:
    known = {"input", "output", "cached_input"}
    if not isinstance(values, Mapping) or not {"input", "output"} <= values.keys() <= known:
        raise UsageError(f"the price of {model!r} in {path} needs input and output, and may have cached_input")
    if not all(type(value) in (int, float) and 0 <= value < math.inf for value in values.values()):
        raise UsageError(f"the price of {model!r} in {path}: dollars per million tokens are numbers from 0 on")
    return Price(**values)
