"""The cost of answers in dollars, and the ratio of billed tokens to those counted here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.running import RatioSpread, RunningMetric, ScoreCount, read_fact, was_repeated
from context_bench.numbers import CACHE_HIT_RATE, COST_PER_1K_USD, COST_USD, EMBEDDING_COST_USD, TIMED_OUT_COST_USD
from context_bench.pricing import Price, list_usages
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.text import count_things
from context_bench.utils.tokens import read_token_count

_KEYS = (COST_USD, COST_PER_1K_USD, "cost_of_pass_usd")
_BOUNDS = ("cost_per_1k_usd_best", "cost_per_1k_usd_worst")
_COST_FIELDS = frozenset(
    {"judge_cost_usd", "llm-judge", "embedding_usage", "timed_out_attempts", "saved_by_repeating", "cost_usd"}
    | {"cost_as_asked_usd", "least_cost_usd", "most_cost_usd", "billed_usage", "counted_usage"}
)
"""Metadata keys that carry a cost; a row without any of them has no known cost."""

_UNPAID = ("scripted/", "local ")  # prefixes of `answered_by` of models behind a tap that send no bill


class DollarTally:
    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._scores = threshold, ScoreCount(score_field)
        self._judge_dollars = 0.0
        self._known = self._unknown = self._failed_unknown = self._estimated = 0
        self._judged = self._judged_unknown = 0
        self._repeated = self._bounded = 0
        self._least = self._most = self._late = self._asked = 0.0
        self._swapped: Counter[str] = Counter()
        self._embeddings, self._timed_out, self._cache = _Embeddings(), _TimedOut(), _Cache()
        self._priced_by: Mapping[str, Any] | None = None
        self._unpaid = False
        self._each, self._passes = RatioSpread(positive=True), RatioSpread(positive=True)

    def add(self, row: EvalRow) -> None:
        self._cache.add(row)
        if _COST_FIELDS.isdisjoint(row.metadata):
            self._unknown += 1
            self._failed_unknown += row.error is not None
            return
        self._add_judge(row)
        self._embeddings.add(row)
        self._timed_out.add(row)
        if was_repeated(row):
            self._repeated += 1
            return
        cost, asked = read_fact(row, "cost_usd"), read_fact(row, "cost_as_asked_usd")
        bills = [*(row.metadata.get("billed_usage") or ()), *(row.metadata.get("counted_usage") or ())]
        self._swapped.update({str(bill["model"]) for bill in bills if isinstance(bill, Mapping) and "model" in bill})
        if cost is None:
            least, most = read_fact(row, "least_cost_usd"), read_fact(row, "most_cost_usd")
            if least is not None and most is not None:
                self._bounded += 1
                self._least += least
                self._most += most
            self._unknown += 1
            self._failed_unknown += row.error is not None
            return
        self._known += 1
        self._asked += cost if asked is None else asked
        self._estimated += row.metadata.get("cost_is_estimate") is True
        self._each.add(row, cost, 1)
        self._passes.add(row, cost, self._scores.passes(row, self._threshold))

    def _add_judge(self, row: EvalRow) -> None:
        spent = read_fact(row, "judge_cost_usd")
        if spent is not None:
            self._judged += 1
            self._judge_dollars += spent
        elif isinstance(details := row.metadata.get("llm-judge"), Mapping):
            self._judged_unknown += "reply" in details  # answers that were not judged cost nothing

    def result(self) -> dict[str, float]:
        """Return the dollars so far; empty if no row has a cost."""
        values: dict[str, float] = {}
        if self._known:
            values[COST_USD] = self._each.above
            values[COST_PER_1K_USD] = self._each.ratio * 1000
            values["cost_of_pass_usd"] = self._passes.ratio
            if self._swapped:
                values["cost_per_1k_as_asked_usd"] = self._asked / self._known * 1000
        values |= self._bounds()
        if self._judged or self._judged_unknown:
            values["judge_cost_usd"] = self._judge_dollars if self._judged else math.nan
        return values | self._embeddings.result() | self._timed_out.result() | self._cache.result()

    def intervals(self) -> dict[str, Interval]:
        intervals = {COST_PER_1K_USD: self._each.interval().multiply(1000)} if self._each.above else {}
        known = self._each.above and self._passes.below
        return intervals | ({"cost_of_pass_usd": self._passes.interval()} if known else {})

    def _bounds(self) -> dict[str, float]:
        """Compute the best and the worst case, which enclose the headline; empty if all calls are known."""
        rows = self._known + self._bounded
        if not rows or not (self._bounded or self._late):
            return {}
        cases = [(self._each.above + more) / rows * 1000 for more in (self._least, self._most + self._late)]
        if self._known:
            cases.append(self._each.ratio * 1000)
        return dict(zip(_BOUNDS, (min(cases), max(cases))))

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Note the system's entry in the prices, and its late calls; a late call of unknown cost gives NaN."""
        self._priced_by = report.get("priced_by")
        self._unpaid = str(report.get("answered_by", "")).startswith(_UNPAID)
        price, late = (self._priced_by or {}).get("price"), report.get("late_usage")
        if isinstance(price, Mapping) and isinstance(late, list):
            self._late = Price.from_dict(price).sum_costs(late) or 0.0
        unknown = dict.fromkeys(_KEYS, math.nan) if self._priced_by and not self._known else {}
        return unknown | self._bounds()

    def unmeasured(self) -> dict[str, str]:
        return self._scores.unmeasured("cost_of_pass_usd") if self._known else {}

    def notes(self) -> dict[str, str]:
        """Explain the dollars if they are not simply each row's bill at the price of its model."""
        notes: dict[str, str] = {}
        if (self._known or self._bounded) and (said := "; ".join(self._explain())):
            notes |= dict.fromkeys(_KEYS, said if self._known else f"not measured: {said}")
        elif not self._known and self._priced_by:
            notes |= dict.fromkeys(_KEYS, self._explain_unpriced(self._priced_by))
        if self._judged_unknown:
            what = "the judge's model has no price, or its server reports no usage"
            rows = f"for {self._judged_unknown:,} of {self._judged + self._judged_unknown:,} ratings "
            notes["judge_cost_usd"] = f"uncertain: not known {rows}({what})" if self._judged else f"not priced: {what}"
        return notes | self._embeddings.notes() | self._timed_out.notes()

    def _explain(self) -> list[str]:
        said = []
        priced_by = self._priced_by or {}
        if bounds := self._bounds():
            low, high = (f"${bounds[key]:,.4g}" for key in _BOUNDS)
            said.append(f"uncertain: some calls fit no single row; $ / 1k is between {low} and {high}")
        if self._swapped and self._known:
            models = ", ".join(f"{model} ({count_things(rows, 'row')})" for model, rows in self._swapped.most_common(3))
            asked = f"${self._asked / self._known * 1000:,.4g}"
            model = priced_by.get("model")
            said.append(f"priced at the models that the proxy asked, {models}; at {model}, $ / 1k would be {asked}")
        if self._repeated:
            said.append(f"without {self._repeated:,} answers that needed no call only because --repeats asked again")
        if self._unpaid:
            priced = "the models' list" if self._swapped else f"{priced_by.get('model')} list"
            said.append(f"estimated at {priced} prices: no API was called")
        if priced_by.get("how", "exact") != "exact":
            said.append(f"{priced_by.get('model')} priced as {priced_by.get('entry')} ({priced_by['how']})")
        if self._estimated:
            said.append(
                f"an estimate: {self._estimated:,} of {self._known:,} rows by tokens that we counted, not billed"
            )
        if self._unknown:
            failed = f" ({self._failed_unknown:,} of them failed)" if self._failed_unknown else ""
            rows, verb = count_things(self._unknown, "row"), "is" if self._unknown == 1 else "are"
            said.append(f"{rows} whose cost is not known {verb} left out{failed}")
        return said

    @staticmethod
    def _explain_unpriced(priced_by: Mapping[str, Any]) -> str:
        if priced_by.get("entry") is not None:
            return "not measured: the token usage of no row is known"
        model = priced_by.get("model")
        what = f"no price for {model!r}" if model else "the model is unknown"
        return f"not priced: {what}; add one to a file for --prices"


@dataclass(frozen=True)
class DollarCost(RunningMetric):
    """Dollars spent in all, for a thousand examples, and for each passing example; lower is better.

    Failed rows and rows that did not pass count too. Rows with unknown cost are left out, and a note says so. If calls
    fit no single row, or came late, `cost_per_1k_usd_best` counts none of them, and `cost_per_1k_usd_worst` all. If a
    proxy asked another model, that model's price applies; `cost_per_1k_as_asked_usd` uses the price of the requested
    model. The costs of a judge and of embeddings are separate numbers. The cost of a model without a price is unknown,
    not 0. If the API reports its prompt cache, there are also the hit rate and the dollars without a cache. For
    conversations behind a tap, the cache-adjusted dollars assume a cache that hits every repeated prefix.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "dollar-cost"
    tally = DollarTally


class _Embeddings:
    """Sums over the calls for embeddings that a tap saw."""

    def __init__(self) -> None:
        self._dollars = 0.0
        self._known = self._unknown = self._tokens = 0
        self._models: dict[str, None] = {}

    def add(self, row: EvalRow) -> None:
        calls = row.metadata.get("embedding_usage")
        if not isinstance(calls, list):
            return
        cost = read_fact(row, "embedding_cost_usd")
        if cost is not None:
            self._known += len(calls)
            self._dollars += cost
            return
        self._unknown += len(calls)
        self._tokens += sum(read_token_count(call.get("prompt_tokens")) or 0 for call in calls)
        self._models |= dict.fromkeys(str(call.get("model")) for call in calls)

    def result(self) -> dict[str, float]:
        """Return the dollars so far: NaN if nothing is priced, empty without embeddings."""
        if not self._known and not self._unknown:
            return {}
        return {EMBEDDING_COST_USD: self._dollars if self._known else math.nan}

    def notes(self) -> dict[str, str]:
        if not self._unknown:
            return {}
        many = count_things(self._unknown, "call")
        calls = f"{many} for embeddings ({', '.join(self._models)}; {self._tokens:,} tokens)"
        said = f"without {calls} of unknown price" if self._known else f"not priced: {calls}; they are in no other cost"
        return {EMBEDDING_COST_USD: said}


_CACHE_COSTS = {
    "uncached_cost_usd": "cost_per_1k_uncached_usd",
    "cache_adjusted_cost_usd": "cost_per_1k_cache_adjusted_usd",
}
_OF_CACHE = frozenset({"billed_usage", "turn_usage", "cached_tokens", *_CACHE_COSTS})


class _Cache:
    """Use of the provider's prompt cache, as its API reports it, and the dollars without a cache and with a perfect
    one."""

    def __init__(self) -> None:
        self._prompt = self._cached = 0
        self._costs: dict[str, list[float]] = {key: [] for key in _CACHE_COSTS}

    def add(self, row: EvalRow) -> None:
        if _OF_CACHE.isdisjoint(row.metadata):
            return
        for usage in list_usages(row.metadata):
            prompt, cached = (read_token_count(usage.get(key)) for key in ("prompt_tokens", "cached_tokens"))
            if prompt is not None and cached is not None:
                self._prompt += prompt
                self._cached += min(cached, prompt)
        for key, costs in self._costs.items():
            if (cost := read_fact(row, key)) is not None:
                costs.append(cost)

    def result(self) -> dict[str, float]:
        """Return the cache numbers; empty if no API reported them."""
        rate = {CACHE_HIT_RATE: self._cached / self._prompt} if self._prompt else {}
        known = {_CACHE_COSTS[key]: math.fsum(costs) / len(costs) * 1000 for key, costs in self._costs.items() if costs}
        return rate | known


class _TimedOut:
    """Sums over the attempts that timed out: the server may have billed them without reporting it."""

    def __init__(self) -> None:
        self._attempts = self._unbounded = 0
        self._most = 0.0

    def add(self, row: EvalRow) -> None:
        attempts = read_token_count(row.metadata.get("timed_out_attempts"))
        if not attempts:
            return
        self._attempts += attempts
        most = read_fact(row, "timed_out_cost_usd")
        if most is None:
            self._unbounded += attempts
        else:
            self._most += most

    def result(self) -> dict[str, float]:
        """Return the attempts and an upper bound of their cost; empty if none timed out."""
        if not self._attempts:
            return {}
        return {"timed_out_attempts": self._attempts, TIMED_OUT_COST_USD: math.nan if self._unbounded else self._most}

    def notes(self) -> dict[str, str]:
        if not self._attempts:
            return {}
        bound = (
            "an upper bound needs --max-tokens and a price" if self._unbounded else f"at most ${self._most:.4f} more"
        )
        said = f"{count_things(self._attempts, 'attempt')} may have been billed anyway ({bound})"
        return {TIMED_OUT_COST_USD: said}


class RatioTally:
    """Sums of squares and products; whole numbers, so that nothing is lost to rounding."""

    def __init__(self) -> None:
        self._rows = self._billed = self._both = self._counted = 0

    def add(self, row: EvalRow) -> None:
        if not row.upstream_tokens:
            return
        metadata = row.metadata
        billed = read_token_count(metadata.get("billed_prompt_tokens"))
        if billed is None and "upstream_calls" not in metadata:
            billed = read_token_count(metadata.get("prompt_tokens"))  # the usage of a reader behind a compressor
        counted = None if metadata.get("lost_upstream_calls") else row.upstream_tokens  # the bill includes lost calls
        if row.error is None and billed is not None and counted:
            self._rows += 1
            self._billed += billed * billed
            self._both += billed * counted
            self._counted += counted * counted

    def result(self) -> dict[str, float]:
        if not self._counted or not self._billed:
            return {}
        left = self._billed * self._counted - self._both * self._both
        return {
            "billed_to_counted": self._both / self._counted,
            "billed_to_counted_residual": math.sqrt(max(0, left) / (self._billed * self._counted)),
            "billed_to_counted_rows": float(self._rows),
        }


@dataclass(frozen=True)
class BilledRatio(RunningMetric):
    """Billed prompt tokens for each token that we counted in the same prompts, by least squares through zero.

    An estimate of dollars from counted tokens is off by about this factor. The residual is the part of the bills that
    the ratio does not explain (the root of the remaining squares, as a share of the bills); near 0, one factor fits
    all.
    """

    name = "billed-ratio"
    tally = RatioTally
