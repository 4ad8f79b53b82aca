"""An estimate with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

__all__ = ["FIRST", "ROUGH", "TOO_FEW", "Interval"]

TOO_FEW = "too few"
"""Mark of an interval with too few examples; its limits are NaN or the whole possible range."""

ROUGH = "rough"  # mark of an interval that is less reliable than its level, since a few examples dominate


FIRST = "first"
"""Mark of an interval over the first examples of a dataset: they are not a random sample."""


def _null(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Interval:
    """An estimate, and limits that contain the true value with a confidence of `level`.

    `n` is the number of examples, `method` names the formula, `mark` is a caution, empty for none; `symmetric` means
    that the value is in the middle, so that `±` may be written. `groups` is the number of clusters (documents,
    conversations) if the interval is computed by cluster, else None. The limits always enclose the value: if a formula
    that shrinks the estimate leaves it outside, the nearer limit moves to it.
    """

    value: float
    low: float
    high: float
    level: float = 0.95
    n: int = 0
    method: str = ""
    mark: str = ""
    symmetric: bool = False
    groups: int | None = None

    def __post_init__(self) -> None:
        if self.value < self.low:
            object.__setattr__(self, "low", self.value)
        if self.value > self.high:
            object.__setattr__(self, "high", self.value)

    @property
    def known(self) -> bool:
        """Whether the interval has limits."""
        return math.isfinite(self.value) and not (math.isnan(self.low) or math.isnan(self.high))

    def subtract_from(self, whole: float) -> Interval:
        """Return the interval of `whole - value`: savings are 1 minus the share that is kept."""
        return replace(self, value=whole - self.value, low=whole - self.high, high=whole - self.low)

    def multiply(self, factor: float) -> Interval:
        """Return the interval in another unit; the factor must be positive."""
        return replace(self, value=self.value * factor, low=self.low * factor, high=self.high * factor)

    def find_decimals(self) -> int:
        """Choose the decimals: 2 (fewer from 100 on), or as many as are needed to distinguish the limits. Add one if
        rounding would put the value, which has one decimal more, outside its limits.
        """
        width, least = self.high - self.low, 2 if abs(self.value) < 100 else 1 if abs(self.value) < 1000 else 0
        if not (math.isfinite(width) and width > 1e-12 * abs(self.value)):  # but for rounding the ends are the same
            return least
        places = next((places for places in range(least, 7) if width >= 5 * 10.0**-places), 7)
        shown = round(self.value, places + 1)
        return places + (not round(self.low, places) <= shown <= round(self.high, places))

    def render(self, decimals: int | None = None) -> str:
        """Write it as `0.742 [0.70, 0.78]`, or as `0.742 ± 0.04` if it is symmetric.

        The value has one decimal more than the limits, but not more than three unless the limits do.
        """
        if not math.isfinite(self.value):
            return "not measured"
        places = self.find_decimals() if decimals is None else decimals
        shown = f"{self.value:.{max(places, min(3, places + 1))}f}"
        if not self.known or self.mark == TOO_FEW:
            return f"{shown} ({self.mark or TOO_FEW})"
        if self.symmetric:
            limits = f"± {self.high - self.value:.{places}f}"
        else:
            limits = f"[{self.low:.{places}f}, {self.high:.{places}f}]"
        return " ".join(filter(None, (shown, limits, self.mark)))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for strict JSON: non-finite numbers become null; `groups` only if there are clusters."""
        limits = {"value": _null(self.value), "low": _null(self.low), "high": _null(self.high)}
        written = {**asdict(self), **limits}
        if self.groups is None:
            del written["groups"]
        return written

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Interval:
        """Read the dict of `to_dict`; null becomes NaN."""
        limits = {key: math.nan if stored[key] is None else stored[key] for key in ("value", "low", "high")}
        return cls(**{**stored, **limits})
