"""What tokens cost: prices per million, by model, from a file that the user gives. No price is built in."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from context_bench.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Price", "Prices"]


@dataclass(frozen=True)
class Price:
    """Dollars for a million tokens. Cached input costs as much as other input unless it is given."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, usage: Mapping[str, Any]) -> float | None:
        """Dollars for one request by its usage; None when the server reported none."""
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if not isinstance(prompt, int) or not isinstance(completion, int):
            return None
        told = usage.get("cached_tokens")
        cached = max(0, min(prompt, told)) if isinstance(told, int) else 0
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


def _price(path: Path, model: str, values: Any) -> Price:
    known = {"input", "output", "cached_input"}
    if not isinstance(values, Mapping) or not {"input", "output"} <= values.keys() <= known:
        raise UsageError(f"the price of {model!r} in {path} needs input and output, and may have cached_input")
    if not all(type(value) in (int, float) and 0 <= value < math.inf for value in values.values()):
        raise UsageError(f"the price of {model!r} in {path}: dollars per million tokens are numbers from 0 on")
    return Price(**values)
