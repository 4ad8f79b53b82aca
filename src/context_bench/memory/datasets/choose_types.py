"""The types of questions that a run asks for, as `--types temporal,multi_hop` names them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from context_bench.errors import UsageError, suggest

__all__ = ["choose_types"]


def choose_types(types: Sequence[str] | str | None, known: Sequence[str], dataset: str) -> Collection[str]:
    """Return the chosen types, all where none is named; `-` and `_` in them are alike.

    Raises:
        UsageError: A name that the dataset does not have.
    """
    if not types:
        return known
    named = types.replace("|", ",").split(",") if isinstance(types, str) else types
    by_key = {_key(name): name for name in known}
    chosen: list[str] = []
    for name in named:
        if _key(name) not in by_key:
            advice = suggest(name, known) or f"it has {', '.join(known)}"
            raise UsageError(f"{dataset} has no questions of type {name!r}; {advice}")
        chosen.append(by_key[_key(name)])
    return chosen


def _key(name: str) -> str:
    return name.strip().lower().replace("_", "-")
