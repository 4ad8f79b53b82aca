"""Three counts of the same tokens: what the vendor claims, what we counted, what the API billed."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass

from context_bench.metrics.facts import read_billed, read_fact, read_sides
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow

__all__ = ["TokenMeters"]


@dataclass(frozen=True)
class TokenMeters(RunningMetric):
    """Three meters side by side: what the vendor claims to save, what we counted, what the API billed.

    Each is a sum over the rows that tell it: `claimed_rows`, `counted_rows`, `usage_rows`. What the API billed includes
    calls that the proxy lost and rows that failed, as dollars do; the other two are of answered rows. The API has
    a tokenizer of its own, so its number compares with that of another system, not with the other two.
    """

    name = "token-meters"
    keys = (
        *("claimed_tokens_saved", "claimed_rows", "counted_tokens_saved", "counted_rows"),
        *("usage_prompt_tokens", "usage_rows"),
    )

    def start(self) -> MetersTally:
        """Start the sums."""
        return MetersTally()


class MetersTally:
    """Keeps the values of the three meters: their sums are exact, and each has its number of rows."""

    def __init__(self) -> None:
        self._claimed, self._counted, self._usage = array("d"), array("d"), array("d")

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        sides = read_sides(row)
        counted = None if sides is None else sides[0] - sides[1]
        claimed, used = read_fact(row, "claimed_tokens_saved"), read_billed(row)
        claimed = None if row.error is not None else claimed
        for meter, value in ((self._claimed, claimed), (self._counted, counted), (self._usage, used)):
            if value is not None:
                meter.append(value)

    def result(self) -> dict[str, float]:
        """Return what each meter shows so far."""
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
