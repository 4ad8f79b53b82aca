"""What `retrieve` of a memory system returned, in the agreed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from context_bench.errors import BadOutput
from context_bench.memory.conversations import Retrieved

__all__ = ["check_retrieved", "join_found_texts"]


def check_retrieved(found: Any, name: str) -> list[Retrieved]:
    """Refuse what is not a list of objects with a text, and keep what evaluators read of them."""
    if not isinstance(found, list | tuple):
        given = "None" if found is None else f"a {type(found).__name__}"
        raise BadOutput(f"{name}: retrieve() returned {given}; it must return a list of objects with 'text'")
    checked: list[Retrieved] = []
    for item in found:
        if not isinstance(item, Mapping) or not isinstance(item.get("text"), str):
            raise BadOutput(f"{name}: retrieve() must return objects with 'text' (got a {type(item).__name__})")
        kept: Retrieved = {"text": item["text"]}
        if isinstance(item.get("ids"), list | tuple):
            kept["ids"] = [str(each) for each in item["ids"]]
        if isinstance(item.get("score"), int | float):
            kept["score"] = float(item["score"])
        checked.append(kept)
    return checked


def join_found_texts(found: list[Retrieved]) -> str:
    """Spell out what was found, to be compared with what is found later."""
    return "\n".join(item["text"] for item in found)
