"""Facts of a row from the tap: tokens on both sides of the proxy, and the proxy's changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any

from context_bench.traffic.calls import Call, read_claimed_tokens
from context_bench.traffic.exchanges import Exchange, find_answers, read_bills, read_call_bill
from context_bench.traffic.prefix import measure_prefix
from context_bench.utils.tokens import Tokenizer
from context_bench.wire.forms import Bill, read_bill, read_prompt
from context_bench.wire.prompts import Prompt, read_document


@dataclass(slots=True)
class RowFacts:
    """Facts of one row; None if not measured or not applicable."""

    sent_tokens: int = 0  # tokens sent by our client, each request once
    downstream_tokens: int = 0  # the same with all attempts, if the example failed
    upstream_calls: int = 0  # calls at the tap that ask a model
    extra_upstream_calls: int | None = None  # calls in addition to one for each request
    alone: bool | None = None  # whether no other request of the system was in flight
    # calls whose answers the proxy lost, so that our client had to retry
    lost_upstream_calls: int | None = None
    lost_upstream_tokens: int | None = None  # tokens read and written in lost calls
    upstream_tokens: int | None = None  # tokens read by models in all answered calls
    written_tokens: int | None = None  # tokens written by models
    untouched: bool | None = None  # whether each request reached the model unchanged
    # changed settings and tools in the calls that gave the answer
    changed_settings: list[str] | None = None
    answered_without_call: bool | None = None  # whether an answer came without a call at the tap
    cached_answer: bool | None = None  # whether the proxy reported such an answer as cached
    # whether an answer came without a call only because the run repeats requests
    saved_by_repeating: bool | None = None
    prompt_savings: float | None = None  # share of sent tokens that no model read
    billed_prompt_tokens: int | None = None  # prompt tokens by the API's own count, with lost calls
    # the API's own counts of each call, with lost calls; None if any call lacks them
    billed_usage: list[Bill] | None = None
    # the same by our own count, if the proxy swapped the model and the API gave no usage
    counted_usage: list[Bill] | None = None
    # model and tokens of each call for embeddings, which no other bill includes
    embedding_usage: list[dict[str, Any]] | None = None
    upstream_seconds: float | None = None  # time with at least one call in flight
    proxy_overhead: float | None = None  # seconds in addition to that
    first_token_overhead: float | None = None  # delay of the first token in the proxy
    # if not all calls are known: tokens of the calls that certainly belong to this row,
    least_upstream_tokens: int | None = None
    most_upstream_tokens: int | None = None  # and with those that may belong to it
    # usage of the calls that certainly belong to this row, counted if the API gave none,
    least_usage: list[Bill] | None = None
    most_usage: list[Bill] | None = None  # and with those that may belong to it
    # whether the request reached the model unchanged, judged by the known calls
    untouched_at_best: bool | None = None
    most_extra_upstream_calls: int | None = None  # extra calls, with all that may belong to this row
    failed_upstream_calls: int | None = None  # calls answered with an error
    earlier_upstream_calls: int | None = None  # calls of attempts before the last
    exchanges_without_call: int | None = None  # our requests that led to no call
    unmatched_calls: int | None = None  # calls that may belong to this row
    uncounted_calls: list[str] | None = None  # paths of answered calls with an unreadable prompt
    opaque_items: int | None = None  # encrypted or stored items that models read; their tokens are not counted
    applied_edits: list[dict[str, Any]] | None = None  # the API's own edits of the conversation
    injected_tools: list[str] | None = None  # tools that the proxy added
    claimed_tokens_saved: float | None = None  # saved tokens by the proxy's own claim
    answer_unknown: str | None = None  # why the call that gave the answer is unknown
    prefix_stability: float | None = None  # see `prefix.py`, also for the next two
    first_message_changed: bool | None = None  # whether tools, system or first message ever changed
    rewritten_history: float | None = None  # share of messages that were rewritten
    # for each turn: tokens of its prompt, those shared with its predecessor, and those of the reply
    prefix_tokens: list[list[int]] | None = None

    def as_metadata(self) -> dict[str, Any]:
        """Return the stored form, without None."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in found.items() if value is not None}


def measure_row(exchanges: Sequence[Exchange], count: Tokenizer, *, repeated: bool = False) -> RowFacts:
    """Measure the exchanges of one row; `repeated` means that the run sends each example several times.

    Facts that depend on all calls of the example are missing in three cases: it is unclear whether a request at the tap
    belongs to the example, the tap has not received any call yet, or a call is unreadable.
    """
    count = _remember_counts(count)
    if any(exchange.failed for exchange in exchanges):
        return _measure_failure(exchanges, count)
    calls = [call for exchange in exchanges for call in exchange.model_calls]
    sent = sum(_count_prompt(exchange.prompt, count) for exchange in exchanges)
    facts = RowFacts(
        sent_tokens=sent,
        downstream_tokens=sent,
        upstream_calls=len(calls),
        extra_upstream_calls=sum(max(0, len(exchange.model_calls) - 1) for exchange in exchanges),
        alone=all(exchange.alone for exchange in exchanges),
        failed_upstream_calls=sum(call.status >= 300 for call in calls) or None,
        earlier_upstream_calls=sum(exchange.earlier_calls for exchange in exchanges) or None,
        exchanges_without_call=sum(not exchange.model_calls for exchange in exchanges) or None,
        unmatched_calls=sum(exchange.unmatched for exchange in exchanges) or None,
        uncounted_calls=[call.path for call in calls if call.is_answered and call.prompt is None] or None,
        opaque_items=sum(call.prompt.count_opaque() for call in calls if call.is_answered and call.prompt) or None,
        applied_edits=[edit for call in calls for edit in call.edits] or None,
        injected_tools=_find_injected_tools(exchanges) or None,
        claimed_tokens_saved=_sum_claims(exchanges),
    )
    _add_lost(facts, exchanges, count)
    if all(exchange.is_known for exchange in exchanges):
        _add_upstream(facts, exchanges, count)
        again = repeated and any(each.asked_before and not each.model_calls for each in exchanges)
        facts.saved_by_repeating = again or None
        _add_times(facts, exchanges)
    elif not any(exchange.silent for exchange in exchanges):
        _add_bounds(facts, exchanges, count)
        if not facts.unmatched_calls and all(call.status for call in calls):  # only a prompt is unreadable
            paid = [(each, call) for each in exchanges for call in (*each.answered_calls, *each.lost_calls)]
            facts.billed_usage = bills = read_bills(paid)
            facts.billed_prompt_tokens = sum(bill["prompt_tokens"] for bill in bills) if bills else None
    _add_answers(facts, exchanges, count)
    return facts


def _measure_failure(exchanges: Sequence[Exchange], count: Tokenizer) -> RowFacts:
    """Measure a failed example: all attempts on both sides, because none gave the answer."""
    sizes = [(_count_prompt(exchange.prompt, count), exchange.attempts) for exchange in exchanges]
    facts = RowFacts(
        sent_tokens=sum(tokens for tokens, attempts in sizes if attempts),
        downstream_tokens=sum(tokens * attempts for tokens, attempts in sizes),
        upstream_calls=sum(len(exchange.lost_calls) + len(exchange.model_calls) for exchange in exchanges),
    )
    if any(exchange.unmatched for exchange in exchanges):
        return facts
    paid = [(exchange, call) for exchange in exchanges for call in (*exchange.lost_calls, *exchange.answered_calls)]
    paid = [(exchange, call) for exchange, call in paid if call.is_answered]
    facts.upstream_tokens = sum(_count_call(call, exchange, count) for exchange, call in paid)
    facts.written_tokens = _count_written((call for _, call in paid), count)
    _add_bills(facts, paid, count)
    facts.embedding_usage = _read_embeddings(exchanges)
    return facts


def _add_lost(facts: RowFacts, exchanges: Sequence[Exchange], count: Tokenizer) -> None:
    lost = [(exchange, call) for exchange in exchanges for call in exchange.lost_calls]
    read = sum(_count_call(call, exchange, count) for exchange, call in lost)
    facts.lost_upstream_calls = len(lost)
    facts.lost_upstream_tokens = read + (_count_written((call for _, call in lost), count) or 0)


def _add_upstream(facts: RowFacts, exchanges: Sequence[Exchange], count: Tokenizer) -> None:
    """Add totals of all calls: tokens read and written, savings, bills."""
    answered = [(exchange, call) for exchange in exchanges for call in exchange.answered_calls]
    facts.upstream_tokens = sum(_count_call(call, exchange, count) for exchange, call in answered)
    facts.written_tokens = _count_written((call for _, call in answered), count)
    facts.untouched = all(_is_untouched(exchange, exchange.answered_calls) for exchange in exchanges)
    answering = [(exchange, call) for exchange in exchanges for call in exchange.answering_calls or ()]
    changes = [change for exchange, call in answering for change in exchange.list_changes(call)]
    facts.changed_settings = list(dict.fromkeys(changes)) or None
    facts.answered_without_call = any(not exchange.model_calls for exchange in exchanges)
    facts.cached_answer = any(not exchange.model_calls and exchange.cache_hit for exchange in exchanges)
    if facts.sent_tokens:
        facts.prompt_savings = 1 - facts.upstream_tokens / facts.sent_tokens
    lost = [(exchange, call) for exchange in exchanges for call in exchange.lost_calls]
    _add_bills(facts, [*answered, *lost], count)
    facts.embedding_usage = _read_embeddings(exchanges)


def _add_bills(facts: RowFacts, paid: Sequence[tuple[Exchange, Call]], count: Tokenizer) -> None:
    """Add the API's counts of all billed calls, or our own counts if a model was swapped."""
    facts.billed_usage = bills = read_bills(paid)
    if bills:
        facts.billed_prompt_tokens = sum(bill["prompt_tokens"] for bill in bills)
    elif bills is None and any(exchange.find_swapped_model(call) for exchange, call in paid):
        facts.counted_usage = [bill_call(call, count, exchange) for exchange, call in paid]


def bill_call(call: Call, count: Tokenizer, exchange: Exchange | None = None) -> Bill:
    """Return the usage in the reply to a call, completed by our own counts."""
    written = call.completion.tokens(count) if call.completion else 0
    counted = {"prompt_tokens": _count_prompt(call.prompt, count), "completion_tokens": written}
    model = exchange.find_swapped_model(call) if exchange is not None else None
    return {**counted, **read_call_bill(call), **({"model": model} if model else {})}


def _read_embeddings(exchanges: Iterable[Exchange]) -> list[dict[str, Any]] | None:
    """Return the usage of each call for embeddings; tokens are None if the reply has none."""
    calls = [call for exchange in exchanges for call in exchange.calls if call.embeds and call.is_answered]
    return [
        {"model": read_document(call.body).get("model"), "prompt_tokens": read_bill(call.reply).get("prompt_tokens")}
        for call in calls
    ] or None


def _add_bounds(facts: RowFacts, exchanges: Sequence[Exchange], count: Tokenizer) -> None:
    """If all calls are readable, add bounds: from the calls that surely belong to this row, and with those that may."""
    least = most = 0
    sure: list[Bill] = []
    doubtful: list[Bill] = []
    for exchange in exchanges:
        for call in exchange.model_calls:
            if call.prompt is None:
                return
            tokens = _count_call(call, exchange, count)
            least += tokens if call.is_answered else 0
            most += 0 if call.status else tokens  # a call in flight may still be answered
            if call.is_answered or not call.status:
                (sure if call.is_answered else doubtful).append(bill_call(call, count, exchange))
        told = [*exchange.unmatched_bills, *repeat({}, len(exchange.unmatched_bodies))]
        for body, bill in zip(exchange.unmatched_bodies, told):
            prompt = Call(exchange.path, body).prompt
            if prompt is None:
                return
            tokens = prompt.tokens(count)
            most += tokens
            doubtful.append({"prompt_tokens": tokens, "completion_tokens": 0, **bill})
        most += exchange.unmatched_bytes  # a token is at least one byte
        if exchange.unmatched_bytes:
            doubtful.append({"prompt_tokens": exchange.unmatched_bytes, "completion_tokens": 0})
    sure += [bill_call(call, count, exchange) for exchange in exchanges for call in exchange.lost_calls]
    facts.least_upstream_tokens, facts.most_upstream_tokens = least, least + most
    facts.least_usage, facts.most_usage = sure, [*sure, *doubtful]
    facts.untouched_at_best = all(_is_untouched(exchange, _list_likely(exchange)) for exchange in exchanges)
    facts.most_extra_upstream_calls = sum(
        max(0, len(exchange.model_calls) + exchange.unmatched - 1) for exchange in exchanges
    )


def _add_times(facts: RowFacts, exchanges: Sequence[Exchange]) -> None:
    """Add the time of the upstream and the overhead, unless the end of a call is unknown."""
    if any(call.ended is None for exchange in exchanges for call in exchange.model_calls):
        return
    busy = [_sum_busy_seconds(exchange.model_calls) for exchange in exchanges]
    facts.upstream_seconds = sum(busy)
    facts.proxy_overhead = sum(max(0.0, exchange.seconds - seconds) for exchange, seconds in zip(exchanges, busy))
    delays = []
    for exchange in exchanges:
        firsts = [call.first for call in exchange.model_calls if call.first is not None]
        if exchange.first_token is not None and firsts:
            busy_until = _sum_busy_seconds(exchange.model_calls, until=max(firsts))
            delays.append(max(0.0, exchange.first_token - busy_until))
    facts.first_token_overhead = sum(delays) / len(delays) if delays else None


def _add_answers(facts: RowFacts, exchanges: Sequence[Exchange], count: Tokenizer) -> None:
    """Add the facts that depend on which calls gave the answers."""
    answers = find_answers(exchanges)
    if isinstance(answers, str):
        facts.answer_unknown = None if any(exchange.silent for exchange in exchanges) else answers
        return
    if any(len(calls) > 1 for calls in answers):  # a prompt in parts has no single prefix
        return
    known = [call for calls in answers for call in calls if call.prompt is not None]
    stability = measure_prefix((call.prompt for call in known), count)
    if stability is not None:
        facts.prefix_stability = stability.kept
        facts.first_message_changed = stability.first_message_changed
        facts.rewritten_history = stability.rewritten
        written = [_count_written([call], count) for call in known]
        facts.prefix_tokens = [[*tokens, reply or 0] for tokens, reply in zip(stability.tokens, written)]


def _is_untouched(exchange: Exchange, calls: Sequence[Call]) -> bool:
    """Whether the model received exactly the sent request: one call, with the same prompt and settings."""
    return len(calls) == 1 and exchange.passes_on(calls[0]) and not exchange.list_changes(calls[0])


def _list_likely(exchange: Exchange) -> list[Call]:
    """Return the answered calls; if no call is known, return an unmatched call that equals the sent request, if any."""
    if exchange.model_calls:
        return exchange.answered_calls
    likely = [Call(exchange.path, body) for body in exchange.unmatched_bodies]
    return [call for call in likely if _is_untouched(exchange, [call])][:1]


def _find_injected_tools(exchanges: Iterable[Exchange]) -> list[str]:
    added: dict[str, None] = {}
    for exchange in exchanges:
        own = set((exchange.prompt or Prompt()).tool_names())
        for call in exchange.model_calls:
            names = (call.prompt or Prompt()).tool_names()
            added.update(dict.fromkeys(name for name in names if name not in own))
    return list(added)


def _sum_claims(exchanges: Iterable[Exchange]) -> float | None:
    claims = [read_claimed_tokens(exchange.claims) for exchange in exchanges]
    known = [claim for claim in claims if claim is not None]
    return sum(known) if known else None


def _sum_busy_seconds(calls: Iterable[Call], until: float = float("inf")) -> float:
    """Return the seconds with at least one call in flight."""
    total, reached = 0.0, float("-inf")
    for call in sorted(calls, key=lambda call: call.started):
        end = min(until, call.started if call.ended is None else call.ended)
        begin = max(reached, call.started)
        total += max(0.0, end - begin)
        reached = max(reached, end)
    return total


# --- counting


def count_request(body: str | Mapping[str, Any], count: Tokenizer) -> int:
    """Count the prompt tokens of a request; 0 without a prompt."""
    return _count_prompt(read_prompt(body), count)


def _count_prompt(prompt: Prompt | None, count: Tokenizer) -> int:
    return prompt.tokens(count) if prompt else 0


def _count_call(call: Call, exchange: Exchange, count: Tokenizer) -> int:
    """Count the prompt of a call; if only the spelling differs from the sent prompt, count the sent prompt."""
    return _count_prompt(exchange.prompt if exchange.passes_on(call) else call.prompt, count)


def _count_written(calls: Iterable[Call], count: Tokenizer) -> int | None:
    """Count the tokens written in answered calls; None if an answer is unreadable."""
    completions = [call.completion for call in calls]
    known = [completion.tokens(count) for completion in completions if completion is not None]
    return sum(known) if len(known) == len(completions) else None


def _remember_counts(count: Tokenizer) -> Tokenizer:
    """Count each text of a row only once, because most texts occur on both sides."""
    known: dict[str, int] = {}

    def count_once(text: str) -> int:
        if text not in known:
            known[text] = count(text)
        return known[text]

    return count_once
