"""The table of systems that ship: each has what the Protocol asks for, and keeps users apart."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from context_bench.errors import MissingExtra
from context_bench.memory.systems import SYSTEMS as EVERY
from context_bench.memory.systems import VENDORS
from context_bench.registry import import_object
from context_bench.types import MemorySystem
from memory.histories import make_turns

SYSTEMS = {name: where for name, where in EVERY.items() if name not in VENDORS}
"""Those of our own; vendors run in environments of their own (tests/memory/test_vendor_memories.py)."""
CONTROLS = {"naive", "oracle", "closed-book"}


def _make(name: str) -> Any:
    made = import_object(SYSTEMS[name])
    needs_model = "base_url" in inspect.signature(made).parameters
    try:
        return made(base_url="http://127.0.0.1:9", model="m") if needs_model else made()
    except MissingExtra:
        pytest.skip("the extra `memory` is not installed")


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_satisfies_the_protocol(name: str) -> None:
    system = _make(name)
    is_memory: bool = isinstance(system, MemorySystem)
    assert is_memory
    assert system.name.partition(":")[0] == name
    assert system.is_control == (name in CONTROLS)
    parameters = inspect.signature(system.retrieve).parameters
    assert list(parameters) == ["question", "k", "budget_tokens", "user"]


@pytest.mark.parametrize("name", sorted(set(SYSTEMS) - {"summary", "rlm"}))
def test_each_works_again_after_a_reset(name: str) -> None:
    system = _make(name)
    system.ingest(make_turns("old news"))
    system.reset()
    system.ingest(make_turns("fresh news"))
    if hasattr(system, "point_to"):
        system.point_to(["s1:1"])
    found = [item["text"] for item in system.retrieve("news")]
    assert found == ([] if name == "closed-book" else ["Ana: fresh news"])
