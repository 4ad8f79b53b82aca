"""What the systems behind an API share: which settings make answers differ, and what usage says."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.errors import UsageError

__all__ = ["anthropic_usage", "check_settings", "settings_fingerprint", "usage_numbers"]

_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_PARTS = (("cached_tokens", "prompt_tokens_details"), ("reasoning_tokens", "completion_tokens_details"))


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
    source = None
    if function is not None:
        try:
            source = inspect.getsource(function)
        except (OSError, TypeError):
            return None
        if not _is_plain(function):
            return None
    described = orjson.dumps([source, settings], option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return f"{kind} {blake2b(described, digest_size=16).hexdigest()}"


def _is_plain(function: Any) -> bool:
    """Whether the source tells all: no bound object, no enclosed or default values, no data from its module."""
    if not inspect.isfunction(function) or function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return False
    used = (function.__globals__.get(name) for name in function.__code__.co_names)
    return all(value is None or inspect.ismodule(value) or isinstance(value, type) for value in used)


def usage_numbers(usage: Any) -> dict[str, int]:
    """Token counts as OpenAI's API reports them, cached prompt tokens included."""
    if not isinstance(usage, dict):
        return {}
    numbers = {key: value for key in _COUNTS if isinstance(value := usage.get(key), int)}
    for name, part in _PARTS:
        details = usage.get(part)
        if isinstance(details, dict) and isinstance(details.get(name), int):
            numbers[name] = details[name]
    return numbers


def anthropic_usage(usage: Any) -> dict[str, int]:
    """The same from Anthropic's form, which counts cached tokens apart: a prompt is all three together."""
    if not isinstance(usage, Mapping) or not isinstance(usage.get("input_tokens"), int):
        return {}
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    new, read, written, completion = (value if isinstance(value := usage.get(name), int) else 0 for name in names)
    prompt = new + read + written
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "cached_tokens": read,
        "cache_creation_tokens": written,
    }
