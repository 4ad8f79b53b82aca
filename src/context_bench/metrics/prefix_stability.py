"""Whether a provider's prompt cache holds behind a proxy."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from context_bench.metrics.facts import mean, read_fact
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow

__all__ = ["PrefixStability"]


@dataclass(frozen=True)
class PrefixStability(RunningMetric):
    """How much of one request of a conversation comes again in the next, so that a provider's cache holds it.

    Means over the rows with several turns: `prefix_stability`, `first_message_changed`, `rewritten_history`.
    """

    name = "prefix-stability"
    keys = ("prefix_stability", "first_message_changed", "rewritten_history")

    def start(self) -> PrefixTally:
        """Start the sums."""
        return PrefixTally()


class PrefixTally:
    """Averages the three numbers of conversations."""

    def __init__(self) -> None:
        self._values = {key: array("d") for key in ("prefix_stability", "first_message_changed", "rewritten_history")}

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        for key, values in self._values.items():
            value = read_fact(row, key)
            if row.error is None and value is not None:
                values.append(value)

    def result(self) -> dict[str, float]:
        """Return the means so far."""
        return {key: mean(values) for key, values in self._values.items() if values}
