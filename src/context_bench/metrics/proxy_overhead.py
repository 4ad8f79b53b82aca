"""How much time a proxy adds to a request, measured where no other request kept it busy."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from context_bench.metrics.facts import mean, read_fact
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats.quantiles import percentile

__all__ = ["ENOUGH", "ProxyOverhead"]

ENOUGH = 20
"""From so many rows on that were alone in flight, only those count."""


@dataclass(frozen=True)
class ProxyOverhead(RunningMetric):
    """Seconds that a proxy adds: all that the request took, less what the model behind it took.

    Only rows count whose requests had no other one of that system in flight: with others, the time includes waiting for
    them. Where fewer than 20 were alone all rows count, and a note says so. `proxy_overhead_rows` are those that count.
    For streamed replies also how much later the first token comes. Errored rows are left out.
    """

    name = "proxy-overhead"
    keys = (
        *("proxy_overhead_mean", "proxy_overhead_median", "proxy_overhead_p95", "proxy_overhead_rows"),
        "first_token_overhead_median",
    )
    by_dataset = ("proxy_overhead_median",)

    def start(self) -> OverheadTally:
        """Start collecting."""
        return OverheadTally()


@dataclass
class _Seconds:
    """The seconds of rows whose requests were alone in flight, and of the others."""

    alone: array[float] = field(default_factory=lambda: array("d"))
    together: array[float] = field(default_factory=lambda: array("d"))

    @property
    def enough(self) -> bool:
        return len(self.alone) >= ENOUGH or not self.together

    def choose(self) -> list[float]:
        """Return those that count, in order."""
        return sorted(self.alone if self.enough else self.alone + self.together)


class OverheadTally:
    """Keeps the seconds of each row: percentiles need them all."""

    def __init__(self) -> None:
        self._seconds = {key: _Seconds() for key in ("proxy_overhead", "first_token_overhead")}

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        for key, seconds in self._seconds.items():
            value = read_fact(row, key)
            if row.error is None and value is not None:
                (seconds.alone if row.metadata.get("alone") is True else seconds.together).append(value)

    def result(self) -> dict[str, float]:
        """Return the percentiles so far."""
        values = {}
        if whole := self._seconds["proxy_overhead"].choose():
            values["proxy_overhead_mean"] = mean(whole)
            values["proxy_overhead_median"] = percentile(whole, 0.5)
            values["proxy_overhead_p95"] = percentile(whole, 0.95)
            values["proxy_overhead_rows"] = float(len(whole))
        if first := self._seconds["first_token_overhead"].choose():
            values["first_token_overhead_median"] = percentile(first, 0.5)
        return values

    def notes(self) -> dict[str, str]:
        """Say of a number that it includes waiting for other requests."""
        return {
            f"{key}_median": f"includes waiting: {len(seconds.alone)} of {len(seconds.choose())} rows had no other "
            f"request of the system in flight, and {ENOUGH} are needed; --max-workers 1 measures the proxy alone"
            for key, seconds in self._seconds.items()
            if not seconds.enough
        }
