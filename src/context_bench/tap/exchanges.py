"""Reading what a tap saw of a request of ours: which calls asked a model, which one answered, what was billed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from context_bench.tap.prompt import read_document, read_prompt

__all__ = ["answering_call", "asks", "billed_prompt_tokens", "is_answered", "is_known"]

Exchange = Mapping[str, Any]
Call = Mapping[str, Any]

_ASIDE = ("/count_tokens", "/embeddings", "/moderations", "/files", "/tokenize", "/rerank")
"""Ends of paths where no model is asked for an answer."""


def asks(call: Call) -> bool:
    """Whether a model was to answer it: counting tokens or embedding a text is something else."""
    return not call["path"].endswith(_ASIDE)


def is_answered(call: Call) -> bool:
    """Whether it was not refused."""
    return bool(200 <= call["status"] < 300)


def is_known(exchange: Exchange) -> bool:
    """Whether all calls of an exchange are told, are over, and are in a form that can be read."""
    if exchange.get("unmatched") or exchange.get("silent"):
        return False
    calls = [call for call in exchange["calls"] if asks(call)]
    return all(call["status"] and (not is_answered(call) or read_prompt(call["body"]) is not None) for call in calls)


def answering_call(exchange: Exchange) -> Call | None:
    """The call that gave the answer: the last one that was not refused."""
    calls = [call for call in exchange["calls"] if asks(call) and is_answered(call)]
    return calls[-1] if calls else None


def billed_prompt_tokens(calls: Iterable[Call]) -> int | None:
    """The prompt tokens that the API put on the bill, over all calls; None when one of them does not say."""
    bills = [_billed(call["reply"]) for call in calls if asks(call) and is_answered(call)]
    known = [bill for bill in bills if bill is not None]
    return sum(known) if known and len(known) == len(bills) else None


def _billed(reply: str) -> int | None:
    """Of one reply, plain or streamed; a stream tells it in one of its events, or in several parts."""
    found = [count for usage in _usages(reply) if (count := _prompt_tokens(usage)) is not None]
    return max(found) if found else None


def _usages(reply: str) -> Iterator[Mapping[str, Any]]:
    for document in [read_document(reply)] if reply.lstrip().startswith("{") else _events(reply.splitlines()):
        message = document.get("message")
        for holder in (document, message):
            usage = holder.get("usage") if isinstance(holder, Mapping) else None
            if isinstance(usage, Mapping):
                yield usage


def _events(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data:") and '"usage"' in line:
            try:
                event = orjson.loads(line[5:])
            except orjson.JSONDecodeError:
                continue
            if isinstance(event, dict):
                yield event


def _prompt_tokens(usage: Mapping[str, Any]) -> int | None:
    if isinstance(usage.get("prompt_tokens"), int):
        return int(usage["prompt_tokens"])
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")  # Anthropic counts them apart
    counts = [usage[name] for name in names if isinstance(usage.get(name), int)]
    return sum(counts) if isinstance(usage.get("input_tokens"), int) else None
