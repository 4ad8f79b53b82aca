"""The values by which rows are listed: what a row of the list of examples shows, and what it is filtered by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from context_bench.report.elements import clean_text
from context_bench.results import EvalRow
from context_bench.text.evidence_state import read_state

__all__ = ["EVIDENCE", "OUTCOMES", "RowValues", "Source", "clean_id", "clean_name", "name_error_kind", "read_values"]

EVIDENCE = ("lost", "recoverable", "verbatim")
OUTCOMES = ("right", "wrong", "error", "unscored")
_SNIPPET, _ID, _NAME = 140, 120, 300
_DIGITS = re.compile(r"\d+")


class Source(NamedTuple):
    """A row with the example and the answer that it came from, where they are known."""

    row: EvalRow
    example: Mapping[str, Any] | None = None
    processed: Mapping[str, Any] | None = None


class RowValues(NamedTuple):
    """A row of the list.

    `natural` sorts numbers within a name as numbers; `outcome` is a place in `OUTCOMES`; `evidence` is one in
    `EVIDENCE`, and None where that was not measured.
    """

    id: int
    run: int
    system: str
    dataset: str
    name: str
    natural: str
    repeat: int
    score: float | None
    outcome: int
    evidence: int | None
    error: str | None
    input: int
    output: int | None
    latency: float
    question: str
    response: str


def clean_name(name: object) -> str:
    """Return a name as the list has it."""
    return clean_text(str(name)[:_NAME])


def clean_id(identity: object) -> str:
    """Return the id of an example as the list has it."""
    return clean_text(str(identity)[:_ID])


def name_error_kind(error: str) -> str:
    """Name the kind of an error: the type before its message."""
    return clean_text(error.partition(":")[0].strip()[:80]) or "error"


def read_values(identity: int, run: int, source: Source, score: float | None, threshold: float) -> RowValues:
    """Read the values of a row; a score of at least `threshold` is right."""
    row, example = source.row, source.example or {}
    state = read_state(row.scores)
    passed_on = row.upstream_tokens
    if passed_on is None and row.metadata.get("output") == "context":
        passed_on = row.output_tokens
    name = clean_id(row.example_id)
    return RowValues(
        identity,
        run,
        clean_name(row.system),
        clean_name(row.dataset),
        name,
        _DIGITS.sub(_pad, name.lower()),
        row.repeat,
        None if score is None else round(score, 4),
        OUTCOMES.index(_name_outcome(row, score, threshold)),
        None if state is None else EVIDENCE.index(state),
        None if row.error is None else name_error_kind(row.error),
        row.input_tokens,
        passed_on,
        round(row.latency, 6),
        _shorten(example.get("question") or example.get("prompt") or ""),
        _shorten(row.response),
    )


def _pad(digits: re.Match[str]) -> str:
    return digits[0].zfill(12)


def _name_outcome(row: EvalRow, score: float | None, threshold: float) -> str:
    if row.error is not None:
        return "error"
    return "unscored" if score is None else "right" if score >= threshold else "wrong"


def _shorten(text: Any) -> str:
    return " ".join(clean_text(str(text)[: 4 * _SNIPPET]).split())[:_SNIPPET]
