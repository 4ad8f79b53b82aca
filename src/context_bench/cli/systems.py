"""`context-bench systems`: the systems and memory systems that ship with the package, and those that plugins add."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.cli.listings import list_with_parameters

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """List the systems with their parameters, and the memory systems beneath."""
    return list_with_parameters(arguments, "system", "memory_system", heading="what it does")
