"""A claim: a published sentence, where it stands, and what it would take to check it.

Kind, number, tolerance and direction are part of the file, so that they are written before anything is measured; their
hash and date are printed with every verdict.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
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

    id: str  # names it, also in a badge
    sentence: str  # as it was published, or close to it
    kind: str  # `number` on fixed data, `effect` in a population, or `always`
    source: str  # where, as an address or a place in a document
    published: str  # when the sentence was read there
    decided: str  # when kind, number, tolerance and direction were written down
    by: str = ""  # who published it; empty for a finding of our own
    number: float = math.nan  # what is claimed, as it was printed; NaN for `always`
    digits: int = 0  # decimals of that number
    unit: str = ""  # what follows the number; `%` stands for hundredths
    tolerance: float = math.nan  # what the number may be off by; half a unit of its last digit by default
    direction: str = "both"  # which side of the number the claim leaves open
    published_n: int | None = None  # how many examples the published number stands on, where that was said
    # `size` for counts of tokens, which data cannot hide; `loss` for what the data must be able to show
    says: str = "size"
    system: str = ""  # the system that is claimed about, with its version
    version: str = ""
    dataset: str = ""  # the dataset of the run that is claimed about; all of them by default
    metric: str = "value"  # the number of a summary, a score, `difference`, or `value`
    at_least: float = 1.0  # of `always`, the score that each example must have
    data: str = ""  # the SHA-256 of the data, where it is fixed
    bundle: str = ""  # a bundle that has the run, relative to the file
    run: str = ""  # what measures it, as `FILE.py:function`
    missing: str = ""  # what nobody else can get, so that the claim is not reproducible
    note: str = ""  # what has to be known to read the verdict
    settings: str = ""  # settings, data and method in words
    folder: Path = field(default=Path(), compare=False)

    @property
    def terms(self) -> str:
        """The hash of what was decided before the run."""
        values = {name: getattr(self, name) for name in _TERMS}
        return hash_value({name: None if value != value else value for name, value in values.items()})[:12]

    @property
    def region(self) -> tuple[float, float]:
        """The values for which the claim is true, open on the side that its direction names."""
        low = -math.inf if self.direction == "at most" else self.number - self.tolerance
        return low, math.inf if self.direction == "at least" else self.number + self.tolerance

    def show(self, value: float, more: int = 0) -> str:
        """Write a value as the claim writes its number, with so many digits more."""
        return f"{value:,.{self.digits + more}f}{self.unit}"


def read_claims(path: Path) -> list[Claim]:
    """Read the claims of a TOML file.

    Raises:
        UsageError: The file cannot be read.
        DataError: A claim is incomplete or says what cannot be; the sentence names it.
    """
    try:
        document = tomllib.loads(read_small_file(path))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    listed = document.get("claim")
    if not isinstance(listed, list) or not listed or set(document) != {"claim"}:
        raise DataError(f"{path}: a file of claims has one or more tables [[claim]], and nothing else")
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
    """Read number and tolerance: the printed digits say how exact the number is meant."""
    printed = str(values.get("number", "")).replace("_", "").replace(",", "")
    try:
        number = float(printed)
    except ValueError:
        raise DataError(f"{where}: number must be what was printed, such as 32.9 or '50.0'") from None
    digits = len(printed.partition(".")[2])
    tolerance = values.get("tolerance", 0.5 * 10.0**-digits)
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 <= tolerance < math.inf:
        raise DataError(f"{where}: tolerance must be a number of at least 0")
    if not math.isfinite(number):
        raise DataError(f"{where}: number must be finite")
    return {"number": number, "digits": digits, "tolerance": float(tolerance)}
