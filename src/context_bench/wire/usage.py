"""Token counts as servers report them (`usage`), in the forms of OpenAI and Anthropic.

A count that cannot be true is never passed on: negative, absurd, not a whole number, or a prompt of no tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from context_bench.utils.tokens import MAX_TOKEN_COUNT, read_token_count
from context_bench.wire.events import scan_events
from context_bench.wire.requests import read_document

__all__ = ["Bill", "read_anthropic_usage", "read_bill", "read_openai_usage", "read_usage"]

Bill = dict[str, Any]
"""The counts that the price of a request depends on, and `model` where it is not the one that was asked for."""

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_BILLED = ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_creation_tokens", "cache_creation_1h_tokens")
_SHOWN = 40
_DETAILS = (
    ("prompt_tokens_details", ("cached_tokens", "cache_creation_tokens")),  # the second by gateways to such a cache
    ("completion_tokens_details", ("reasoning_tokens",)),
)


def read_openai_usage(usage: Any) -> dict[str, Any]:
    """Read token counts as OpenAI's API reports them, cached prompt tokens included.

    What cannot be a number of tokens is left out, and named in `ignored_usage`.
    """
    if not isinstance(usage, (dict, Mapping)):
        return {}
    prompt, completion, total = usage.get("prompt_tokens"), usage.get("completion_tokens"), usage.get("total_tokens")
    if (
        type(prompt) is type(completion) is type(total) is int
        and 0 < prompt <= MAX_TOKEN_COUNT
        and 0 <= completion <= MAX_TOKEN_COUNT
        and 0 <= total <= MAX_TOKEN_COUNT
    ):
        counts: dict[str, int] = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
        refused: dict[str, str] = {}
        if len(usage) == len(_COUNTS):
            return counts
    else:
        counts, refused = _split_counts(usage, _COUNTS)
    for part, names in _DETAILS:
        details = usage.get(part)
        if details and isinstance(details, (dict, Mapping)):
            more, wrong = _split_counts(details, names)
            counts |= more
            refused |= wrong
    if counts.get("prompt_tokens") == 0:
        counts, refused = _ignore_zeros(counts, refused)
    return {**counts, "ignored_usage": refused} if refused else counts


def read_anthropic_usage(usage: Any) -> dict[str, Any]:
    """Read token counts from Anthropic's form, which counts cached tokens apart: a prompt is all three together."""
    if not isinstance(usage, (dict, Mapping)):
        return {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts, refused = _split_counts(usage, names)
    ignored = {"ignored_usage": refused} if refused else {}
    if "input_tokens" not in counts:
        return ignored
    new, read, written = (counts.get(name, 0) for name in names[:3])
    if new + read + written == 0:
        return {"ignored_usage": _ignore_zeros(counts, refused)[1]}
    numbers = {"prompt_tokens": new + read + written, "cached_tokens": read, "cache_creation_tokens": written}
    by_lifetime = usage.get("cache_creation")
    if isinstance(by_lifetime, Mapping) and (
        for_an_hour := read_token_count(by_lifetime.get("ephemeral_1h_input_tokens"))
    ):
        numbers["cache_creation_1h_tokens"] = min(written, for_an_hour)
    if "output_tokens" in refused:
        return {**numbers, **ignored}
    completion = counts.get("output_tokens", 0)
    total = numbers["prompt_tokens"] + completion
    return {**numbers, "completion_tokens": completion, "total_tokens": total, **ignored}


def read_usage(usage: Any) -> dict[str, Any]:
    """Return the token counts of a usage in either form; nothing of what is neither."""
    return read_anthropic_usage(usage) or read_openai_usage(usage)


def _split_counts(told: Mapping[str, Any], names: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the counts that can be true, and the others as text."""
    counts: dict[str, int] = {}
    refused: dict[str, str] = {}
    for name in names:
        value = told.get(name)
        if type(value) is int and 0 <= value <= MAX_TOKEN_COUNT:
            counts[name] = value
        elif value is not None:
            refused[name] = repr(value)[:_SHOWN] if isinstance(value, int | float | str) else type(value).__name__
    return counts, refused


def _ignore_zeros(counts: Mapping[str, int], refused: Mapping[str, str]) -> tuple[dict[str, int], dict[str, str]]:
    """Ignore every 0 of a server that reports a prompt of no tokens: it does not count."""
    zeros = {name: "0" for name, count in counts.items() if count == 0}
    left = {name: count for name, count in counts.items() if count}
    return left, {**refused, **zeros}


def read_bill(reply: str) -> Bill:
    """Read what a reply says is billed; a stream tells it in one of its events, or in several parts."""
    merged: dict[str, Any] = {}
    for usage in _find_usages(reply):
        for name, value in usage.items():
            before = merged.get(name)
            grows = isinstance(before, int) and isinstance(value, int)
            if value is not None:
                merged[name] = max(before, value) if grows else value
    told = read_usage(merged)
    return {name: told[name] for name in _BILLED if name in told}


def _find_usages(reply: str) -> Iterator[Mapping[str, Any]]:
    reply = reply.removeprefix("\ufeff")  # some servers put a byte order mark in front
    documents = [read_document(reply)] if reply.lstrip().startswith("{") else scan_events(reply, '"usage"')
    for document in documents:
        message = document.get("message")
        for holder in (document, message):
            usage = holder.get("usage") if isinstance(holder, Mapping) else None
            if isinstance(usage, Mapping):
                yield usage
