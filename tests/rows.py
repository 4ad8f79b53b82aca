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


def tapped_row(upstream: int | None = None, **metadata: Any) -> EvalRow:
    """A row of a system that sends its request elsewhere, with what is known of it."""
    return make_row(1.0, upstream_tokens=upstream, input_tokens=1000, metadata={"output": "response", **metadata})
