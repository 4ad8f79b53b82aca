"""What the tap saw, summed up: tokens saved and spent, time added, prompt caches broken, claims held against counts.

Ratios come from summed tokens, never from ratios of rows. A row counts where it carries the fact; where no row
does, the key is missing: nothing was measured.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from context_bench.metrics.latency import percentile
from context_bench.results import EvalRow
from context_bench.summary import fold

__all__ = ["PrefixStability", "PromptSavings", "ProxyOverhead", "TokenMeters", "UpstreamCost", "UpstreamTokens"]


def _fact(row: EvalRow, key: str) -> float | None:
    """A number of a row's metadata; None when there is none."""
    value = row.metadata.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _both_sides(row: EvalRow) -> tuple[float, float] | None:
    """Tokens that were sent to a system and tokens that it sent on.

    A compressor with a reader of ours behind it is sent the example: its input, counted by the same function.
    """
    sent = _fact(row, "downstream_tokens")
    if sent is None and row.metadata.get("output") == "context":
        sent = float(row.input_tokens)
    if row.error is not None or sent is None or row.upstream_tokens is None:
        return None
    return sent, float(row.upstream_tokens)


@dataclass(frozen=True)
class PromptSavings:
    """1 - upstream/downstream over summed tokens: what the model did not have to read.

    `untouched_share` is the share of rows in which the model got exactly what was sent. Errored rows are left out.
    """

    name = "prompt-savings"

    def start(self) -> SavingsTally:
        """Running sums."""
        return SavingsTally()

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Compare the summed tokens of both sides."""
        return fold(self.start(), rows)


class SavingsTally:
    """Sums tokens on both sides of a system."""

    def __init__(self) -> None:
        self._sent = self._passed_on = 0.0
        self._rows = self._told = self._untouched = 0

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        sides = _both_sides(row)
        if sides is None:
            return
        self._rows += 1
        self._sent += sides[0]
        self._passed_on += sides[1]
        untouched = _fact(row, "untouched")
        if untouched is not None:
            self._told += 1
            self._untouched += untouched == 1

    def result(self) -> dict[str, float]:
        """The savings so far."""
        if not self._rows or not self._sent:
            return {}
        values = {
            "prompt_savings": 1.0 - self._passed_on / self._sent,
            "downstream_tokens": self._sent,
            "mean_downstream_tokens": self._sent / self._rows,
        }
        if self._told:
            values["untouched_share"] = self._untouched / self._told
        return values


@dataclass(frozen=True)
class UpstreamTokens:
    """Tokens that the model was sent, over all calls; those of failed examples are paid for too, so they count."""

    name = "upstream-tokens"

    def start(self) -> UpstreamTally:
        """Running sums."""
        return UpstreamTally()

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Add them up."""
        return fold(self.start(), rows)


class UpstreamTally:
    """Sums tokens and calls."""

    def __init__(self) -> None:
        self._tokens = self._rows = 0
        self._extra: float | None = None

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        if row.upstream_tokens is not None:
            self._tokens += row.upstream_tokens
            self._rows += 1
        extra = _fact(row, "extra_upstream_calls")
        if extra is not None:
            self._extra = (self._extra or 0.0) + extra

    def result(self) -> dict[str, float]:
        """The sums so far."""
        values = {}
        if self._rows:
            values["upstream_tokens"] = float(self._tokens)
            values["mean_upstream_tokens"] = self._tokens / self._rows
        if self._extra is not None:
            values["extra_upstream_calls"] = self._extra
        return values


@dataclass(frozen=True)
class UpstreamCost:
    """Tokens that the model behind a system read and wrote for each passing example; lower is better.

    What a proxy is there to lower. Rows that failed or did not pass are on the bill too; those whose upstream
    tokens nobody knows are left out altogether.
    """

    threshold: float = 0.7
    score_field: str = "score"
    name = "upstream-cost"

    def start(self) -> UpstreamCostTally:
        """A running count."""
        return UpstreamCostTally(self.threshold, self.score_field)

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Divide all tokens by the number of passes; infinite when nothing passes."""
        return fold(self.start(), rows)


class UpstreamCostTally:
    """Counts passes and tokens."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._field = threshold, score_field
        self._rows = self._passing = 0
        self._tokens = 0.0

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        if row.upstream_tokens is None:
            return
        self._rows += 1
        self._tokens += row.upstream_tokens + (_fact(row, "response_tokens") or 0.0)
        self._passing += row.error is None and row.scores.get(self._field, -math.inf) >= self._threshold

    def result(self) -> dict[str, float]:
        """Tokens for each pass so far."""
        if not self._rows:
            return {}
        return {"upstream_cost_of_pass": self._tokens / self._passing if self._passing else math.inf}


@dataclass(frozen=True)
class ProxyOverhead:
    """Seconds that a proxy adds: all that the request took, less what the model behind it took.

    For streamed replies also how much later the first token comes. Errored rows are left out.
    """

    name = "proxy-overhead"

    def start(self) -> OverheadTally:
        """A running collection."""
        return OverheadTally()

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Summarise the seconds."""
        return fold(self.start(), rows)


class OverheadTally:
    """Keeps the seconds of each row: percentiles need them all."""

    def __init__(self) -> None:
        self._whole, self._first = array("d"), array("d")

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        for key, seconds in (("proxy_overhead", self._whole), ("first_token_overhead", self._first)):
            value = _fact(row, key)
            if row.error is None and value is not None:
                seconds.append(value)

    def result(self) -> dict[str, float]:
        """The percentiles so far."""
        values = {}
        if self._whole:
            whole = sorted(self._whole)
            values["proxy_overhead_mean"] = _mean(whole)
            values["proxy_overhead_median"] = percentile(whole, 0.5)
            values["proxy_overhead_p95"] = percentile(whole, 0.95)
        if self._first:
            values["first_token_overhead_median"] = percentile(sorted(self._first), 0.5)
        return values


@dataclass(frozen=True)
class PrefixStability:
    """How much of one request of a conversation comes again in the next, so that a provider's cache holds it.

    Means over the rows with several turns: `prefix_stability`, `first_message_changed`, `rewritten_history`.
    """

    name = "prefix-stability"

    def start(self) -> PrefixTally:
        """Running sums."""
        return PrefixTally()

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Average the conversations."""
        return fold(self.start(), rows)


class PrefixTally:
    """Averages the three numbers of conversations."""

    def __init__(self) -> None:
        self._values = {key: array("d") for key in ("prefix_stability", "first_message_changed", "rewritten_history")}

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        for key, values in self._values.items():
            value = _fact(row, key)
            if row.error is None and value is not None:
                values.append(value)

    def result(self) -> dict[str, float]:
        """The means so far."""
        return {key: _mean(values) for key, values in self._values.items() if values}


@dataclass(frozen=True)
class TokenMeters:
    """Three meters side by side: what the vendor claims to save, what the tap counted, what the API billed.

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
        sides = _both_sides(row)
        counted = None if sides is None else sides[0] - sides[1]
        claimed, used = _fact(row, "claimed_tokens_saved"), _fact(row, "billed_prompt_tokens")
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


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
