"""How a system was made: its class and parameters, so that it can be made again in another process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import Any

from context_bench.systems.adapt import Named, rename_system

__all__ = ["find_recipe", "note_recipe"]

Recipe = tuple[Callable[..., Any], dict[str, Any]]

_recipes: dict[int, tuple[weakref.ref[Any], Recipe]] = {}


def note_recipe(system: Any, factory: Callable[..., Any], parameters: Mapping[str, Any]) -> None:
    """Remember how a system was made, as long as it lives."""
    place = id(system)
    try:
        known = weakref.ref(system, lambda _: _recipes.pop(place, None))
    except TypeError:  # its class does not allow it: it is pickled where it is needed
        return
    _recipes[place] = (known, (factory, dict(parameters)))


def find_recipe(system: Any) -> Recipe | None:
    """Return a function and its arguments that make such a system; None where only the system itself is known."""
    inner = getattr(system, "_system", None) if isinstance(system, Named) else None
    if inner is not None:
        known = find_recipe(inner)
        return None if known is None else (_make_named, {"recipe": known, "name": system.name})
    found = _recipes.get(id(system))
    return found[1] if found is not None and found[0]() is system else None


def _make_named(recipe: Recipe, name: str) -> Any:
    make, parameters = recipe
    return rename_system(make(**parameters), name)
