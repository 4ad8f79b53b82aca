"""Three counts of the same tokens side by side: the vendor's claim, our own count, the API's bill."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

from context_bench.metrics.facts import read_fact, read_sides
from context_bench.results import EvalRow
from context_bench.summary import fold

__all__ = ["TokenMeters"]


@dataclass(frozen=True)
class TokenMeters:
    """Three meters side by side: what the vendor claims to save, what we counted, what the API billed.

    Each is a sum over the rows that tell it: `claimed_rows`, `counted_rows`, `usage_rows`. The API counts with a
    tokenizer of its own, so its number compares with that of another system, not with the other two.
    """

    name = "token-meters"

    def start(self) -> Meters:
        """Running sums."""
        return Meters()

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Add up each meter."""
        return fold(self.start(), rows)


class Meters:
    """The sums of the three meters, each with the number of its rows."""

    def __init__(self) -> None:
        self._claimed, self._counted, self._usage = array("d"), array("d"), array("d")

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        if row.error is not None:
            return
        sides = read_sides(row)
        counted = None if sides is None else sides[0] - sides[1]
        claimed, used = read_fact(row, "claimed_tokens_saved"), read_fact(row, "billed_prompt_tokens")
        for meter, value in ((self._claimed, claimed), (self._counted, counted), (self._usage, used)):
            if value is not None:
                meter.append(value)

    def result(self) -> dict[str, float]:
        """What each meter shows so far."""
        meters = (
            ("claimed_tokens_saved", "claimed_rows", self._claimed),
            ("counted_tokens_saved", "counted_rows", self._counted),
            ("usage_prompt_tokens", "usage_rows", self._usage),
        )
        values: dict[str, float] = {}
        for key, rows, meter in meters:
            if meter:
                values |= {key: math.fsum(meter), rows: float(len(meter))}
        return values
