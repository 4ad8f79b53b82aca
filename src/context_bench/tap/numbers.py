"""What a row learns from the tap: the tokens on both sides of the proxy, and what it did in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.tap.exchanges import answering_call, asks, billed_prompt_tokens, is_answered, is_known
from context_bench.tap.prefix import prefix_stability
from context_bench.tap.prompt import Prompt, read_prompt
from context_bench.tap.vendors import claimed_tokens_saved
from context_bench.utils.tokens import Tokenizer

__all__ = ["count_request", "tapped_numbers"]

Exchange = Mapping[str, Any]
Call = Mapping[str, Any]


def tapped_numbers(exchanges: Sequence[Exchange], count: Tokenizer) -> dict[str, Any]:
    """The numbers of one row.

    What depends on all calls of the example is missing where a request at the tap may be one of them and cannot be
    told, where nothing has reached the tap so far, and where a call is in a form that cannot be read.
    """
    count = _remembering(count)
    exchanges = [{**exchange, "calls": [call for call in exchange["calls"] if asks(call)]} for exchange in exchanges]
    calls = [call for exchange in exchanges for call in exchange["calls"]]
    numbers: dict[str, Any] = {
        "downstream_tokens": sum(count_request(exchange["sent"], count) for exchange in exchanges),
        "upstream_calls": len(calls),
        "extra_upstream_calls": max(0, len(calls) - len(exchanges)),
    }
    if any(exchange.get("failed") for exchange in exchanges):  # attempts of ours cannot be told from calls of the proxy
        tokens = sum(count_request(call["body"], count) for call in calls if is_answered(call))
        known = not any(exchange["unmatched"] for exchange in exchanges)
        return {"upstream_calls": len(calls), **({"upstream_tokens": tokens} if known else {})}
    if all(map(is_known, exchanges)):
        numbers |= _upstream(exchanges, calls, numbers["downstream_tokens"], count) | _times(exchanges)
    facts = {
        "failed_upstream_calls": sum(call["status"] >= 300 for call in calls),
        "earlier_upstream_calls": sum(exchange["earlier_calls"] for exchange in exchanges),
        "exchanges_without_call": sum(not exchange["calls"] for exchange in exchanges),
        "unmatched_calls": sum(exchange["unmatched"] for exchange in exchanges),
    }
    numbers |= {key: value for key, value in facts.items() if value}
    numbers |= _additions(exchanges) | _claims(exchanges)
    bodies = [call["body"] for exchange in exchanges if (call := answering_call(exchange)) is not None]
    return numbers | prefix_stability(bodies, count)


def _upstream(exchanges: Sequence[Exchange], calls: Sequence[Call], sent: int, count: Tokenizer) -> dict[str, Any]:
    """What all calls come to."""
    upstream = sum(count_request(call["body"], count) for call in calls if is_answered(call))
    numbers: dict[str, Any] = {"upstream_tokens": upstream, "untouched": all(map(_is_untouched, exchanges))}
    if sent:
        numbers["prompt_savings"] = 1 - upstream / sent
    billed = billed_prompt_tokens(calls)
    return numbers if billed is None else {**numbers, "billed_prompt_tokens": billed}


def _remembering(count: Tokenizer) -> Tokenizer:
    """The same for the texts of one row, most of which stand on both sides: each is counted once."""
    known: dict[str, int] = {}

    def counted(text: str) -> int:
        if text not in known:
            known[text] = count(text)
        return known[text]

    return counted


def count_request(body: str | Mapping[str, Any], count: Tokenizer) -> int:
    """Count the tokens of what a request asks a model to read; 0 when it holds no prompt."""
    prompt = read_prompt(body)
    return prompt.tokens(count) if prompt else 0


def _is_untouched(exchange: Exchange) -> bool:
    """Whether the model got exactly what was sent: one call, with the same messages and tools as JSON."""
    answered = [call for call in exchange["calls"] if is_answered(call)]
    return len(answered) == 1 and read_prompt(answered[0]["body"]) == read_prompt(exchange["sent"])


def _times(exchanges: Sequence[Exchange]) -> dict[str, Any]:
    """How long the upstream was busy, and what came on top; nothing where the end of a call was not seen."""
    if any(call["ended"] is None for exchange in exchanges for call in exchange["calls"]):
        return {}
    busy = [_busy(exchange["calls"]) for exchange in exchanges]
    overhead = sum(max(0.0, exchange["seconds"] - seconds) for exchange, seconds in zip(exchanges, busy))
    return {"upstream_seconds": sum(busy), "proxy_overhead": overhead, **_first_token(exchanges)}


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
        end = min(until, call["ended"])
        begin = max(reached, call["started"])
        total += max(0.0, end - begin)
        reached = max(reached, end)
    return total
