"""Rows for tests: only what a test is about has to be said."""

from __future__ import annotations

from typing import Any

from context_bench.results import EvalRow


def make_row(score: float | None = None, *, field: str = "score", **facts: Any) -> EvalRow:
    """A row with one score, or with none."""
    scores = {} if score is None else {field: score}
    values: dict[str, Any] = {"system": "s", "example_id": 1, "scores": scores, "input_tokens": 0, "output_tokens": 0}
    return EvalRow(**{**values, **facts})


def failed_row(**facts: Any) -> EvalRow:
    """A row of an example on which the system failed."""
    return make_row(error="TimedOut: no answer", **facts)
