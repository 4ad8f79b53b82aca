"""Whether a tool's JSON schema that went through a proxy still asks for the same arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flaw_of"]

_FREE = {"description", "title", "examples", "$comment", "default", "additionalProperties"}
"""What explains a schema or is taken for granted: a proxy that leaves it out breaks nothing."""

_UNORDERED = {"required", "enum"}
_NAMED = {"properties", "$defs", "definitions"}
"""Where the keys are names of the user's, whatever they spell."""


def flaw_of(sent: Any, arrived: Any, where: str = "the arguments", *, names: bool = False) -> str | None:
    """What is wrong with the schema that arrived; None when it asks for what the sent one does."""
    if isinstance(sent, Mapping):
        if not isinstance(arrived, Mapping):
            return f"there is no schema any more in {where}"
        keys = [key for key in {**sent, **arrived} if names or key not in _FREE]
        return _first(_flaw_at(key, sent, arrived, where, names) for key in keys)
    if isinstance(sent, list) and isinstance(arrived, list) and len(sent) == len(arrived):
        return _first(flaw_of(one, other, where) for one, other in zip(sent, arrived))
    return None if sent == arrived else f"{sent!r} became {arrived!r} in {where}"


def _flaw_at(key: str, sent: Mapping[str, Any], arrived: Mapping[str, Any], where: str, names: bool) -> str | None:
    if key not in arrived:
        return f"{key!r} is gone from {where}"
    if key not in sent:
        return f"{key!r} was added to {where}"
    one, other = sent[key], arrived[key]
    if not names and key in _UNORDERED and isinstance(one, list) and isinstance(other, list):
        one, other = sorted(one, key=repr), sorted(other, key=repr)
    return flaw_of(one, other, f"{key!r} of {where}", names=not names and key in _NAMED)


def _first(flaws: Any) -> str | None:
    return next((flaw for flaw in flaws if flaw is not None), None)
