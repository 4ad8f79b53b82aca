"""Claims: published sentences, with their source and the data needed to check them.

Kind, number, tolerance and direction are part of the file, so that they are fixed before any measurement. Their hash
and date are printed with every verdict.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from context_bench.claims.bundle import hash_value
from context_bench.errors import DataError, UsageError
from context_bench.text import read_small_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS = ("number", "effect", "always")
DIRECTIONS = ("both", "at least", "at most")
SAYS = ("size", "loss")
_TERMS = ("id", "kind", "number", "tolerance", "direction", "system", "dataset", "metric", "at_least", "data", "says")


@dataclass(frozen=True)
class Claim:
    """One claim of a file."""

    id: str  # name, also of its badge
    sentence: str  # as published, or close to it
    kind: str  # `number` (fixed data), `effect` (population) or `always`
    source: str  # address, or place in a document
    published: str  # date when the sentence was read there
    decided: str  # date when kind, number, tolerance and direction were fixed
    by: str = ""  # publisher; empty for our own findings
    number: float = math.nan  # claimed number, as printed; NaN for `always`
    digits: int = 0  # decimals of that number
    unit: str = ""  # printed after the number; `%` means hundredths
    tolerance: float = math.nan  # allowed deviation; by default half a unit of the last digit
    direction: str = "both"  # `at least` and `at most` leave one side open
    published_n: int | None = None  # published number of examples, if given
    # `size` for token counts, valid on all data; `loss`, as always for scores, needs data that can show losses
    says: str = "size"
    system: str = ""  # claimed system; `version` is optional
    version: str = ""
    dataset: str = ""  # claimed dataset of the run; all by default
    metric: str = "value"  # a number of the summary, a score, `difference`, or `value`
    at_least: float = 1.0  # for `always`: the score that each example must reach
    data: str = ""  # SHA-256 of fixed data
    bundle: str = ""  # bundle of the run, relative to the file
    run: str = ""  # function that measures it, as `FILE.py:function`
    missing: str = ""  # unpublished inputs, without which the claim is not reproducible
    note: str = ""  # remark needed to read the verdict
    settings: str = ""  # settings, data and method in words
    folder: Path = field(default=Path(), compare=False)

    @property
    def terms(self) -> str:
        """Hash of the terms fixed before the run."""
        values = {name: getattr(self, name) for name in _TERMS}
        return hash_value({name: None if value != value else value for name, value in values.items()})[:12]

    @property
    def region(self) -> tuple[float, float]:
        """Values for which the claim is true; open on one side for `at least` and `at most`."""
        low = -math.inf if self.direction == "at most" else self.number - self.tolerance
        return low, math.inf if self.direction == "at least" else self.number + self.tolerance

    def show(self, value: float, more: int = 0) -> str:
        """Write a value in the claim's format, with `more` further digits."""
        return f"{value:,.{self.digits + more}f}{self.unit}"


def read_claims(path: Path) -> list[Claim]:
    """Read the claims of a TOML file.

    Raises:
        UsageError: The file cannot be read.
        DataError: A claim is incomplete or contradictory; the message names it.
    """
    try:
        document = tomllib.loads(read_small_file(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    listed = document.get("claim")
    if not isinstance(listed, list) or not listed or set(document) != {"claim"}:
        raise DataError(f"{path}: a file of claims has one or more [[claim]] tables and nothing else")
    claims = [_read_claim(values, f"{path}: claim {number}", path.parent) for number, values in enumerate(listed, 1)]
    if twice := [each.id for place, each in enumerate(claims) if each.id in {before.id for before in claims[:place]}]:
        raise DataError(f"{path}: two claims have the id {twice[0]!r}")
    return claims


def _read_claim(values: Any, where: str, folder: Path) -> Claim:
    known = {each.name: each for each in fields(Claim) if each.name not in ("digits", "folder")}
    if not isinstance(values, Mapping):
        raise DataError(f"{where}: must be a table")
    where = f"{where} ({values['id']})" if values.get("id") else where
    if unknown := sorted(values.keys() - known.keys()):
        raise DataError(f"{where}: unknown key {unknown[0]!r}; a claim has {', '.join(known)}")
    needed = [name for name, each in known.items() if each.default is MISSING and each.default_factory is MISSING]
    if lacking := [name for name in needed if not values.get(name)]:
        raise DataError(f"{where}: {lacking[0]} is missing")
    for name, choices in (("kind", KINDS), ("direction", DIRECTIONS), ("says", SAYS)):
        if values.get(name, known[name].default) not in choices:
            raise DataError(f"{where}: {name} must be {', '.join(choices[:-1])} or {choices[-1]}")
    given: dict[str, Any] = {name: str(value) if known[name].type == "str" else value for name, value in values.items()}
    if values["kind"] != "always":
        given |= _read_number(values, where)
    return Claim(**given, folder=folder)


def _read_number(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Read number and tolerance; the printed digits give the default tolerance."""
    printed = str(values.get("number", "")).replace("_", "").replace(",", "")
    try:
        exponent = Decimal(printed).as_tuple().exponent
    except InvalidOperation:
        raise DataError(f"{where}: write the number exactly as it is printed, such as 32.9 or '50.0'") from None
    if not isinstance(exponent, int):
        raise DataError(f"{where}: number must be finite")
    tolerance = values.get("tolerance", 0.5 * 10.0**exponent)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise DataError(f"{where}: tolerance must be a number of at least 0")
    return {"number": float(printed), "digits": max(0, -exponent), "tolerance": float(tolerance)}
