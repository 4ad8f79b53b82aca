"""The settings of systems behind an API: which values cannot be used, and which make answers differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import orjson

from context_bench.errors import UsageError
from context_bench.store.fingerprints import fingerprint_of

__all__ = ["check_settings", "settings_fingerprint"]


def check_settings(*, may_be_zero: bool, **values: float | None) -> None:
    """Refuse a number that no request could be made with, by the name of its parameter."""
    for name, value in values.items():
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not (0 < value < math.inf or (may_be_zero and value == 0)):
            raise UsageError(f"{name} must be a number {'of at least 0' if may_be_zero else 'above 0'} (got {value!r})")


def settings_fingerprint(kind: str, function: Callable[..., Any] | None, **settings: Any) -> str | None:
    """Describe all settings by one text; None when the user's function cannot be told from another."""
    made_by = None if function is None else fingerprint_of(function)
    if function is not None and made_by is None:
        return None
    described = orjson.dumps([made_by, settings], option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS, default=str)
    return f"{kind} {blake2b(described, digest_size=16).hexdigest()}"
