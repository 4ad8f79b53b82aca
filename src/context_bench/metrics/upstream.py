"""Numbers from a tap or a reader: tokens that reached the model, tokens saved, lost calls, prompt cache."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.running import (
    MeanSpread,
    RatioSpread,
    RunningMetric,
    ScoreCount,
    mean,
    read_fact,
    read_sides,
    was_repeated,
)
from context_bench.numbers import MEAN_UPSTREAM_TOKENS, PROMPT_SAVINGS, UPSTREAM_COST_OF_PASS, list_keys
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.text import count_things


def _count_late(report: Mapping[str, Any]) -> int:
    """Count the calls that came too late for any row, by the tapped system's report at the end of a run."""
    late = report.get("late_calls", 0)
    return late if isinstance(late, int) else 0


class SavingsTally:
    def __init__(self) -> None:
        self._rows = self._judged = self._untouched = self._repeated = self._opaque = 0
        self._unjudged = self._maybe_untouched = 0
        self._changes: Counter[str] = Counter()
        self._uncounted: Counter[str] = Counter()
        self._unknown_sent = self._least = self._most = 0.0
        self._tokens, self._untouched_spread = RatioSpread(), MeanSpread()

    def add(self, row: EvalRow) -> None:
        sides = read_sides(row)
        self._changes.update(row.metadata.get("changed_settings") or ())
        self._uncounted.update(row.metadata.get("uncounted_calls") or ())
        if sides is None:
            self._repeated += was_repeated(row)
            self._add_unknown(row)
            return
        self._rows += 1
        self._tokens.add(row, sides[1], sides[0])
        self._opaque += row.metadata.get("opaque_items") or 0
        untouched = read_fact(row, "untouched")
        if untouched is not None:
            self._judged += 1
            self._untouched += untouched == 1
            self._untouched_spread.add(row, untouched == 1)

    def _add_unknown(self, row: EvalRow) -> None:
        keys = ("sent_tokens", "least_upstream_tokens", "most_upstream_tokens")
        sent, least, most = (read_fact(row, key) for key in keys)
        if row.error is None and sent is not None and least is not None and most is not None:
            self._unknown_sent += sent
            self._least += least
            self._most += most
            if (maybe := read_fact(row, "untouched_at_best")) is not None:
                self._unjudged += 1
                self._maybe_untouched += maybe == 1

    def result(self) -> dict[str, float]:
        values: dict[str, float] = {}
        if sent := self._tokens.below:
            values |= {
                PROMPT_SAVINGS: 1.0 - self._tokens.ratio,
                "sent_tokens": sent,
                "mean_sent_tokens": sent / self._rows,
            }
            if self._judged:
                values["untouched_share"] = self._untouched / self._judged
        return values | self.bound({})

    def intervals(self) -> dict[str, Interval]:
        intervals = {PROMPT_SAVINGS: self._tokens.interval().subtract_from(1.0)} if self._tokens.below else {}
        return intervals | ({"untouched_share": self._untouched_spread.interval()} if self._judged else {})

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Return the best and the worst case, including late calls; empty if all calls are known. The headline leaves
        rows out, and lies between the two. A late call may belong to a row that seems untouched.
        """
        late, calls = report.get("late_tokens", 0), _count_late(report)
        late = float(late) if isinstance(late, int | float) else 0.0
        values: dict[str, float] = {}
        sent = self._tokens.below + self._unknown_sent
        if sent and (self._unknown_sent or late):
            cases = [1.0 - (self._tokens.above + tokens) / sent for tokens in (self._least, self._most + late)]
            if self._tokens.below:
                cases.append(1.0 - self._tokens.ratio)
            values |= {"prompt_savings_best": max(cases), "prompt_savings_worst": min(cases)}
        rows = self._judged + self._unjudged
        if rows and (self._unjudged or calls):
            cases = [(self._untouched + self._maybe_untouched) / rows, max(0, self._untouched - calls) / rows]
            if self._judged:
                cases.append(self._untouched / self._judged)
            values |= {"untouched_share_best": max(cases), "untouched_share_worst": min(cases)}
        return values

    def notes(self) -> dict[str, str]:
        """Name the proxy's changes other than to the prompt, and the rows that the savings leave out."""
        notes = {}
        if self._changes:
            shown = [
                f"{change} ({count_things(rows, 'row')})" for change, rows in self._changes.most_common(_MAX_CHANGES)
            ]
            more = f" and {len(self._changes) - _MAX_CHANGES} more" if len(self._changes) > _MAX_CHANGES else ""
            notes["untouched_share"] = f"changed in addition to the messages: {'; '.join(shown)}{more}"
        parts = []
        if self._repeated:
            parts.append(f"without {self._repeated:,} answers that needed no call only because --repeats asked again")
        if self._opaque:
            parts.append(f"without {count_things(self._opaque, 'encrypted or stored item')} that a model read")
        for path, calls in self._uncounted.most_common(_MAX_CHANGES):
            parts.append(f"without the rows of {count_things(calls, 'call')} to {path}, whose prompt cannot be counted")
        return notes | ({PROMPT_SAVINGS: "; ".join(parts)} if parts else {})


@dataclass(frozen=True)
class PromptSavings(RunningMetric):
    """1 - upstream/sent over summed tokens: the share of the prompt that the model did not have to read.

    Errored rows are left out, and so are rows that could not be matched to their upstream calls with certainty. If
    there are such rows, the best case counts none of the doubtful calls for them, and the worst case counts all.
    Answers without a call count as saved, unless only our own repetition of an example saved the call; a note gives
    their number.
    """

    name = "prompt-savings"
    tally = SavingsTally


_MAX_CHANGES = 5  # changed settings that a note lists
_SUMS = {
    **{key: key for key in ("extra_upstream_calls", "lost_upstream_calls", "lost_upstream_tokens")},
    "answers_without_call": "answered_without_call",
    "cached_answers": "cached_answer",
}
"""Keys that are sums of a fact over the rows that have it."""


class UpstreamTally:
    def __init__(self) -> None:
        self._tokens = self._rows = self._tapped = self._late = 0
        self._downstream = self._doubtful = 0.0
        self._sums: dict[str, float] = {}

    def add(self, row: EvalRow) -> None:
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
        values = {}
        if self._rows:
            values["upstream_tokens"] = float(self._tokens)
            values[MEAN_UPSTREAM_TOKENS] = self._tokens / self._rows
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
        self._late = _count_late(report)
        return self.result()


@dataclass(frozen=True)
class UpstreamTokens(RunningMetric):
    """Tokens sent to the model, over all calls; those of failed examples count, because they are paid for too.
    `downstream_tokens` covers the same rows, including all attempts of failed ones. If calls fit no single row,
    `extra_upstream_calls_best` counts none of them, and `extra_upstream_calls_worst` all. Rows that needed no call only
    because of our own repetition are left out.
    """

    name = "upstream-tokens"
    tally = UpstreamTally


class UpstreamCostTally:
    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._rows = threshold, ScoreCount(score_field)
        self._unknown = self._late = 0
        self._cost = RatioSpread(positive=True)

    def add(self, row: EvalRow) -> None:
        """Add one row. The tap knows the written tokens; without a tap they are those of the response."""
        if was_repeated(row):
            return
        if row.upstream_tokens is None:
            self._unknown += read_fact(row, "least_upstream_tokens") is not None
            return
        written = read_fact(row, "written_tokens")
        if written is None:
            written = read_fact(row, "response_tokens") or 0.0
        tokens = row.upstream_tokens + written + (read_fact(row, "lost_upstream_tokens") or 0.0)
        self._cost.add(row, tokens, self._rows.passes(row, self._threshold))

    def result(self) -> dict[str, float]:
        if not self._known and not self._unknown:
            return {}
        return {UPSTREAM_COST_OF_PASS: self._cost.ratio}

    def intervals(self) -> dict[str, Interval]:
        return {UPSTREAM_COST_OF_PASS: self._cost.interval()} if self._cost.below else {}

    @property
    def _known(self) -> int:
        return self._rows.count + self._rows.unscored

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Note the calls that came late: they are on no row."""
        self._late = _count_late(report)
        return {}

    def unmeasured(self) -> dict[str, str]:
        if not self._known and self._unknown:
            return {UPSTREAM_COST_OF_PASS: "every row has calls that could not be matched to it with certainty"}
        return self._rows.unmeasured(UPSTREAM_COST_OF_PASS) if self._known else {}

    def notes(self) -> dict[str, str]:
        missing = []
        if self._known and self._unknown:
            missing.append(
                f"{self._unknown:,} rows whose calls could not be matched to them with certainty are left out"
            )
        if self._late:
            missing.append(f"{self._late:,} late calls are not included")
        return {UPSTREAM_COST_OF_PASS: f"uncertain: {'; '.join(missing)}"} if missing else {}


@dataclass(frozen=True)
class UpstreamCost(RunningMetric):
    """Tokens that the model behind a system read and wrote for each passing example; lower is better.

    This is the number that a proxy should lower. All calls count, including the proxy's own, and those that the model
    answered and the proxy lost. Rows that failed or did not pass count too. Rows with unknown upstream tokens are left
    out, and a note says so. The cost is infinite if nothing passes.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "upstream-cost"
    tally = UpstreamCostTally


class MetersTally:
    """Keeps the values of the three meters, with exact sums and the number of rows of each."""

    def __init__(self) -> None:
        self._claimed, self._counted, self._usage = array("d"), array("d"), array("d")

    def add(self, row: EvalRow) -> None:
        if (sides := read_sides(row)) is not None:
            self._counted.append(sides[0] - sides[1])
        claimed = read_fact(row, "claimed_tokens_saved")
        if claimed is not None and row.error is None:
            self._claimed.append(claimed)
        billed = read_fact(row, "billed_prompt_tokens")
        if billed is None and "upstream_calls" not in row.metadata and row.upstream_tokens is not None:
            billed = read_fact(row, "prompt_tokens")  # a reader behind a compressor: its own usage is the bill
        if billed is not None:
            self._usage.append(billed)

    def result(self) -> dict[str, float]:
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


@dataclass(frozen=True)
class TokenMeters(RunningMetric):
    """Three meters side by side: tokens saved by the vendor's claim, by our count, and by the API's bill.

    Each is a sum over the rows that have it: `claimed_rows`, `counted_rows`, `usage_rows`. The API's bill includes
    calls that the proxy lost and rows that failed, as dollars do; the other two cover answered rows. The API has its
    own tokenizer, so its number is comparable with that of another system, not with the other two.
    """

    name = "token-meters"
    tally = MetersTally


class PrefixTally:
    def __init__(self) -> None:
        self._values = {key: array("d") for key in list_keys(PrefixStability.name)}

    def add(self, row: EvalRow) -> None:
        for key, values in self._values.items():
            value = read_fact(row, key)
            if row.error is None and value is not None:
                values.append(value)

    def result(self) -> dict[str, float]:
        return {key: mean(values) for key, values in self._values.items() if values}


@dataclass(frozen=True)
class PrefixStability(RunningMetric):
    """The share of a request that is a prefix of the conversation's next request, so that a provider's cache can serve
    it.

    The numbers are means over the rows with several turns.
    """

    name = "prefix-stability"
    tally = PrefixTally
