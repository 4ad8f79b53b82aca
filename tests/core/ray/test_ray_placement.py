"""The rows of a run on a cluster of three nodes are those of a run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ray_parts
from command import shell
from context_bench import EvalResult, EvalRow, OpenAIProxy, RayEngine, UsageError, WithReader, evaluate
from servers import Request, Server, completion
from timing import depends_on_time

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(300),
    depends_on_time("Ray gives its own processes fixed times to start and to answer"),
]

Rows = Callable[[EvalResult], list[EvalRow]]


def _examples(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": k, "context": f"the code of box {k} is {k * 7919} " * 5, "question": "which?", "answer": str(k * 7919)}
        | more
        for k in range(count)
    ]


def _answer(request: Request) -> Any:
    text = str(request.json["messages"][-1]["content"])
    return completion(f"it is {len(text)}")


def test_two_systems_by_three_datasets_with_repeats_and_an_error(cluster: Any, compared: Rows) -> None:
    data = {tag: _examples(count) for tag, count in {"one": 12, "two": 7, "three": 20}.items()}
    data["two"].append({"id": "broken", "context": "fail"})
    systems = [ray_parts.Halve(), ray_parts.count_letters]

    here = evaluate(systems, data, repeats=2, progress=False)
    there = evaluate(systems, data, repeats=2, progress=False, engine=RayEngine(cluster.address))

    assert len(here.rows) == 2 * 2 * 40
    assert compared(there) == compared(here)
    failed = [row for row in there.rows if row.error is not None]
    assert {row.error for row in failed} == {"ValueError: asked to fail"}
    # The frames name the user's own file, and not the copy that the worker ran.
    assert all(str(ray_parts.__file__) in frame for row in failed for frame in row.metadata["traceback"])
    assert (here.config["engine"], there.config["engine"]) == ("local", "ray")
    for system in ("halve", "count_letters"):
        _assert_same_numbers(there.summary[system], here.summary[system])


def _assert_same_numbers(there: dict[str, float], here: dict[str, float]) -> None:
    """Compare all of a summary but what comes from times."""
    assert there.keys() == here.keys()
    steady = [key for key in here if not key.startswith("latency")]
    assert len(steady) > 10
    assert [there[key] for key in steady] == pytest.approx([here[key] for key in steady], rel=0, abs=0, nan_ok=True)


def test_an_endpoint_and_a_slow_evaluator(cluster: Any, compared: Rows) -> None:
    with Server(_answer) as server:
        system = OpenAIProxy(server.url, name="served")
        evaluators = ["answer-quality", ray_parts.SlowLength()]
        here = evaluate(system, _examples(30), evaluators, progress=False, max_workers=4)
        before = len(server.chats)
        there = evaluate(
            system, _examples(30), evaluators, progress=False, max_workers=4, engine=RayEngine(cluster.address)
        )
        assert (before, len(server.chats)) == (30, 60)
    assert compared(there) == compared(here)
    _assert_same_numbers(there.summary["served"], here.summary["served"])
    assert {row.scores["length"] for row in there.rows} == {1 / len(row.response) for row in there.rows}


def test_a_compressor_before_a_reader(cluster: Any, compared: Rows) -> None:
    with Server(_answer) as server:
        system = WithReader(ray_parts.Halve(), OpenAIProxy(server.url, name="reader"))
        here = evaluate(system, _examples(10), progress=False, max_workers=4)
        there = evaluate(system, _examples(10), progress=False, max_workers=4, engine=RayEngine(cluster.address))
    assert compared(there) == compared(here)
    assert all(row.metadata["compressor_seconds"] < 1 for row in there.rows)


def test_either_engine_resumes_the_run_of_the_other(cluster: Any, tmp_path: Path) -> None:
    system, data = ray_parts.Tail(), _examples(20)
    first = evaluate(system, data[:10], progress=False, cache_dir=tmp_path)
    second = evaluate(system, data, progress=False, cache_dir=tmp_path, engine=RayEngine(cluster.address))
    third = evaluate(system, data, progress=False, cache_dir=tmp_path)
    assert [row.latency for row in second.rows[:10]] == [row.latency for row in first.rows]
    assert third.rows == second.rows


def test_a_system_is_made_once_in_each_worker(cluster: Any, tmp_path: Path) -> None:
    file = tmp_path / "made.txt"
    data = {"one": _examples(40), "two": _examples(40)}
    result = evaluate(ray_parts.Made(str(file)), data, progress=False, engine=RayEngine(cluster.address))
    made = file.read_text(encoding="utf-8").split()
    assert 1 <= len(made) <= 3
    assert len(set(made)) == len(made)
    assert {row.response for row in result.rows} <= set(made)


def test_what_no_node_has_is_refused(cluster: Any) -> None:
    wanted = r"^no node of the cluster has room for a worker with num_cpus=1, num_gpus=1: declare less, or add a node$"
    with pytest.raises(UsageError, match=wanted):
        evaluate(
            ray_parts.Halve(),
            _examples(1),
            progress=False,
            engine=RayEngine(cluster.address, resources={"num_gpus": 1}),
        )


def test_the_command_line_runs_a_file_of_the_users(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import threading\n"
        "class Mine:\n"
        "    name = 'mine'\n"
        "    resources = {'num_cpus': 1}\n"
        "    def __init__(self, keep=5):\n"
        "        self.keep, self.lock = keep, threading.Lock()  # which no pickle can take along\n"
        "    def process(self, example):\n"
        "        return {'context': example['context'][: self.keep]}\n"
    )
    run = shell(
        *("--system", "mine.py:Mine:keep=9", "--dataset", "needle:n=12,length=500", "--output", "json"),
        *("--engine", "ray", "--ray-address", cluster.address, "--quiet"),
        cwd=tmp_path,
        timeout=200.0,
    )
    assert run.returncode == 0, run.stderr
    result = EvalResult.from_json(run.stdout)
    assert [len(row.response) for row in result.rows] == [9] * 12
    assert result.config["engine"] == "ray"
