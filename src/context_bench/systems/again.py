"""The baseline a second time: what it differs from itself by is the noise that a difference must exceed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from context_bench.comparison import choose_baseline, name_twin
from context_bench.errors import UsageError
from context_bench.systems.adapt import Named
from context_bench.traits import SystemTraits, never_wins
from context_bench.types import System

__all__ = ["Again", "add_twin"]

_DONE_ONCE = ("prepare", "finish")
"""Members that are taken from the system itself: its tap is opened, and its process started, for both."""


class Again(Named):
    """A system under its second name: it is asked anew, as answers are stored by name, and does not compete."""

    def __init__(self, system: Any) -> None:
        super().__init__(system, name_twin(system.name))

    def __getattr__(self, attribute: str) -> Any:
        if attribute in _DONE_ONCE:
            raise AttributeError(attribute)
        return super().__getattr__(attribute)

    def __context_bench_traits__(self) -> SystemTraits:
        return replace(super().__context_bench_traits__(), competes=False, list_unmatched=None)


def add_twin(systems: Sequence[System], baseline: str | None) -> tuple[list[System], Again]:
    """Put the second run of the baseline behind the first: all systems, and which one it is.

    Raises:
        UsageError: A system is called like it.
    """
    names = [each.name for each in systems]
    controls = [each.name for each in systems if never_wins(each)]
    chosen = choose_baseline(names, baseline, controls) or names[0]
    place = names.index(chosen)
    twin = Again(systems[place])
    if twin.name in names:
        raise UsageError(f"a system is called {twin.name!r}, as the second run of the baseline is: rename it")
    return [*systems[: place + 1], twin, *systems[place + 1 :]], twin
