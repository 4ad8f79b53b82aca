"""What the systems behind an API share: which settings make answers differ, and what usage says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.errors import UsageError
from context_bench.store.fingerprints import fingerprint_of
from context_bench.utils.tokens import read_token_count

__all__ = [
    "anthropic_usage",
    "check_settings",
    "describe_document",
    "read_usage",
    "settings_fingerprint",
    "usage_numbers",
]

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_SHOWN = 40
_PARTS = (
    ("cached_tokens", "prompt_tokens_details"),
    ("cache_creation_tokens", "prompt_tokens_details"),  # what gateways to providers with such a cache report
    ("reasoning_tokens", "completion_tokens_details"),
)


def check_settings(*, may_be_zero: bool, **values: float | None) -> None:
    """Refuse a number that no request could be made with, by the name of its parameter."""
    for name, value in values.items():
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not (0 < value < math.inf or (may_be_zero and value == 0)):
            raise UsageError(f"{name} is a number {'from 0 on' if may_be_zero else 'above 0'}, not {value!r}")


def settings_fingerprint(kind: str, function: Callable[..., Any] | None, **settings: Any) -> str | None:
    """One text for all settings; None when the user's function cannot be told from another."""
    made_by = None if function is None else fingerprint_of(function)
    if function is not None and made_by is None:
        return None
    described = orjson.dumps([made_by, settings], option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return f"{kind} {blake2b(described, digest_size=16).hexdigest()}"


def usage_numbers(usage: Any) -> dict[str, Any]:
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


def anthropic_usage(usage: Any) -> dict[str, Any]:
    """The same from Anthropic's form, which counts cached tokens apart: a prompt is all three together."""
    if not isinstance(usage, Mapping):
        return {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts, ignored = _split_counts({name: usage.get(name) for name in names})
    if "input_tokens" not in counts:
        return ignored
    new, read, written = (counts.get(name, 0) for name in names[:3])
    numbers = {"prompt_tokens": new + read + written, "cached_tokens": read, "cache_creation_tokens": written}
    by_lifetime = usage.get("cache_creation")
    if isinstance(by_lifetime, Mapping) and (
        for_an_hour := read_token_count(by_lifetime.get("ephemeral_1h_input_tokens"))
    ):
        numbers["cache_creation_1h_tokens"] = min(written, for_an_hour)
    if "output_tokens" in ignored.get("ignored_usage", {}):
        return {**numbers, **ignored}
    completion = counts.get("output_tokens", 0)
    total = numbers["prompt_tokens"] + completion
    return {**numbers, "completion_tokens": completion, "total_tokens": total, **ignored}


def read_usage(usage: Any) -> dict[str, Any]:
    """Return the token counts of a usage in either form; nothing of what is neither."""
    return anthropic_usage(usage) or usage_numbers(usage)


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


def describe_document(document: Any) -> str:
    """The start of a server's answer as text, however deep it is nested."""
    try:
        return orjson.dumps(document)[:200].decode("utf-8", "replace")
    except TypeError:  # more levels than can be written
        return f"a {type(document).__name__} of too many levels"
