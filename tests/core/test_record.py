"""Running with a record: `evaluate` and `score` leave the same behind, whatever becomes of the run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from context_bench import Store
from context_bench.core.record import recording
from context_bench.errors import Interrupted
from context_bench.results import EvalResult
from context_bench.store import RunInfo


def list_runs(folder: Path) -> list[RunInfo]:
    with Store(folder, readonly=True) as store:
        return list(store.runs())


def record(folder: Path, work: Any) -> EvalResult:
    with Store(folder) as store, recording(store, {"systems": {}}) as recorded:
        return recorded.finish(asyncio.run(work(recorded.run)))


@pytest.mark.parametrize(("told", "status"), [({}, "done"), ({"stopped": "a limit"}, "stopped")])
def test_a_run_is_listed_with_its_status_and_its_result(tmp_path: Path, told: dict[str, Any], status: str) -> None:
    async def work(run: RunInfo) -> EvalResult:
        assert run.status == "running"
        return EvalResult([], {"a": {"mean_score": 0.5}}, {}, told)

    record(tmp_path, work)
    (run,) = list_runs(tmp_path)
    assert (run.status, run.summary) == (status, {"a": {"mean_score": 0.5}})


@pytest.mark.parametrize(
    ("error", "status", "summary"),
    [
        (ValueError("a bug"), "failed", {}),
        (Interrupted(EvalResult([], {"a": {"mean_score": 1.0}}, {}, {})), "interrupted", {"a": {"mean_score": 1.0}}),
    ],
)
def test_a_run_that_fails_is_listed_with_what_was_finished(
    tmp_path: Path, error: Exception, status: str, summary: dict[str, Any]
) -> None:
    async def work(_: RunInfo) -> EvalResult:
        raise error

    with pytest.raises(type(error)):
        record(tmp_path, work)
    (run,) = list_runs(tmp_path)
    assert (run.status, run.summary) == (status, summary)
