"""Token counts as servers report them (`usage`), in the forms of OpenAI and Anthropic.

A count that cannot be true (negative, absurd, not a whole number) is never passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.utils.tokens import read_token_count
from context_bench.wire.events import scan_events
from context_bench.wire.requests import read_document

__all__ = ["find_billed_prompt_tokens", "read_anthropic_usage", "read_openai_usage", "read_usage"]

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_SHOWN = 40
_PARTS = (("cached_tokens", "prompt_tokens_details"), ("reasoning_tokens", "completion_tokens_details"))


def read_openai_usage(usage: Any) -> dict[str, Any]:
    """Token counts as OpenAI's API reports them, cached prompt tokens included.

    What cannot be a number of tokens is left out, and named in `ignored_usage`.
    """
    if not isinstance(usage, Mapping):
        return {}
    told = {key: usage.get(key) for key in _COUNTS}
    for name, part in _PARTS:
        details = usage.get(part)
        told[name] = details.get(name) if isinstance(details, Mapping) else None
    numbers, ignored = _split_counts(told)
    return {**numbers, **ignored}


def read_anthropic_usage(usage: Any) -> dict[str, Any]:
    """The same from Anthropic's form, which counts cached tokens apart: a prompt is all three together."""
    if not isinstance(usage, Mapping):
        return {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts, ignored = _split_counts({name: usage.get(name) for name in names})
    if "input_tokens" not in counts:
        return ignored
    new, read, written = (counts.get(name, 0) for name in names[:3])
    numbers = {"prompt_tokens": new + read + written, "cached_tokens": read, "cache_creation_tokens": written}
    if "output_tokens" in ignored.get("ignored_usage", {}):
        return {**numbers, **ignored}
    completion = counts.get("output_tokens", 0)
    total = numbers["prompt_tokens"] + completion
    return {**numbers, "completion_tokens": completion, "total_tokens": total, **ignored}


def read_usage(usage: Any) -> dict[str, Any]:
    """Return the token counts of a usage in either form; nothing of what is neither."""
    return read_anthropic_usage(usage) or read_openai_usage(usage)


def _split_counts(told: Mapping[str, Any]) -> tuple[dict[str, int], dict[str, dict[str, str]]]:
    """The counts that can be believed, and the others under `ignored_usage` as text."""
    counts: dict[str, int] = {}
    ignored: dict[str, str] = {}
    for name, value in told.items():
        count = read_token_count(value)
        if count is not None:
            counts[name] = count
        elif value is not None:
            ignored[name] = repr(value)[:_SHOWN] if isinstance(value, int | float | str) else type(value).__name__
    return counts, {"ignored_usage": ignored} if ignored else {}


def find_billed_prompt_tokens(reply: str) -> int | None:
    """Find the prompt tokens that a reply says are billed, plain or streamed; None when it does not say.

    A stream tells it in one of its events, or in several parts.
    """
    found = [count for usage in _find_usages(reply) if (count := _read_prompt_tokens(usage)) is not None]
    return max(found) if found else None


def _find_usages(reply: str) -> Iterator[Mapping[str, Any]]:
    reply = reply.removeprefix("\ufeff")  # some servers put a byte order mark in front
    documents = [read_document(reply)] if reply.lstrip().startswith("{") else scan_events(reply, '"usage"')
    for document in documents:
        message = document.get("message")
        for holder in (document, message):
            usage = holder.get("usage") if isinstance(holder, Mapping) else None
            if isinstance(usage, Mapping):
                yield usage


def _read_prompt_tokens(usage: Mapping[str, Any]) -> int | None:
    if (told := read_token_count(usage.get("prompt_tokens"))) is not None:
        return told
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")  # Anthropic counts them apart
    counts = [read_token_count(usage.get(name)) for name in names]
    return None if counts[0] is None else sum(count or 0 for count in counts)
