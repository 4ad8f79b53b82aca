"""How many tokens the API bills for each that we count: the two have tokenizers of their own."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.utils.tokens import read_token_count

__all__ = ["BilledRatio"]


@dataclass(frozen=True)
class BilledRatio(RunningMetric):
    """Billed prompt tokens for each token that we counted in the same prompts, by least squares through zero.

    An estimate of dollars from counted tokens is off by about this factor. The residual is the part of the bills that
    the ratio does not explain (root of the squares left over, as a share of the bills): near 0, one factor fits all.
    """

    name = "billed-ratio"
    keys = ("billed_to_counted", "billed_to_counted_residual", "billed_to_counted_rows")

    def start(self) -> RatioTally:
        """Start running sums."""
        return RatioTally()


class RatioTally:
    """Sums of squares and products; whole numbers, so that nothing is lost to rounding."""

    def __init__(self) -> None:
        self._rows = self._billed = self._both = self._counted = 0

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        if not row.upstream_tokens:
            return
        metadata = row.metadata
        billed = read_token_count(metadata.get("billed_prompt_tokens"))
        if (
            billed is None and "upstream_calls" not in metadata
        ):  # a reader behind a compressor: its own usage is the bill
            billed = read_token_count(metadata.get("prompt_tokens"))
        counted = None if metadata.get("lost_upstream_calls") else row.upstream_tokens  # the bill holds lost calls too
        if row.error is None and billed is not None and counted:
            self._rows += 1
            self._billed += billed * billed
            self._both += billed * counted
            self._counted += counted * counted

    def result(self) -> dict[str, float]:
        """Give the ratio, its residual and the number of rows; nothing where no row knows both."""
        if not self._counted or not self._billed:
            return {}
        left = self._billed * self._counted - self._both * self._both
        return {
            "billed_to_counted": self._both / self._counted,
            "billed_to_counted_residual": math.sqrt(max(0, left) / (self._billed * self._counted)),
            "billed_to_counted_rows": float(self._rows),
        }
