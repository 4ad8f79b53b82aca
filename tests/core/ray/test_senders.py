"""Requests from a cluster: the limits of the driver's own client hold for all workers together."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command import environment, shell
from context_bench import EvalResult, EvalRow, Limits, OpenAIProxy, RayEngine, evaluate
from servers import Server, completion, free_port
from timing import depends_on_time

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(400),
    depends_on_time("Ray gives its own processes fixed times to start and to answer"),
]

SOLUTION = "```python\ndef add(a, b):\n    return a + b\n```"


def _examples(count: int) -> list[dict[str, Any]]:
    return [{"id": k, "context": f"number {k}, {k * k}", "question": "?", "answer": str(k)} for k in range(count)]


def test_a_rate_limit_holds_for_eight_workers_together(cluster: Any) -> None:
    count, rate = 250, 50.0
    with Server(completion("yes")) as server:
        system = OpenAIProxy(server.url, name="served", max_rpm=60 * rate)
        result = evaluate(
            system, _examples(count), progress=False, max_workers=16, engine=RayEngine(cluster.address, workers=8)
        )
        moments = sorted(request.moment for request in server.chats)
    assert len(moments) == count
    assert all(row.error is None for row in result.rows)
    # A busy machine may be slower than the limit, and never faster.
    assert (count - 1) / (moments[-1] - moments[0]) <= 1.1 * rate


def test_a_spending_limit_stops_the_whole_cluster(cluster: Any) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 10, "total_tokens": 40}
    with Server(completion("yes", usage)) as server:
        system = OpenAIProxy(server.url, name="served", max_tokens=10)
        result = evaluate(
            system,
            _examples(60),
            progress=False,
            max_workers=8,
            limits=Limits(max_total_tokens=400),
            engine=RayEngine(cluster.address),
        )
        assert 1 <= len(server.chats) <= 11  # ten fit, and one more may pass the limit
        assert len(result.rows) == len(server.chats)
    assert result.config["stopped"].startswith("the limit of 400 tokens is reached")


def test_a_dead_server_closes_the_gate_for_all_workers(cluster: Any) -> None:
    system = OpenAIProxy(f"http://127.0.0.1:{free_port()}", name="nobody", max_retries=0)
    result = evaluate(
        system, _examples(40), progress=False, max_workers=4, preflight=False, engine=RayEngine(cluster.address)
    )
    assert len(result.rows) == 40
    assert all("is down" in str(row.error) for row in result.rows)


def test_ctrl_c_ends_a_run_on_a_cluster_and_it_is_resumed(cluster: Any, tmp_path: Path) -> None:
    with Server(completion("yes", delay=0.05)) as server:
        flags = [
            "--proxy",
            server.url,
            "--dataset",
            "needle:n=400,length=200",
            "--cache-dir",
            "store",
            "--output",
            "json",
        ]
        flags += ["--engine", "ray", "--ray-address", cluster.address, "--max-workers", "4", "--quiet"]
        command = [sys.executable, "-m", "context_bench", *flags]
        run = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL)
        try:
            _wait_until(lambda: len(server.chats) >= 10 or run.poll() is not None)
            os.kill(run.pid, signal.SIGINT)
            assert run.wait(timeout=120) == 130
        finally:
            run.kill()
        asked = len(server.chats)
        assert asked < 400
        again = shell(*flags, cwd=tmp_path, timeout=200.0)
        assert again.returncode == 0, again.stderr
        assert len(EvalResult.from_json(again.stdout).rows) == 400
        assert len(server.chats) == 400  # what was in flight was waited for, so nothing is asked twice


def test_a_tap_is_refused_when_the_cluster_has_other_machines(three_nodes: Any, tmp_path: Path) -> None:
    other = three_nodes.start_node(node_ip_address="127.0.0.2")
    try:
        run = shell(
            *("--proxy", f"http://127.0.0.1:{free_port()}", "--name", "mine", "--tap", f":{free_port()}"),
            *("--tap-reply", "echo", "--dataset", "needle:n=2,length=200", "--quiet"),
            *("--engine", "ray", "--ray-address", three_nodes.address),
            cwd=tmp_path,
            timeout=200.0,
        )
    finally:
        three_nodes.remove_node(other)
    assert run.returncode == 2
    assert (
        "mine is measured through a tap on this machine, but the cluster has other machines: remove --engine ray"
        in (run.stderr)
    )


def test_code_is_run_here_when_no_worker_has_a_sandbox(
    three_nodes: Any, compared: Callable[[EvalResult], list[EvalRow]], tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "sh", "env"):  # Ray starts its workers with these
        (programs / name).symlink_to(str(shutil.which(name)))
    bare = three_nodes.start_node(resources={"bare": 1}, env_vars={"PATH": str(programs)})
    data = [{"id": k, "context": "write add", "test": f"assert add({k}, 1) == {k + 1}"} for k in range(4)]
    try:
        with Server(completion(SOLUTION)) as server:
            system = OpenAIProxy(server.url, name="served")
            here = evaluate(system, data, progress=False)
            with pytest.warns(UserWarning, match="gets no code to run: model-written code needs a sandbox"):
                there = evaluate(
                    system, data, progress=False, engine=RayEngine(three_nodes.address, resources={"bare": 1})
                )
    finally:
        three_nodes.remove_node(bare)
    assert compared(there) == compared(here)
    assert [row.scores.get("pass_at_1", row.unscored.get("code-execution")) for row in there.rows]


def _wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
