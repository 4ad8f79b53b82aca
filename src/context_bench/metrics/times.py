"""Times: the seconds that a system takes for an example, and the part that a proxy adds."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from context_bench.metrics.running import RunningMetric, mean, read_fact
from context_bench.numbers import LATENCY_MEDIAN
from context_bench.results import EvalRow
from context_bench.stats import Interval, Values, quantile_interval
from context_bench.stats.quantiles import percentile

ENOUGH_ALONE = 20  # with at least this many rows that were alone in flight, only those count
_QUANTILES = {LATENCY_MEDIAN: 0.5, "latency_p95": 0.95, "latency_p99": 0.99}

_FIRST_TOKEN = {"time_to_first_token_median": 0.5, "time_to_first_token_p95": 0.95}


def _enclose(seconds: array[float], quantiles: Mapping[str, float]) -> dict[str, Interval]:
    """Return the interval of each quantile; empty without times."""
    values = Values(limit=max(1, len(seconds)))
    values.extend(sorted(seconds))
    return {key: quantile_interval(values, at) for key, at in quantiles.items() if seconds}


class LatencyTally:
    """Keeps eight bytes for each row, because percentiles need every value."""

    def __init__(self) -> None:
        self._seconds = array("d")

    def add(self, row: EvalRow) -> None:
        if row.error is None:
            self._seconds.append(row.latency)

    def result(self) -> dict[str, float]:
        seconds = sorted(self._seconds) or [0.0]
        return {"latency_mean": mean(seconds)} | {key: percentile(seconds, at) for key, at in _QUANTILES.items()}

    def unmeasured(self) -> dict[str, str]:
        return {} if self._seconds else dict.fromkeys(self.result(), "no row succeeded")

    def intervals(self) -> dict[str, Interval]:
        return _enclose(self._seconds, _QUANTILES)


@dataclass(frozen=True)
class Latency(RunningMetric):
    """Mean, median, 95th and 99th percentile of the seconds that `process` took; errored rows are left out."""

    name = "latency"
    tally = LatencyTally


class FirstTokenTally:
    """Keeps the seconds of each streamed row."""

    def __init__(self) -> None:
        self._seconds = array("d")

    def add(self, row: EvalRow) -> None:
        value = read_fact(row, "time_to_first_token")
        if row.error is None and value is not None:
            self._seconds.append(value)

    def result(self) -> dict[str, float]:
        seconds = sorted(self._seconds)
        return {key: percentile(seconds, at) for key, at in _FIRST_TOKEN.items()} if seconds else {}

    def intervals(self) -> dict[str, Interval]:
        return _enclose(self._seconds, _FIRST_TOKEN)


@dataclass(frozen=True)
class FirstToken(RunningMetric):
    """Median and 95th percentile of the seconds until the first token of a streamed reply; errored rows are left out.
    Empty if no row was streamed.
    """

    name = "first-token"
    tally = FirstTokenTally


@dataclass
class _Seconds:
    """Times of rows whose requests ran with no other request in flight, and times of all other rows."""

    alone: array[float] = field(default_factory=lambda: array("d"))
    together: array[float] = field(default_factory=lambda: array("d"))

    @property
    def enough(self) -> bool:
        return len(self.alone) >= ENOUGH_ALONE or not self.together

    def choose(self) -> list[float]:
        return sorted(self.alone if self.enough else self.alone + self.together)


class OverheadTally:
    """Keeps the seconds of each row, because percentiles need every value."""

    def __init__(self) -> None:
        self._seconds = {key: _Seconds() for key in ("proxy_overhead", "first_token_overhead")}

    def add(self, row: EvalRow) -> None:
        for key, seconds in self._seconds.items():
            value = read_fact(row, key)
            if row.error is None and value is not None:
                (seconds.alone if row.metadata.get("alone") is True else seconds.together).append(value)

    def result(self) -> dict[str, float]:
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
        """Note that a number includes waiting for other requests."""
        return {
            f"{key}_median": f"includes waiting: {len(seconds.alone)} of {len(seconds.choose())} rows had no other "
            f"request of the system in flight, and {ENOUGH_ALONE} are needed; --max-workers 1 measures only the proxy"
            for key, seconds in self._seconds.items()
            if not seconds.enough
        }


@dataclass(frozen=True)
class ProxyOverhead(RunningMetric):
    """Seconds that a proxy adds: the time of the request minus the time of the model behind it. Only rows without other
    requests of that system in flight count, because the time would include waiting for them. If there are fewer than
    20, all rows count, and a note says so. `proxy_overhead_rows` is the number of rows that count. For streamed replies
    there is also the delay of the first token. Errored rows are left out.
    """

    name = "proxy-overhead"
    tally = OverheadTally
