"""What a row learns from the tap: the tokens on both sides of the proxy, and what it did in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.tap.answering import dialect_of
from context_bench.tap.prefix import prefix_stability
from context_bench.tap.prompt import Prompt, read_prompt
from context_bench.tap.vendors import claimed_tokens_saved
from context_bench.utils.tokens import Tokenizer

__all__ = ["tapped_numbers"]

Exchange = Mapping[str, Any]
Call = Mapping[str, Any]


def tapped_numbers(exchanges: Sequence[Exchange], count: Tokenizer) -> dict[str, Any]:
    """The numbers of one row.

    `upstream_tokens` sums the prompts of every call that was answered; it is missing when none was seen though
    some request at the tap could not be told apart: then it is not known.
    """
    exchanges = [{**exchange, "calls": [call for call in exchange["calls"] if _asks(call)]} for exchange in exchanges]
    downstream = sum(_tokens(exchange["sent"], count) for exchange in exchanges)
    calls = [call for exchange in exchanges for call in exchange["calls"]]
    numbers: dict[str, Any] = {
        "downstream_tokens": downstream,
        "upstream_calls": len(calls),
        "extra_upstream_calls": max(0, len(calls) - len(exchanges)),
        "untouched": all(map(_is_untouched, exchanges)),
        "upstream_seconds": sum(_busy(exchange["calls"]) for exchange in exchanges),
        "proxy_overhead": sum(max(0.0, each["seconds"] - _busy(each["calls"])) for each in exchanges),
    }
    if all(exchange["calls"] or not exchange["unmatched"] for exchange in exchanges):
        upstream = sum(_tokens(call["body"], count) for call in calls if _is_answered(call))
        numbers["upstream_tokens"] = upstream
        if downstream:
            numbers["prompt_savings"] = 1 - upstream / downstream
    failed = sum(not _is_answered(call) for call in calls)
    earlier = sum(exchange["earlier_calls"] for exchange in exchanges)
    unmatched = sum(not exchange["calls"] and bool(exchange["unmatched"]) for exchange in exchanges)
    facts = {"failed_upstream_calls": failed, "earlier_upstream_calls": earlier, "unmatched_exchanges": unmatched}
    numbers |= {key: value for key, value in facts.items() if value}
    numbers |= _additions(exchanges) | _claims(exchanges) | _first_token(exchanges)
    return numbers | prefix_stability([body for each in exchanges if (body := _continuing(each)) is not None], count)


def _tokens(body: str, count: Tokenizer) -> int:
    prompt = read_prompt(body)
    return prompt.tokens(count) if prompt else 0


def _asks(call: Call) -> bool:
    """Whether a model was to read it: counting tokens or embedding a text is something else."""
    return dialect_of(call["path"]) is not None


def _is_answered(call: Call) -> bool:
    return bool(200 <= call["status"] < 300)


def _is_untouched(exchange: Exchange) -> bool:
    """Whether the model got exactly what was sent: one call, with the same messages and tools as JSON."""
    answered = [call for call in exchange["calls"] if _is_answered(call)]
    return len(answered) == 1 and read_prompt(answered[0]["body"]) == read_prompt(exchange["sent"])


def _additions(exchanges: Iterable[Exchange]) -> dict[str, Any]:
    """The tools that the proxy put in."""
    added: dict[str, None] = {}
    for exchange in exchanges:
        own = set((read_prompt(exchange["sent"]) or Prompt()).tool_names())
        for call in exchange["calls"]:
            names = (read_prompt(call["body"]) or Prompt()).tool_names()
            added.update(dict.fromkeys(name for name in names if name not in own))
    return {"injected_tools": list(added)} if added else {}


def _claims(exchanges: Iterable[Exchange]) -> dict[str, Any]:
    claims = [claimed_tokens_saved(exchange["claims"]) for exchange in exchanges]
    known = [claim for claim in claims if claim is not None]
    return {"claimed_tokens_saved": sum(known)} if known else {}


def _first_token(exchanges: Iterable[Exchange]) -> dict[str, Any]:
    """How much later a first token came out of the proxy than it went in."""
    delays = []
    for exchange in exchanges:
        firsts = [call["first"] for call in exchange["calls"] if call["first"] is not None]
        if exchange["first_token"] is not None and firsts:
            delays.append(max(0.0, exchange["first_token"] - _busy(exchange["calls"], until=max(firsts))))
    return {"first_token_overhead": sum(delays) / len(delays)} if delays else {}


def _busy(calls: Iterable[Call], until: float = float("inf")) -> float:
    """Seconds in which at least one call was under way."""
    total, reached = 0.0, float("-inf")
    for call in sorted(calls, key=lambda call: call["started"]):
        end = min(until, call["started"] if call["ended"] is None else call["ended"])
        begin = max(reached, call["started"])
        total += max(0.0, end - begin)
        reached = max(reached, end)
    return total


def _continuing(exchange: Exchange) -> str | None:
    """The request that carries the conversation on: the last one that was answered."""
    bodies = [call["body"] for call in exchange["calls"] if _is_answered(call)]
    return bodies[-1] if bodies else None
