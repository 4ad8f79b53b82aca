"""The way of one example through the code stays short, by `tools/trace_example.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from trace_example import trace  # type: ignore[import-not-found]

EXAMPLES = 20


@pytest.mark.parametrize(("store", "most_modules", "most_switches"), [(False, 28, 66), (True, 34, 84)])
def test_one_example_passes_few_modules(store: bool, most_modules: int, most_switches: int) -> None:
    """A slow machine writes each example down by itself: the limits leave room for that."""
    seen = trace(EXAMPLES, store=store)
    modules = [name for name, number in seen.calls.items() if number >= EXAMPLES / 2]
    assert 20 < len(modules) <= most_modules, sorted(modules)
    switches = (sum(seen.switches.values()) + seen.resumed) / EXAMPLES
    assert 40 < switches <= most_switches, seen.switches.most_common(20)
