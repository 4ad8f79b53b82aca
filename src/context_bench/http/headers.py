"""Headers that a user adds: checked, kept secret, and told apart where they may change an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from context_bench.errors import UsageError
from context_bench.http.secrets import Secret

__all__ = ["changing_headers", "check_headers", "merge_headers"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_AUTHENTICATION = {"authorization", "x-api-key", "api-key", "proxy-authorization", "cookie"}


def check_headers(headers: Mapping[str, str | Secret] | None) -> dict[str, Secret]:
    """The headers, each value a secret; UsageError for one that cannot be sent, without its value."""
    checked = {}
    for name, value in (headers or {}).items():
        text = value.reveal() if isinstance(value, Secret) else str(value)
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!r} is not a valid header name")
        if not text.strip() or not all(" " <= char <= "~" for char in text):
            raise UsageError(f"the header {name!r} cannot be sent: its value is empty, or not plain ASCII text")
        checked[name] = Secret(text.strip())
    return checked


def merge_headers(*layers: Mapping[str, str | Secret]) -> dict[str, str | Secret]:
    """One value for each name, in any case: that of the last layer."""
    merged = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    return dict(merged.values())


def changing_headers(headers: Mapping[str, Secret]) -> dict[str, str]:
    """Select the headers that may change an answer, not those that say who asks. For a digest only: values are bare."""
    named = {name.lower(): value.reveal() for name, value in headers.items()}
    return {name: value for name, value in named.items() if name not in _AUTHENTICATION}
