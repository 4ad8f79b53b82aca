"""Reads the facts in a row's metadata that metrics of the tap sum up."""

from __future__ import annotations

import math
from collections.abc import Sequence

from context_bench.results import EvalRow

__all__ = ["mean", "read_billed", "read_fact", "read_sides", "was_repeated"]


def read_fact(row: EvalRow, key: str) -> float | None:
    """Read a number of a row's metadata; None when there is none."""
    value = row.metadata.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def read_sides(row: EvalRow) -> tuple[float, float] | None:
    """Read the tokens sent to a system and those that it sent on; None where either is unknown, or the row failed.

    None too where nothing was sent on only because we had asked the same before: nobody repeats themselves like that.
    """
    sent = read_fact(row, "sent_tokens")
    if row.error is not None or sent is None or row.upstream_tokens is None or was_repeated(row):
        return None
    return sent, float(row.upstream_tokens)


def was_repeated(row: EvalRow) -> bool:
    """Whether a proxy saved on a row only because the run repeats its examples."""
    return row.metadata.get("saved_by_repeating") is True


def read_billed(row: EvalRow) -> float | None:
    """Read the prompt tokens that the API billed: by the tap, else by the usage of a reader behind a compressor."""
    billed = read_fact(row, "billed_prompt_tokens")
    if billed is None and "upstream_calls" not in row.metadata and row.upstream_tokens is not None:
        return read_fact(row, "prompt_tokens")
    return billed


def mean(values: Sequence[float]) -> float:
    """Average at least one value."""
    return math.fsum(values) / len(values)
