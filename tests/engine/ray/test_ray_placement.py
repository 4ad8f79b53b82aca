"""The rows of a run on a cluster of three nodes are those of a run in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ray_parts
from command import shell
from context_bench import EvalResult, EvalRow, OpenAIProxy, RayEngine, WithReader, evaluate
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
    fields = ("mean_score", "pass_rate", "compression_ratio", "num_errors", "num_examples")
    for system in ("halve", "count_letters"):
        assert [there.summary[system][key] for key in fields] == pytest.approx(
            [here.summary[system][key] for key in fields], nan_ok=True
        )


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
