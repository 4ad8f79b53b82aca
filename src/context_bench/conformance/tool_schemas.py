"""Compares a tool's JSON schema before and after a proxy: it must still ask for the same arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["find_flaw"]

_FREE = {"description", "title", "examples", "$comment", "default", "additionalProperties"}
"""Keys that only explain a schema, or are its defaults: a proxy that leaves them out breaks nothing."""

_UNORDERED = {"required", "enum"}
_NAMED = {"properties", "$defs", "definitions"}
"""Where the keys are names of the user's, whatever they spell."""


def find_flaw(sent: Any, arrived: Any, where: str = "the arguments", *, names: bool = False) -> str | None:
    """Find what is wrong with the schema that arrived; None when it asks for what the sent one does."""
    if isinstance(sent, Mapping):
        if not isinstance(arrived, Mapping):
            return f"the schema is gone from {where}"
        keys = [key for key in {**sent, **arrived} if names or key not in _FREE]
        return _first(_find_flaw_at(key, sent, arrived, where, names) for key in keys)
    if isinstance(sent, list) and isinstance(arrived, list) and len(sent) == len(arrived):
        return _first(find_flaw(one, other, where) for one, other in zip(sent, arrived))
    return None if sent == arrived else f"{sent!r} became {arrived!r} in {where}"


def _find_flaw_at(key: str, sent: Mapping[str, Any], arrived: Mapping[str, Any], where: str, names: bool) -> str | None:
    if key not in arrived:
        return f"{key!r} is gone from {where}"
    if key not in sent:
        return f"{key!r} was added to {where}"
    one, other = sent[key], arrived[key]
    if not names and key in _UNORDERED and isinstance(one, list) and isinstance(other, list):
        one, other = sorted(one, key=repr), sorted(other, key=repr)
    return find_flaw(one, other, f"{key!r} of {where}", names=not names and key in _NAMED)


def _first(flaws: Any) -> str | None:
    return next((flaw for flaw in flaws if flaw is not None), None)
