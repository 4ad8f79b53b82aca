"""`context-bench metrics`: the metrics that ship with the package, and those that plugins add."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.cli.listings import list_with_parameters

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """List the metrics with their parameters."""
    return list_with_parameters(arguments, "metric", heading="what it is")
