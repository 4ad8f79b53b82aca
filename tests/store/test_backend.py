"""A store of one's own: the Protocol, and a tiny one in memory that a run is recorded in and resumed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import orjson
import pytest

from context_bench import evaluate
from context_bench.errors import StoreError
from context_bench.results import EvalResult, EvalRow
from context_bench.store import RunInfo, Store, StoreBackend
from context_bench.store.backend import Answer, FoundRow, Keys, RunRecord, StoredAnswer


class MemoryStore:
    """Keeps everything in dictionaries; what it gives out are copies."""

    def __init__(self) -> None:
        self.failure: StoreError | None = None
        self._runs: dict[int, RunInfo] = {}
        self._answers: dict[int, bytes] = {}
        self._rows: dict[tuple[int, int], tuple[EvalRow, int, int | None]] = {}
        self._examples: dict[int, tuple[bytes, dict[str, Any]]] = {}
        self._requests: list[tuple[int, int, Mapping[str, Any]]] = []
        self._answer_keys: dict[bytes, int] = {}
        self._row_keys: dict[bytes, tuple[int, int]] = {}
        self._scores: dict[bytes, bytes] = {}

    @property
    def is_behind(self) -> bool:
        return False

    def has_keys(self) -> bool:
        return bool(self._answer_keys or self._row_keys)

    def index_rows(self) -> None:
        pass

    def index_answers(self) -> None:
        pass

    def index_examples(self) -> None:
        pass

    def find_rows(self, wanted: Sequence[tuple[bytes | None, Mapping[str, Any]]]) -> list[FoundRow | None]:
        found: list[FoundRow | None] = []
        for key, _ in wanted:
            row, _, response = self._rows[self._row_keys[key]] if key in self._row_keys else (None, 0, None)
            found.append(None if row is None or response is None else (response, row, self._answers[response]))
        return found

    def find_answer(self, key: bytes, example: Mapping[str, Any]) -> tuple[int, StoredAnswer, bytes] | None:
        if key not in self._answer_keys:
            return None
        identity = self._answer_keys[key]
        return identity, StoredAnswer(*orjson.loads(self._answers[identity])), self._answers[identity]

    def find_scores(self, key: bytes) -> dict[str, Any] | None:
        return orjson.loads(self._scores[key]) if key in self._scores else None

    def put_answer(
        self, run: RunInfo, place: int, key: bytes | None, example: Mapping[str, Any], answer: Answer
    ) -> int:
        identity = len(self._answers) + 1
        parts = [answer.processed, answer.metadata, answer.latency, answer.returns]
        self._answers[identity] = orjson.dumps(parts)
        if key is not None:
            self._answer_keys[key] = identity
        return identity

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
        if answer is not None:
            keys.response = self.put_answer(run, place, keys.answer, example, answer)
        known = len(self._examples) + 1 if example_id is None else example_id
        self.put_row(run, place, key, known, keys.response, row)
        self.put_example(known, keys.whole, example)
        return known

    def put_scores(self, key: bytes, scores: Mapping[str, Any]) -> None:
        self._scores[key] = orjson.dumps(scores)

    def put_example(self, identity: int, key: bytes, example: Mapping[str, Any]) -> None:
        self._examples[identity] = key, dict(example)

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
        self._rows[run.number, place] = row, example, response
        if key is not None:
            self._row_keys[key] = run.number, place

    def copy_row(self, run: RunInfo, place: int, key: bytes, example_key: bytes, example: Mapping[str, Any]) -> None:
        row, known, response = self._rows[self._row_keys[key]]
        self.put_row(run, place, key, known, response, row)

    def flush_copies(self) -> None:
        pass

    def put_request(self, run: RunInfo, place: int, record: Mapping[str, Any]) -> None:
        self._requests.append((run.number, place, record))

    async def catch_up(self) -> None:
        pass

    def start_run(self, config: Mapping[str, Any]) -> RunInfo:
        number = len(self._runs) + 1
        self._runs[number] = RunInfo(number, f"memory-{number}", "now", "running", dict(config), {}, {})
        return self._runs[number]

    def end_run(self, run: RunInfo, status: str, result: EvalResult) -> None:
        timing = dict(result.timing)
        self._runs[run.number] = RunInfo(
            run.number, run.id, run.created, status, result.config, result.summary, timing, len(result.rows)
        )

    def runs(self) -> list[RunInfo]:
        return sorted(self._runs.values(), key=lambda run: -run.number)

    def run_records(self, run: RunInfo) -> Iterator[RunRecord]:
        for (number, _), (row, known, response) in sorted(self._rows.items(), key=lambda each: each[0]):
            if number == run.number:
                key, example = self._examples[known]
                answer = None if response is None else StoredAnswer(*orjson.loads(self._answers[response]))
                yield RunRecord(row, example, key, known, answer, response)


class Halves:
    name = "halves"
    fingerprint = "halves/1"

    def __init__(self, fails_from: int = 99) -> None:
        self.asked: list[int] = []
        self._fails_from = fails_from

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(example["id"])
        if example["id"] >= self._fails_from:
            raise ValueError("out of reach")
        return {"context": example["context"][: len(example["context"]) // 2]}


DATA = [
    {"id": number, "context": f"The keeper of hall {number} is Ada. " * 4, "question": "Who?", "answer": "Ada"}
    for number in range(6)
]


Opened = Callable[[], AbstractContextManager[StoreBackend]]


@pytest.fixture(params=["memory", "sqlite"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the store: the one in memory is the same each time, the other one is closed after each use."""
    in_memory = MemoryStore()
    return lambda: nullcontext(in_memory) if request.param == "memory" else Store(tmp_path)


def run(opened: Opened, system: Halves, *evaluators: Any, **settings: Any) -> EvalResult:
    with opened() as store:
        return evaluate(system, DATA, evaluators or None, progress=False, store=store, **settings)


def test_both_are_what_a_run_asks_for(opened: Opened) -> None:
    with opened() as store:
        assert isinstance(store, StoreBackend)


def test_a_run_is_recorded_and_resumed(opened: Opened) -> None:
    broken = Halves(fails_from=4)
    first = run(opened, broken)
    assert broken.asked == list(range(6))
    assert [row.error is None for row in first.rows] == [True] * 4 + [False] * 2
    with opened() as store:
        assert store.runs()[0].summary["halves"]["num_errors"] == 2

    mended = Halves()
    second = run(opened, mended)
    assert mended.asked == [4, 5]  # the rest is known
    assert [row.error for row in second.rows] == [None] * 6
    assert [row.scores for row in second.rows[:4]] == [row.scores for row in first.rows[:4]]
    assert second.summary["halves"]["num_errors"] == 0

    again = Halves()
    third = run(opened, again)
    assert again.asked == []
    assert third.rows == second.rows
    with opened() as store:
        latest, *_ = store.runs()
        assert (len(store.runs()), latest.status) == (3, "done")
        records = list(store.run_records(latest))
    assert [record.row for record in records] == third.rows
    assert [record.example for record in records] == DATA


def test_a_new_evaluator_asks_no_system(opened: Opened) -> None:
    class Length:
        name = "length"
        fingerprint = "length/1"
        score_fields = ("kept",)

        def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
            return {"kept": len(processed["context"]) / len(original["context"])}

    run(opened, Halves())
    system = Halves()
    result = run(opened, system, Length(), score_field="kept")
    assert system.asked == []
    assert [row.scores["kept"] for row in result.rows] == pytest.approx([0.5] * 6, abs=0.01)
