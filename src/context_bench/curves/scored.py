"""What statistics need of a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from context_bench.stats import ScoredRow

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["score_row"]


def score_row(row: EvalRow, field: str, *, repeats: bool) -> ScoredRow:
    """Give the score of a row with what it is paired and grouped by.

    Args:
        row: Of any system.
        field: The score that counts.
        repeats: Whether examples were answered several times: the answers to one example are not independent.
    """
    identity = f"{type(row.example_id).__name__}:{row.example_id}"
    group = row.metadata.get("cluster")
    if group is None and repeats:
        group = identity
    known = None if group is None else str(group)
    return ScoredRow(identity, row.dataset, row.scores.get(field), known, row.error is not None, row.repeat)
