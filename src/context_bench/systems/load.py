"""From what a user types after `--system` to systems: a name with parameters, or one's own class or function."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

from context_bench.errors import UsageError
from context_bench.refs import Ref, call_with, check_parameters, parse, resolve
from context_bench.systems.adapt import adapt, rename_system
from context_bench.systems.recipes import note_recipe
from context_bench.text.masking import mask_reference
from context_bench.traits import reference_traits
from context_bench.types import System

__all__ = ["build_systems"]


def build_systems(text: str, seed: int | None = None) -> Iterator[System]:
    """The system that a reference names, called by that text or by its `name=`; several when it is a sweep."""
    for ref in parse("system", text):
        found = resolve("system", ref)
        built = adapt(_build(ref, found, seed))
        own = "name" in ref.parameters and isinstance(found, type)
        yield rename_system(built, built.name if own else mask_reference(ref.text))


def _build(ref: Ref, found: Any, seed: int | None) -> Any:
    if isinstance(found, type):
        if seed is not None and "seed" in inspect.signature(found).parameters:
            ref = Ref(ref.text, ref.target, ref.argument, {"seed": seed, **ref.parameters})
        traits = reference_traits(found)
        argument = None if traits is None else traits.argument
        system = call_with(found, ref, argument)
        note_recipe(system, found, check_parameters(found, ref, argument))
        return system
    if isinstance(found, System):
        if ref.parameters or ref.argument:
            raise UsageError(f"{ref.text!r}: this system is made already and takes no parameters")
        return found
    if not callable(found):
        raise UsageError(f"{ref.text!r} is not a system: it is of type {type(found).__name__}")
    # A plain function is the system itself: it will get the example, and its other parameters now.
    parameters = check_parameters(found, ref, given=1)
    return partial(found, **parameters) if parameters else found
