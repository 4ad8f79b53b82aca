"""The price of one model, the cost of a request by the usage that its server reported, and the cost of a row.

Four kinds of prompt tokens have separate prices: plain input, input read from the provider's cache, and input written
to the cache for five minutes or for an hour. A long prompt may put the whole request into a more expensive tier. A row
is priced by the usage that a tap saw, by the usage in the reply, or by an estimate from counted tokens.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.utils.tokens import read_token_count, read_token_counts

if TYPE_CHECKING:
    from context_bench.pricing.price_table import Prices


_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")


CACHE_MINIMUM = 1024
"""Default length of the shortest prompt that a provider caches, in tokens."""
CACHE_STEP = 128  # step, in tokens, of cached prefixes whose writing is free


@dataclass(frozen=True)
class Price:
    """Prices of one model, in dollars for a million tokens."""

    input: float
    output: float  # reasoning included
    cached_input: float | None = None  # read from a cache; None is `input`
    cache_write_5m: float | None = None  # written to a cache for five minutes; None is `input`
    cache_write_1h: float | None = None  # the same for an hour; None is `cache_write_5m`
    tiers: tuple[Tier, ...] = ()  # other prices for requests with long prompts
    cache_minimum: int = CACHE_MINIMUM  # tokens of the shortest prompt that the provider caches

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached_input", "cache_write_5m", "cache_write_1h"):
            value = getattr(self, name)
            if value is None and name not in ("input", "output"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise UsageError(f"{name} must be a number of dollars of at least 0 (got {value!r})")
        if type(self.cache_minimum) is not int or self.cache_minimum < 0:
            raise UsageError(f"cache_minimum must be a number of tokens of at least 0 (got {self.cache_minimum!r})")

    def cost(self, usage: Mapping[str, Any]) -> float | None:
        """Compute the dollars of a request from its usage; None if the server reported no usage.

        In a conversation, each turn (`turn_usage`) is a separate request, whose prompt decides its tier.
        """
        turns = usage.get("turn_usage")
        if turns and isinstance(turns, list) and all(isinstance(turn, Mapping) for turn in turns):
            return self.sum_costs(turns)
        return self._price_request(usage)

    def adjust(self, turns: Sequence[Sequence[int]]) -> float:
        """Compute the dollars of a conversation as if the provider cached its prefixes, whatever the API reports.

        If a model charges for cache writes, the end of each request is cached, as if an agent set a breakpoint there;
        other models cache in steps. `turns` has three numbers of tokens for each request: the prompt, the part of the
        prompt that repeats the previous request, and the reply.
        """
        total, ends = 0.0, list[int]()  # where requests ended that are still a prefix of the next
        for prompt, kept, reply in turns:
            ends = [end for end in ends if end <= kept]
            writes = self.cache_write_5m is not None
            read = max(ends, default=0) if writes else kept // CACHE_STEP * CACHE_STEP
            read = read if read >= self.cache_minimum else 0
            total += self.dollars(prompt, reply, min(read, prompt), max(0, prompt - read) if writes else 0)
            ends.append(prompt)
        return total

    def sum_costs(self, usages: list[Any]) -> float | None:
        """Sum the dollars of several requests; None if the cost of one is unknown."""
        total = 0.0
        for usage in usages:
            cost = self._price_request(usage)
            if cost is None:
                return None
            total += cost
        return total

    def _price_request(self, usage: Mapping[str, Any]) -> float | None:
        prompt, completion, cached, written, for_an_hour = read_token_counts(usage, _COUNTS)
        if prompt is None or completion is None:
            return None
        cached = min(prompt, cached or 0)
        written = min(prompt - cached, written or 0)
        for_an_hour = min(written, for_an_hour or 0)
        return self.dollars(prompt, completion, cached, written - for_an_hour, for_an_hour)

    def dollars(
        self, prompt: float, completion: float, cached: float = 0, written_5m: float = 0, written_1h: float = 0
    ) -> float:
        """Compute the dollars for these tokens; cached and written tokens are part of the prompt."""
        price = self.at(prompt)
        read = price.input if price.cached_input is None else price.cached_input
        write = price.input if price.cache_write_5m is None else price.cache_write_5m
        write_1h = write if price.cache_write_1h is None else price.cache_write_1h
        plain = prompt - cached - written_5m - written_1h
        total = price.input * plain + read * cached + write * written_5m + write_1h * written_1h
        return (total + price.output * completion) / 1e6

    def at(self, prompt: float) -> Price:
        """Return the prices for a prompt of this many tokens."""
        if not self.tiers:
            return self
        reached = [tier for tier in self.tiers if prompt > tier.above]
        return max(reached, key=lambda tier: tier.above).price if reached else self

    @classmethod
    def from_dict(cls, listed: Mapping[str, Any]) -> Price:
        """Read the dict of `to_dict`."""
        plain = {name: value for name, value in listed.items() if not name.startswith("above_")}
        above = {name: value for name, value in listed.items() if name.startswith("above_")}
        tiers = [Tier(int(key.removeprefix("above_")[:-1]) * 1000, cls.from_dict(each)) for key, each in above.items()]
        return cls(**plain, tiers=tuple(tiers))

    def to_dict(self) -> dict[str, Any]:
        """Return the prices in the form of a price file."""
        values = {name: getattr(self, name) for name in ("input", "cached_input", "cache_write_5m", "cache_write_1h")}
        listed = {name: value for name, value in {**values, "output": self.output}.items() if value is not None}
        if self.cache_minimum != CACHE_MINIMUM:
            listed["cache_minimum"] = self.cache_minimum
        return listed | {f"above_{tier.above // 1000}k": tier.price.to_dict() for tier in self.tiers}


@dataclass(frozen=True)
class Tier:
    """Prices of requests whose prompt has more than `above` tokens; they apply to all tokens of the request."""

    above: int
    price: Price


# --- rows


COSTS = (
    *("cost_usd", "cost_is_estimate", "cost_as_asked_usd", "least_cost_usd", "most_cost_usd"),
    *("uncached_cost_usd", "cache_adjusted_cost_usd"),
    *("embedding_cost_usd", "judge_cost_usd", "timed_out_cost_usd"),
)
"""The fields that `price_row` sets on a row."""

_JUDGES = frozenset({"llm-judge"})
"""Evaluators that pay for a model; a row's metadata has the details of each under the evaluator's name."""

PRICED_BY_CALL = _JUDGES | {"billed_usage", "counted_usage", "least_usage", "most_usage", "embedding_usage"}
"""Metadata with calls to other models, which may have a price even if the system's model has none."""


def price_row(
    prices: Prices, price: Price | None, metadata: Mapping[str, Any], upstream_tokens: int | None
) -> dict[str, Any]:
    """Return the dollars of a row; empty if the price or the tokens are unknown.

    `price` is the price of the model that the system asks; `upstream_tokens` is our own count of the tokens that the
    model read.
    """
    if price is None and PRICED_BY_CALL.isdisjoint(metadata):
        return {}
    costs = {} if metadata.get("saved_by_repeating") else _price_answer(prices, price, metadata, upstream_tokens)
    if "cost_usd" in costs and any(call.get("cached_tokens") is not None for call in list_usages(metadata)):
        costs["uncached_cost_usd"] = _price_answer(prices, price, _drop_cache(metadata), upstream_tokens)["cost_usd"]
    if price is not None and isinstance(turns := metadata.get("prefix_tokens"), list):
        costs["cache_adjusted_cost_usd"] = price.adjust(turns)
    for key in ("least", "most"):
        bounded = metadata.get(f"{key}_usage")
        if isinstance(bounded, list) and (cost := _sum_bills(prices, price, bounded)) is not None:
            costs[f"{key}_cost_usd"] = cost
    return costs | _price_embeddings(prices, metadata) | price_judges(prices, metadata)


def list_usages(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """List the reported usage of each call of a row, from the tap, from each turn, or from the only call."""
    told = metadata.get("billed_usage") if "upstream_calls" in metadata else metadata.get("turn_usage") or [metadata]
    return [each for each in told if isinstance(each, Mapping)] if isinstance(told, list) else []


_OF_CACHE = ("cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")


def _drop_cache(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata as if nothing had been read from a cache or written to it."""
    plain = {key: value for key, value in metadata.items() if key not in _OF_CACHE}
    for key in ("billed_usage", "turn_usage"):
        if isinstance(calls := plain.get(key), list):
            plain[key] = [_drop_cache(call) if isinstance(call, Mapping) else call for call in calls]
    return plain


def _price_embeddings(prices: Prices, metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the dollars of a system's embeddings; empty if one cost is unknown."""
    calls = metadata.get("embedding_usage")
    if not isinstance(calls, list):
        return {}
    known = [(prices.of(call.get("model")), read_token_count(call.get("prompt_tokens"))) for call in calls]
    spent = [price.dollars(tokens, 0) for price, tokens in known if price is not None and tokens is not None]
    return {"embedding_cost_usd": sum(spent)} if len(spent) == len(calls) else {}


def price_judges(prices: Prices, metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the dollars of a row's judges; empty if none was asked or a price is unknown."""
    if _JUDGES.isdisjoint(metadata):
        return {}
    spent = [cost for name in _JUDGES if (cost := _price_judge(prices, metadata.get(name))) is not None]
    return {"judge_cost_usd": sum(spent)} if spent else {}


def _sum_bills(prices: Prices, price: Price | None, bills: list[Any]) -> float | None:
    """Sum the dollars of calls, each at the price of its model; None if one price is unknown."""
    total = 0.0
    for bill in bills:
        own = prices.of(bill["model"]) if "model" in bill else price
        cost = own.sum_costs([bill]) if own is not None else None
        if cost is None:
            return None
        total += cost
    return total


def _price_answer(
    prices: Prices, price: Price | None, metadata: Mapping[str, Any], upstream_tokens: int | None
) -> dict[str, Any]:
    bills, counted = metadata.get("billed_usage"), metadata.get("counted_usage")
    for calls in (bills, counted):  # all calls that a model answered, including the proxy's own
        if isinstance(calls, list) and any(
            "model" in bill for bill in calls
        ):  # the proxy asked another model than the client
            cost, asked = _sum_bills(prices, price, calls), price.sum_costs(calls) if price is not None else None
            estimate = {"cost_is_estimate": True} if calls is counted else {}
            known = {} if cost is None else {"cost_usd": cost, **estimate}
            return known if asked is None else {**known, "cost_as_asked_usd": asked}
    if price is None:
        return {}
    tapped = "upstream_calls" in metadata
    cost = None
    if isinstance(bills, list):
        cost = price.sum_costs(bills)
    elif not tapped:  # behind a tap the proxy's own usage is not the bill: it may omit the proxy's own calls
        cost = price.cost(metadata)
    if cost is not None:
        return {"cost_usd": cost}
    written = read_token_count(metadata.get("written_tokens" if tapped else "response_tokens"))
    if upstream_tokens is None or written is None:
        return {}
    # All tokens of answers that the proxy lost are priced as input: the least that they can cost.
    lost = read_token_count(metadata.get("lost_upstream_tokens")) or 0
    calls = max(1, read_token_count(metadata.get("upstream_calls")) or 1)
    each = price.dollars((upstream_tokens + lost) / calls, written / calls)
    return {"cost_usd": each * calls, "cost_is_estimate": True}


def _price_judge(prices: Prices, details: Any) -> float | None:
    if not isinstance(details, Mapping) or not isinstance(details.get("model"), str):
        return None
    price = prices.of(details["model"])
    return None if price is None else price.cost(details)


@dataclass(frozen=True)
class Saving:
    """The savings of a system. Claim savings only if the verdict on the system's quality allows the claim."""

    dollars: float  # in all, over the pairs; negative when the system costs more
    per_1k: float | None  # for a thousand examples; None without a pair
    share: float | None  # of what the baseline costs; None when that is nothing
    pairs: int  # examples whose cost is known on both sides
    left_out: int  # all other examples


def find_saving(costs: Mapping[Hashable, float | None], baseline: Mapping[Hashable, float | None]) -> Saving:
    """Compare the costs of a system and a baseline, example by example (and repeat); a cost of None is unknown."""
    both = [(cost, baseline.get(key)) for key, cost in costs.items()]
    pairs = [(cost, before) for cost, before in both if cost is not None and before is not None]
    saved = math.fsum(before - cost for cost, before in pairs)
    spent = math.fsum(before for _, before in pairs)
    return Saving(
        dollars=saved,
        per_1k=saved / len(pairs) * 1000 if pairs else None,
        share=saved / spent if spent else None,
        pairs=len(pairs),
        left_out=len(costs.keys() | baseline.keys()) - len(pairs),
    )
