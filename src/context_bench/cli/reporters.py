"""`context-bench reporters`: the forms that `--output` can give a result, and those that plugins add."""

from __future__ import annotations

from collections.abc import Sequence

from context_bench.cli.listings import list_with_parameters

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """List the reporters with their parameters."""
    return list_with_parameters(arguments, "reporter", heading="what it writes")
