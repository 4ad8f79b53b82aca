"""Runs in a store: when and how they ran, their rows, and the examples and answers behind those."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.config import RunSettings, read_settings
from context_bench.results import EvalResult, EvalRow
from context_bench.store.records import (
    Damaged,
    about_one,
    about_row,
    load,
    sum_values,
    to_bytes,
    unpack_processed,
    unpack_row,
)

__all__ = [
    *("DAMAGED", "RunInfo", "RunRecord", "StoredAnswer", "find_response", "insert_run", "read_run", "restore_result"),
    *("run_id", "unpack_answer", "unpack_record", "update_run"),
]

DAMAGED = "damaged"
"""The status of a run of which only the number is known for sure."""


@dataclass(frozen=True)
class RunInfo:
    """One run: when, how it ended, with what, and what came out. A run that was killed stays "running".

    `row_count` is known of a run that came to its end.
    """

    number: int
    id: str
    created: str
    status: str
    config: dict[str, Any]
    summary: dict[str, dict[str, float]]
    timing: dict[str, float]
    row_count: int | None = None

    @property
    def settings(self) -> RunSettings:
        """The record of the run as typed values."""
        return read_settings(self.config)


@dataclass(slots=True)
class StoredAnswer:
    """The answer of a system, as it was the first time."""

    processed: dict[str, Any]
    metadata: dict[str, Any]
    latency: float
    returns: str


@dataclass(frozen=True)
class RunRecord:
    """A row of a run, with the example and the answer that it came from, and their ids.

    `answer_record` is the answer as it stands in the store.
    """

    row: EvalRow
    example: dict[str, Any]
    example_key: bytes
    example_id: int
    answer: StoredAnswer | None
    response: int | None
    answer_record: bytes | None = None


def run_id(created: str, number: int) -> str:
    """Name a run for people: the moment of its start, and a number that no other run of the store has."""
    moment = "".join(char for char in created[:19] if char.isdigit())
    return f"{moment[:8]}-{moment[8:]}-{number}"


def insert_run(connection: sqlite3.Connection, created: str, config: bytes) -> int:
    """Insert a run that has begun, and return its number."""
    values = (created, "running", config, b"{}", b"{}", None)
    number = connection.execute("INSERT INTO runs VALUES (NULL, '', ?, ?, ?, ?, ?, ?, 0)", values).lastrowid or 0
    name = run_id(created, number)
    checksum = sum_values(number, name, *values)
    connection.execute("UPDATE runs SET id = ?, checksum = ? WHERE number = ?", (name, checksum, number))
    return number


def update_run(run: RunInfo, status: str, result: EvalResult, row_count: int) -> tuple[str, list[Any]]:
    """Make the SQL statement, with its values, that records how a run ended."""
    # Not strict JSON: a cost may be infinite.
    numbers = [json.dumps(each, default=float).encode() for each in (result.summary, result.timing)]
    values: list[Any] = [
        status,
        to_bytes({**result.config, "notes": result.notes, **_describe_accuracy(result)}),
        *numbers,
        row_count,
    ]
    checksum = sum_values(run.number, run.id, run.created, *values)
    columns = "status = ?, config = ?, summary = ?, timing = ?, row_count = ?, checksum = ?"
    return f"UPDATE runs SET {columns} WHERE number = ?", [*values, checksum, run.number]


def read_run(number: int, *values: Any) -> RunInfo:
    """Read a run from its columns; with the status DAMAGED when their checksum is wrong."""
    *columns, checksum = values
    try:
        if sum_values(number, *columns) != checksum:
            raise Damaged
        name, created, status, *records, row_count = columns
        config, summary, timing = map(json.loads, records)
        return RunInfo(number, name, created, status, config, summary, timing, row_count)
    except (Damaged, ValueError, TypeError):
        return RunInfo(number, run_id(str(columns[1]), number), str(columns[1]), DAMAGED, {}, {}, {})


def restore_result(run: RunInfo, rows: list[EvalRow]) -> EvalResult:
    """Make the result of a run that came to its end, with these of its rows."""
    config = dict(run.config)
    notes = config.pop("notes", {})
    accuracy = {key: config.pop(key, None) for key in ("intervals", "comparison")}
    result = EvalResult(rows, run.summary, run.timing, config, notes=notes)
    result.read_accuracy(accuracy)
    return result


def unpack_answer(record: Any, identity: int, example: Mapping[str, Any]) -> StoredAnswer:
    """Read an answer from its record; Damaged when its checksum is wrong."""
    return _to_answer(load(record, about_one(identity)), example)


def _to_answer(content: Any, example: Mapping[str, Any]) -> StoredAnswer:
    try:
        processed = unpack_processed(content["processed"], example)
        return StoredAnswer(processed, content["metadata"], content["latency"], content["returns"])
    except (KeyError, TypeError, AttributeError):
        raise Damaged from None


def find_response(content: Any, example: Mapping[str, Any]) -> str:
    """Find the response in the content of an answer's record."""
    packed = content["processed"]
    response: str | None = packed["changed"].get("response")
    return unpack_processed(packed, example)["response"] if response is None else response


def unpack_record(
    row: Any, response: int | None, record: Any, example_id: int, key: bytes | None, example: Mapping[str, Any] | None
) -> RunRecord:
    """Read a row of a run with its answer; Damaged when either is.

    Without its example (None) it can be, unless the response was part of that.
    """
    parts = load(row, about_row(example_id, response))
    content = None if response is None else load(record, about_one(response))
    answer = None if content is None else _to_answer(content, example or {})
    if content is not None and example is None and "response" not in content["processed"]["changed"]:
        raise Damaged
    text = "" if answer is None else answer.processed["response"]
    return RunRecord(unpack_row(parts, text), dict(example or {}), key or b"", example_id, answer, response, record)


def _describe_accuracy(result: EvalResult) -> dict[str, Any]:
    """Describe how sure the numbers are, for the record."""
    document = result.describe_accuracy()
    return {name: value for name, value in document.items() if value}
