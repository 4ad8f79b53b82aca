"""What a row learns from the tap: the tokens on both sides of the proxy, and what it did in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from context_bench.tap.bills import read_bills
from context_bench.tap.completions import read_completion
from context_bench.tap.exchanges import (
    asks,
    find_answers,
    is_answered,
    is_known,
    is_same_to_a_model,
)
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
    if any(exchange.get("failed") for exchange in exchanges):
        return _bill_of_failure(exchanges, count)
    calls = [call for exchange in exchanges for call in exchange["calls"]]
    sent = sum(count_request(exchange["sent"], count) for exchange in exchanges)
    numbers: dict[str, Any] = {
        "sent_tokens": sent,
        "downstream_tokens": sent,
        "upstream_calls": len(calls),
        "extra_upstream_calls": sum(max(0, len(exchange["calls"]) - 1) for exchange in exchanges),
        "alone": all(exchange.get("alone", False) for exchange in exchanges),
        **_lost(exchanges, count),
    }
    if all(map(is_known, exchanges)):
        numbers |= _upstream(exchanges, calls, sent, count) | _times(exchanges)
    elif not any(map(_is_silent, exchanges)):
        numbers |= _bounds(exchanges, count)
    facts = {
        "failed_upstream_calls": sum(call["status"] >= 300 for call in calls),
        "earlier_upstream_calls": sum(exchange["earlier_calls"] for exchange in exchanges),
        "exchanges_without_call": sum(not exchange["calls"] for exchange in exchanges),
        "unmatched_calls": sum(exchange["unmatched"] for exchange in exchanges),
    }
    numbers |= {key: value for key, value in facts.items() if value}
    return numbers | _additions(exchanges) | _claims(exchanges) | _answers(exchanges, count)


def _bill_of_failure(exchanges: Sequence[Exchange], count: Tokenizer) -> dict[str, Any]:
    """What an example cost that came to nothing: every attempt, on both sides, as none of them gave the answer."""
    calls = [call for exchange in exchanges for call in (*exchange.get("lost_calls", ()), *exchange["calls"])]
    sizes = [(count_request(exchange["sent"], count), exchange.get("attempts", 1)) for exchange in exchanges]
    numbers: dict[str, Any] = {
        "sent_tokens": sum(tokens for tokens, attempts in sizes if attempts),
        "downstream_tokens": sum(tokens * attempts for tokens, attempts in sizes),
        "upstream_calls": len(calls),
    }
    if any(exchange["unmatched"] for exchange in exchanges):
        return numbers
    read = sum(_call_tokens(call, exchange["sent"], count) for exchange in exchanges for call in _paid(exchange))
    if (bills := read_bills(calls)) is not None:
        numbers["billed_usage"] = bills
    return numbers | {"upstream_tokens": read} | _written(filter(is_answered, calls), count)


def _paid(exchange: Exchange) -> list[Call]:
    """The calls that a model answered, those of earlier attempts included."""
    return [call for call in (*exchange.get("lost_calls", ()), *exchange["calls"]) if is_answered(call)]


def _lost(exchanges: Iterable[Exchange], count: Tokenizer) -> dict[str, Any]:
    """Calls that a model answered and the proxy lost, so that our client had to ask again."""
    lost = [(exchange["sent"], call) for exchange in exchanges for call in exchange.get("lost_calls", ())]
    read = sum(_call_tokens(call, sent, count) for sent, call in lost)
    written = _written((call for _, call in lost), count).get("written_tokens", 0)
    return {"lost_upstream_calls": len(lost), "lost_upstream_tokens": read + written}


def _upstream(exchanges: Sequence[Exchange], calls: Sequence[Call], sent: int, count: Tokenizer) -> dict[str, Any]:
    """What all calls come to."""
    answered = [(exchange["sent"], call) for exchange in exchanges for call in exchange["calls"] if is_answered(call)]
    upstream = sum(_call_tokens(call, own, count) for own, call in answered)
    numbers: dict[str, Any] = {
        "upstream_tokens": upstream,
        "untouched": all(map(_is_untouched, exchanges)),
        "cached_answer": any(not exchange["calls"] for exchange in exchanges),
        **_written((call for _, call in answered), count),
    }
    if sent:
        numbers["prompt_savings"] = 1 - upstream / sent
    bills = read_bills(calls)
    if bills:
        numbers["billed_prompt_tokens"] = sum(bill["prompt_tokens"] for bill in bills)
    lost = read_bills(call for exchange in exchanges for call in exchange.get("lost_calls", ()))
    return numbers if bills is None or lost is None else {**numbers, "billed_usage": [*bills, *lost]}


def _bounds(exchanges: Iterable[Exchange], count: Tokenizer) -> dict[str, Any]:
    """Tokens of the calls that are certainly this row's, and of those that may be; nothing where one is unreadable."""
    least = most = 0
    for exchange in exchanges:
        for call in exchange["calls"]:
            if read_prompt(call["body"]) is None:
                return {}
            tokens = _call_tokens(call, exchange["sent"], count)
            least += tokens if is_answered(call) else 0
            most += 0 if call["status"] else tokens  # it is under way: it may still be answered
        most += sum(count_request(body, count) for body in exchange.get("unmatched_bodies", ()))
    return {"least_upstream_tokens": least, "most_upstream_tokens": least + most}


def _answers(exchanges: Sequence[Exchange], count: Tokenizer) -> dict[str, Any]:
    """What depends on which calls gave the answers."""
    answers = find_answers(exchanges)
    if isinstance(answers, str):
        return {} if any(map(_is_silent, exchanges)) else {"answer_unknown": answers}
    if any(len(calls) > 1 for calls in answers):  # a prompt in parts has no one prefix
        return {}
    return prefix_stability([call["body"] for calls in answers for call in calls], count)


def _is_silent(exchange: Exchange) -> bool:
    return bool(exchange.get("silent"))


def _written(calls: Iterable[Call], count: Tokenizer) -> dict[str, Any]:
    """What a model wrote in calls that it answered; nothing where one of the answers cannot be read."""
    completions = [read_completion(call["reply"]) for call in calls]
    known = [completion.tokens(count) for completion in completions if completion is not None]
    return {"written_tokens": sum(known)} if len(known) == len(completions) else {}


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


def _call_tokens(call: Call, sent: str, count: Tokenizer) -> int:
    """The size of a call's prompt; of one that means the same as what was sent, however spelled, the size of that."""
    return count_request(sent if is_same_to_a_model(call["body"], sent) else call["body"], count)


def _is_untouched(exchange: Exchange) -> bool:
    """Whether the model got exactly what was sent: one call, which means the same to a model."""
    answered = [call for call in exchange["calls"] if is_answered(call)]
    return len(answered) == 1 and is_same_to_a_model(answered[0]["body"], exchange["sent"])


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
