"""Tokens sent to the model behind a system, and calls that it did not make one for one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.metrics.facts import read_fact, was_repeated
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.traits import MetricTraits

__all__ = ["UpstreamTokens"]

_SUMS = {
    "extra_upstream_calls": "extra_upstream_calls",
    "lost_upstream_calls": "lost_upstream_calls",
    "lost_upstream_tokens": "lost_upstream_tokens",
    "answers_without_call": "answered_without_call",
    "cached_answers": "cached_answer",
}
"""Keys that are sums of a fact over the rows that tell it."""


@dataclass(frozen=True)
class UpstreamTokens(RunningMetric):
    """Tokens that the model was sent, over all calls; those of failed examples are paid for too, so they count.

    `downstream_tokens` are what was sent to the proxy for the same rows, all attempts of failed ones included. Beside
    them calls that the proxy made on top, calls that the model answered and the proxy then lost
    (`lost_upstream_tokens` were read and written in vain), answers without a call, and those of them that came from a
    cache by the proxy's own word. Where calls fit no single row, `extra_upstream_calls_best` counts none of them, and
    `extra_upstream_calls_worst` all. Answers that only our own repetition saved a call are in no mean and no sum.
    """

    name = "upstream-tokens"
    keys = (
        *("upstream_tokens", "mean_upstream_tokens", "downstream_tokens", "mean_downstream_tokens"),
        *(*_SUMS, "extra_upstream_calls_best", "extra_upstream_calls_worst"),
    )

    def __context_bench_traits__(self) -> MetricTraits:
        return MetricTraits(bound=UpstreamTally.bound)

    def start(self) -> UpstreamTally:
        """Start the sums."""
        return UpstreamTally()


class UpstreamTally:
    """Sums tokens and calls."""

    def __init__(self) -> None:
        self._tokens = self._rows = self._tapped = 0
        self._downstream = self._doubtful = 0.0
        self._late = 0
        self._sums: dict[str, float] = {}

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        if row.upstream_tokens is not None and not was_repeated(row):
            self._tokens += row.upstream_tokens
            self._rows += 1
            downstream = read_fact(row, "downstream_tokens")
            self._tapped += downstream is not None
            self._downstream += downstream or 0.0
        most = read_fact(row, "most_extra_upstream_calls")
        self._doubtful += 0.0 if most is None else most - (read_fact(row, "extra_upstream_calls") or 0.0)
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
        if self._tapped:
            values["downstream_tokens"] = self._downstream
            values["mean_downstream_tokens"] = self._downstream / self._tapped
        values |= {key: self._sums[key] for key in _SUMS if key in self._sums}
        known = self._sums.get("extra_upstream_calls")
        if known is not None and self._doubtful + self._late:
            values["extra_upstream_calls_best"] = known
            values["extra_upstream_calls_worst"] = known + self._doubtful + self._late
        return values

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Count the calls that came late as extra calls, at worst."""
        late = report.get("late_calls", 0)
        self._late = late if isinstance(late, int) else 0
        return self.result()
