"""The process on a node, without a cluster around it: it makes parts once, and answers for each call."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

import ray_parts
from context_bench import UsageError
from context_bench.evaluators import CodeExecution
from context_bench.ray.ray_worker import RayWorker, Timed, WorkerFailure
from context_bench.sandbox import isolation


class _Unsendable:
    name = "unsendable"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        locked = example["context"] == "lock"
        return {"response": "here", "metadata": {"lock": threading.Lock()} if locked else {}}


def _return(part: Any) -> Any:
    return part


def _load(worker: RayWorker, key: int, kind: str, make: Any, **arguments: Any) -> str | None:
    """Load a part as the driver would; what cannot be pickled here is made by its class."""
    return worker.load(key, kind, pickle.dumps((make, arguments)))


def _run(worker: RayWorker, *calls: tuple[int, tuple[Any, ...]], seconds: float | None = None) -> list[Any]:
    packed, _ = worker.run(pickle.dumps(list(calls)), seconds)
    return list(pickle.loads(packed))


def test_a_system_is_called_as_the_local_engine_calls_it() -> None:
    worker = RayWorker()
    assert _load(worker, 0, "system", ray_parts.Halve) is None
    good, bad = _run(worker, (0, ({"id": 1, "context": "abcdef"},)), (0, ({"id": 2, "context": "fail"},)))
    assert (good.processed, good.metadata, good.returns) == (
        {"context": "abc", "response": "abc"},
        {"note": "halved"},
        "context",
    )
    assert good.processed["response"] is good.processed["context"]  # so that it is still known to be no answer
    assert (bad.error, bad.cause) == ("ValueError: asked to fail", None)
    assert [frame.split(" in ")[1] for frame in bad.metadata["traceback"]] == [
        'process: raise ValueError("asked to fail")'
    ]


def test_it_stops_after_its_time_but_not_before_the_first_call() -> None:
    worker = RayWorker()
    _load(worker, 0, "system", ray_parts.Tail, seconds=0.05)
    calls = [(0, ({"id": k, "context": "ab"},)) for k in range(40)]
    assert len(_run(worker, *calls, seconds=0.0)) == 1
    assert 1 <= len(_run(worker, *calls, seconds=0.1)) <= 3


def test_scores_come_with_their_seconds_and_failures_with_their_text() -> None:
    worker = RayWorker()
    _load(worker, 3, "evaluator", ray_parts.SlowLength)
    good, bad = _run(worker, (3, ({}, {"response": "four"})), (3, ({}, {"response": ""})))
    assert isinstance(good, Timed)
    assert good.value == {"length": 0.25}
    assert good.seconds >= 0.005
    assert isinstance(bad, WorkerFailure)
    assert bad.text.startswith("ZeroDivisionError: ")


def test_a_compressor_returns_what_it_made_untouched() -> None:
    worker = RayWorker()
    _load(worker, 0, "compressor", ray_parts.Halve)
    (made,) = _run(worker, (0, ({"id": 1, "context": "abcd"},)))
    assert made.value == {"context": "ab", "metadata": {"note": "halved"}}


def test_an_answer_that_cannot_be_sent_is_the_error_of_one_example() -> None:
    worker = RayWorker()
    _load(worker, 0, "system", _Unsendable)
    first, second = _run(worker, (0, ({"id": 1, "context": "free"},)), (0, ({"id": 2, "context": "lock"},)))
    assert first.processed["response"] == "here"
    assert second.error.startswith("BadOutput: what it returned cannot be sent from a worker (")


def test_a_part_that_cannot_be_made_is_said_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"^cannot be created on a worker: TypeError: "):
        _load(RayWorker(), 0, "system", ray_parts.Tail, unknown=1)


def test_a_worker_without_bubblewrap_is_given_no_code_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    isolation._bubblewrap.cache_clear()
    try:
        refusal = _load(RayWorker(), 0, "evaluator", CodeExecution)
        assert refusal is not None
        assert refusal.startswith("model-written code needs a sandbox: install bubblewrap")
        assert _load(RayWorker(), 0, "evaluator", CodeExecution, sandbox="none") is None  # at the user's own risk
    finally:
        isolation._bubblewrap.cache_clear()


def test_parts_are_told_that_it_is_over(tmp_path: Path) -> None:
    worker = RayWorker()
    _load(worker, 0, "system", _Ends, file=str(tmp_path / "ended"))
    worker.finish()
    assert (tmp_path / "ended").exists()


class _Ends:
    name = "ends"

    def __init__(self, file: str) -> None:
        self.file = file

    async def prepare(self) -> None:
        assert not Path(self.file).exists()

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return example

    def finish(self) -> None:
        Path(self.file).touch()
