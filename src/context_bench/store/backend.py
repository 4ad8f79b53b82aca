"""The Protocol of a store, and the records that it takes and gives.

`Store` (SQLite, in a folder) is the one that ships. Another store needs these methods, and imports only the records;
`tests/store/test_backend.py` has one in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from context_bench.errors import StoreError
from context_bench.results import EvalResult, EvalRow
from context_bench.settings import RunSettings, read_settings

FoundRow = tuple[int, EvalRow, bytes]
"""The id of an answer, the row that was made of it, and the stored answer."""

FIRST_FAILED = 1 << 31
"""The first place that a run uses for the requests of failed rows, which are in the order of the rows."""


def identify_row(row: EvalRow) -> dict[str, Any]:
    """Name a row within its run."""
    return {"system": row.system, "dataset": row.dataset, "example_id": row.example_id, "repeat": row.repeat}


@dataclass(frozen=True, repr=False)
class RunInfo:
    """One run: its time, status, configuration and results. A run that was killed stays "running".

    `row_count` is known for finished runs.
    """

    number: int
    id: str
    created: str
    status: str
    config: dict[str, Any]
    summary: dict[str, dict[str, float]]
    timing: dict[str, float]
    row_count: int | None = None

    def __repr__(self) -> str:
        systems, datasets = ", ".join(self.settings.systems), ", ".join(self.settings.datasets)
        return f"<run {self.id}, {self.created[:16]}, {self.status}: {systems} on {datasets or 'data without a tag'}>"

    @property
    def settings(self) -> RunSettings:
        """The record of the run as typed values."""
        return read_settings(self.config)


class Answer(Protocol):
    """The parts of an answer that are stored; `StoredAnswer` is their form when read."""

    processed: dict[str, Any]
    metadata: dict[str, Any]
    latency: float
    returns: str


@dataclass(slots=True)
class Keys:
    """The cache keys of one system's answer and row for one example; None if reuse is not safe. `whole` is the digest
    of the example, `response` the id of the answer once it is stored, and `record` the stored form of the answer.
    """

    whole: bytes
    answer: bytes | None
    row: bytes | None
    response: int | None = None
    record: bytes | None = None


@dataclass(slots=True)
class StoredAnswer:
    """A stored answer of a system, unchanged."""

    processed: dict[str, Any]
    metadata: dict[str, Any]
    latency: float
    returns: str


@dataclass(frozen=True)
class RunRecord:
    """A row of a run, with the example and the answer that it came from, and their ids.

    `answer_record` is the stored form of the answer.
    """

    row: EvalRow
    example: dict[str, Any]
    example_key: bytes
    example_id: int
    answer: StoredAnswer | None
    response: int | None
    answer_record: bytes | None = None


@runtime_checkable
class StoreBackend(Protocol):
    """Stores the results of runs, and finds them by keys that cover everything that can change them.

    The store chooses the ids, which are integers; a place is the number of a job in its run. `failure` says why the
    store can no longer write, if so.
    """

    failure: StoreError | None

    @property
    def is_behind(self) -> bool:
        """Whether writing has fallen behind; callers that continue use more and more memory."""

    # -- look up

    def has_keys(self) -> bool:
        """Whether the store may contain keys; a new store needs no look-ups."""

    def index_rows(self) -> None:
        """Prepare for looking up many rows; a store without an index does nothing."""

    def index_answers(self) -> None:
        """Prepare for looking up many answers."""

    def index_examples(self) -> None:
        """Prepare for looking up many examples."""

    def find_rows(self, wanted: Sequence[tuple[bytes | None, Mapping[str, Any]]]) -> list[FoundRow | None]:
        """Find the newest finished row of each key, with the id and record of its answer; None for a key without
        one."""

    def find_answer(self, key: bytes, example: Mapping[str, Any]) -> tuple[int, StoredAnswer, bytes] | None:
        """Find the newest answer under a key: its id, the answer, and its record."""

    def find_scores(self, key: bytes) -> dict[str, Any] | None:
        """Look up the scores that an evaluator gave, by their key."""

    # -- put

    def put_answer(
        self, run: RunInfo, place: int, key: bytes | None, example: Mapping[str, Any], answer: Answer
    ) -> int:
        """Store the answer of a run at a place, and return its id; without a key, look-ups never find it."""

    def put_result(
        self,
        run: RunInfo,
        place: int,
        keys: Keys,
        example: Mapping[str, Any],
        example_id: int | None,
        answer: Answer | None,
        row: EvalRow,
        key: bytes | None,
    ) -> int:
        """Store a run's whole result for one example atomically: if this raises, nothing is stored.

        Args:
            run: The run of the result.
            place: The place in the run.
            keys: Keys of the example and the answer; the id of the answer is added to them.
            example: The example, as the dataset has it.
            example_id: Its id, if it was kept before.
            answer: The system's answer; None if it is stored already, or there is none.
            row: The row of the result.
            key: The key under which look-ups find the row; None if they must not find it.

        Returns:
            The id of the example.
        """

    def put_scores(self, key: bytes, scores: Mapping[str, Any]) -> None:
        """Store the scores of an evaluator."""

    def put_example(self, identity: int, key: bytes, example: Mapping[str, Any]) -> None:
        """Store an example under its id, after its row, so that a concurrent removal of runs sees that the example is
        used."""

    def put_row(
        self,
        run: RunInfo,
        place: int,
        key: bytes | None,
        example: int,
        response: int | None,
        row: EvalRow,
        record: bytes | None = None,
    ) -> None:
        """Store the row of a run at a place; without a key, look-ups never find it.

        `record` is the answer as found in the store, because its run may be removed before this row is written.
        """

    def copy_row(self, run: RunInfo, place: int, key: bytes, example_key: bytes, example: Mapping[str, Any]) -> None:
        """Copy a row from the last `find_rows` result into this run."""

    def flush_copies(self) -> None:
        """Write the copies that `copy_row` has gathered, if it gathers them."""

    def put_request(self, run: RunInfo, place: int, record: Mapping[str, Any]) -> None:
        """Store a request at the tap that belongs to no answer, or the requests of a failed row."""

    async def catch_up(self) -> None:
        """Wait while writing is behind."""

    # -- runs and their rows

    def start_run(self, config: Mapping[str, Any]) -> RunInfo:
        """Record that a run has begun."""

    def end_run(self, run: RunInfo, status: str, result: EvalResult) -> None:
        """Record the end of a run: its status and results."""

    def runs(self) -> list[RunInfo]:
        """List all runs, the newest first."""

    def run_records(self, run: RunInfo) -> Iterator[RunRecord]:
        """Yield the rows of a run with their example and answer, in order."""


def restore_result(run: RunInfo, rows: list[EvalRow]) -> EvalResult:
    """Make the result of a finished run from these rows."""
    config = dict(run.config)
    notes = config.pop("notes", {})
    accuracy = {key: config.pop(key, None) for key in ("intervals", "comparison")}
    result = EvalResult(rows, run.summary, run.timing, config, notes=notes)
    result.read_accuracy(accuracy)
    return result
