"""What the upstream's own replies say of the tokens that they bill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from context_bench.systems.sampling import read_usage
from context_bench.tap.completions import read_events
from context_bench.tap.exchanges import asks, is_answered
from context_bench.tap.prompt import read_document

__all__ = ["read_bills"]

Call = Mapping[str, Any]
Bill = dict[str, int]

_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")


def read_bills(calls: Iterable[Call]) -> list[Bill] | None:
    """Read the usage of each call that a model answered; None when one of them does not tell its prompt."""
    bills: list[Bill] = []
    for call in calls:
        if asks(call) and is_answered(call):
            bill = _read_bill(call["reply"])
            if "prompt_tokens" not in bill:
                return None
            bills.append(bill)
    return bills


def _read_bill(reply: str) -> Bill:
    """Read one reply, plain or streamed; a stream tells its usage in one of its events, or in several parts."""
    merged: dict[str, Any] = {}
    for usage in _list_usages(reply):
        for name, value in usage.items():
            before = merged.get(name)
            grows = isinstance(before, int) and isinstance(value, int)
            if value is not None:
                merged[name] = max(before, value) if grows else value
    told = read_usage(merged)
    return {name: told[name] for name in _COUNTS if name in told}


def _list_usages(reply: str) -> Iterator[Mapping[str, Any]]:
    reply = reply.removeprefix("\ufeff")  # some servers put a byte order mark in front
    documents = [read_document(reply)] if reply.lstrip().startswith("{") else read_events(reply, '"usage"')
    for document in documents:
        message = document.get("message")
        for holder in (document, message):
            usage = holder.get("usage") if isinstance(holder, Mapping) else None
            if isinstance(usage, Mapping):
                yield usage
