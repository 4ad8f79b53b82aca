"""Reporters as plain functions, for scripts that have a result and want its text."""

from __future__ import annotations

from context_bench.reporters.table import TableReporter
from context_bench.results import EvalResult

__all__ = ["to_json", "to_markdown"]


def to_markdown(result: EvalResult) -> str:
    """Return the tables and notes of a result as Markdown."""
    return TableReporter().render(result)


def to_json(result: EvalResult) -> str:
    """Return the whole result as strict JSON, which `EvalResult.from_json` reads back."""
    return result.to_json()
