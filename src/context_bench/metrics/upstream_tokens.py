"""Tokens sent to the model behind a system, and calls that it did not make one for one."""

from __future__ import annotations

from dataclasses import dataclass

from context_bench.metrics.facts import read_fact
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow

__all__ = ["UpstreamTokens"]

_SUMS = {
    "extra_upstream_calls": "extra_upstream_calls",
    "lost_upstream_calls": "lost_upstream_calls",
    "lost_upstream_tokens": "lost_upstream_tokens",
    "cached_answers": "cached_answer",
}
"""Keys that are sums of a fact over the rows that tell it."""


@dataclass(frozen=True)
class UpstreamTokens(RunningMetric):
    """Tokens that the model was sent, over all calls; those of failed examples are paid for too, so they count.

    Beside them calls that the proxy made on top, calls that the model answered and the proxy then lost
    (`lost_upstream_tokens` were read and written in vain), and answers that came from a cache of the proxy.
    """

    name = "upstream-tokens"
    keys = ("upstream_tokens", "mean_upstream_tokens", *_SUMS)

    def start(self) -> UpstreamTally:
        """Start the sums."""
        return UpstreamTally()


class UpstreamTally:
    """Sums tokens and calls."""

    def __init__(self) -> None:
        self._tokens = self._rows = 0
        self._sums: dict[str, float] = {}

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        if row.upstream_tokens is not None:
            self._tokens += row.upstream_tokens
            self._rows += 1
        for key, fact in _SUMS.items():
            value = read_fact(row, fact)
            if value is not None:
                self._sums[key] = self._sums.get(key, 0.0) + value

    def result(self) -> dict[str, float]:
        """Return the sums so far."""
        values = {}
        if self._rows:
            values["upstream_tokens"] = float(self._tokens)
            values["mean_upstream_tokens"] = self._tokens / self._rows
        return values | {key: self._sums[key] for key in _SUMS if key in self._sums}
