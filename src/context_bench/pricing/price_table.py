"""Prices by model: the dated table of the package, and a user's file that adds to this table."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from context_bench.errors import UsageError, warn
from context_bench.pricing.price import Price, Tier
from context_bench.text import read_small_file
from context_bench.traits import asks_model, find_model

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


_SHIPPED = Path(__file__).with_name("prices.json")
_DATE = re.compile(r"[-@](20\d{6}|20\d\d-\d\d-\d\d)$")
_TIER = re.compile(r"above_([1-9]\d*)k")
_FIELDS = {"input", "output", "cached_input", "cache_write_5m", "cache_write_1h"}
_MINIMUM = "cache_minimum"


class Match(NamedTuple):
    """The entry with the prices of a model."""

    entry: str
    how: str  # how the model's name matched: "exact", "without its date", "without its provider", and so on
    price: Price


class Prices:
    """Prices by model name; `default` is the price of models that are not listed.

    `source` and `date` go into the run record. `others` has the prices of models that are not in `prices`.
    """

    def __init__(
        self, prices: Mapping[str, Price], *, source: str = "", date: str = "", others: Prices | None = None
    ) -> None:
        if not isinstance(prices, Mapping):
            raise UsageError(f"prices must be a dict of names and Price (got {prices!r})")
        for model, price in prices.items():
            if not isinstance(price, Price):
                raise UsageError(f"the price of {model!r} must be a Price (got {price!r})")
        self._prices, self.source, self.date, self._others = dict(prices), source, date, others
        self._found: dict[str | None, Match | None] = {}

    @classmethod
    def from_file(cls, path: str | Path) -> Prices:
        """Read a TOML or JSON file that adds to the shipped table: for each model at least `input` and `output`.

        The models may be under `models`, next to `source` and `date`, as `context-bench prices --output json`
        writes them. Other models keep their shipped prices.
        """
        return cls._read(Path(path), load_shipped_prices())

    @classmethod
    def _read(cls, path: Path, others: Prices | None) -> Prices:
        try:
            text = read_small_file(path)
            document = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        except OSError as error:
            raise UsageError(f"cannot read the prices in {path}: {error.strerror or error}") from error
        except RecursionError:
            raise UsageError(f"the prices in {path} are broken: the values are nested too deeply") from None
        except ValueError as error:
            raise UsageError(f"the prices in {path} are broken: {error}") from error
        models = document.get("models", document) if isinstance(document, Mapping) else None
        if not isinstance(models, Mapping):
            raise UsageError(f"the prices in {path} are broken: the file needs a table for each model")
        about = document if models is not document else {}
        prices = {str(model): _read_price(path, str(model), values) for model, values in models.items()}
        source, date = str(about.get("source") or path.name), str(about.get("date") or "")
        source += f", then {others.source}" if others is not None else ""
        return cls(prices, source=source, date=date, others=others)

    def __iter__(self) -> Iterator[tuple[str, Price]]:
        return iter({**dict(self._others or ()), **self._prices}.items())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of(self, model: str | None) -> Price | None:
        """Return the price of a model, or the default, or None."""
        match = self.find(model)
        return match.price if match else None

    def find(self, model: str | None) -> Match | None:
        """Find the entry of a model by its name, with or without date and provider; else the default; else None."""
        if model not in self._found:
            self._found[model] = self._search(model)
        return self._found[model]

    def _search(self, model: str | None) -> Match | None:
        match = self._match(model) or (self._others.find(model) if self._others is not None else None)
        if match is None and "default" in self._prices:
            return Match("default", "default", self._prices["default"])
        return match

    def _match(self, model: str | None) -> Match | None:
        for name, how in _spell(model) if model else ():
            if name in self._prices:
                return Match(name, how, self._prices[name])
        for name, how in _spell(model) if model else ():
            ending = [entry for entry in self._prices if entry.rpartition("/")[2] == name]
            if len(ending) == 1:
                said = "with a provider" if how == "exact" else f"{how} and with a provider"
                return Match(ending[0], said, self._prices[ending[0]])
        return None


def _spell(model: str) -> list[tuple[str, str]]:
    """List the names under which a model may be listed, the most exact first."""
    short = model.rpartition("/")[2]
    names = [
        (model, "exact"),
        (_DATE.sub("", model), "without its date"),
        (short, "without its provider"),
        (_DATE.sub("", short), "without its provider and its date"),
    ]
    return [(name, how) for place, (name, how) in enumerate(names) if name not in {each for each, _ in names[:place]}]


@cache
def load_shipped_prices() -> Prices:
    """Return the table that ships with the package."""
    return Prices._read(_SHIPPED, None)


def _read_price(path: Path, model: str, values: Any, *, tier: bool = False) -> Price:
    if not isinstance(values, Mapping) or not {"input", "output"} <= values.keys():
        raise UsageError(f"the price of {model!r} in {path} needs input and output")
    tiers: list[Tier] = []
    fields: dict[str, Any] = {}
    for name, value in values.items():
        above = None if tier else _TIER.fullmatch(str(name))
        if above:
            tiers.append(Tier(int(above[1]) * 1000, _read_price(path, f"{model} {name}", value, tier=True)))
        elif name == _MINIMUM and not tier:
            if type(value) is not int or value < 0:
                raise UsageError(f"the price of {model!r} in {path}: {_MINIMUM} must be a number of tokens")
            fields[name] = value
        elif name not in _FIELDS:
            known = ", ".join(sorted({*_FIELDS, _MINIMUM}))
            raise UsageError(
                f"the price of {model!r} in {path} needs input and output, and may have {known} and tables such as "
                f"above_200k; it has {name!r}"
            )
        elif type(value) not in (int, float) or not 0 <= value < math.inf:
            raise UsageError(
                f"the price of {model!r} in {path}: dollars per million tokens must be numbers of at least 0"
            )
        else:
            fields[name] = value
    return Price(**fields, tiers=tuple(sorted(tiers, key=lambda each: each.above)))


def check_prices(systems: Sequence[Any], prices: Prices | None, *, needed: bool) -> Prices:
    """Check that every model of a run has a price, and return the run's prices.

    None takes the shipped table; the summary then notes models that are missing from the table, without a warning.
    `needed` says that the run has a limit on cost: a model without a price is then an error, else a warning.
    """
    chosen = load_shipped_prices() if prices is None else prices
    unpriced = {
        find_model(each) or None: each.name
        for each in systems
        if asks_model(each) and chosen.of(find_model(each)) is None
    }
    for model, name in unpriced.items():
        what = f"{model!r} has no price" if model else f"the model of {name!r} is unknown and has no price"
        if needed:
            raise UsageError(
                f"{what}, so --max-cost cannot be enforced: add a price for it, or `default`, with --prices"
            )
        if prices is not None:
            warn(f"{what}, so its cost is not shown: add a price for it, or `default`, to your prices")
    return chosen


def describe_prices(prices: Prices, members: Iterable[Any]) -> dict[str, Any]:
    """Describe which entry prices each system or judge with a model, for the record of a run."""
    entries: dict[str, Any] = {}
    for member in members:
        if not asks_model(member):
            continue
        model = find_model(member) or None
        match = prices.find(model)
        entry = {"entry": match.entry, "how": match.how, "price": match.price.to_dict()} if match else {"entry": None}
        entries[member.name] = {"model": model, **entry}
    return {"source": prices.source, "date": prices.date, "models": entries}
