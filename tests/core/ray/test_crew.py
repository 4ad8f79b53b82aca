"""Workers, nodes and drivers that die in the middle of a run: every row is there, once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ray_parts
from command import environment
from context_bench import EvalRow, OpenAIProxy, RayEngine, UsageError, evaluate
from servers import Server, completion
from timing import depends_on_time

pytestmark = [
    pytest.mark.ray,
    pytest.mark.filterwarnings("default"),
    pytest.mark.timeout(400),
    depends_on_time("Ray gives its own processes fixed times to start and to answer"),
]


def _examples(count: int) -> list[dict[str, Any]]:
    return [{"id": k, "context": f"number {k}, {k * k}", "question": "?", "answer": str(k)} for k in range(count)]


def _keys(rows: list[EvalRow]) -> list[tuple[str, Any]]:
    return [(row.system, row.example_id) for row in rows]


def test_an_example_that_kills_its_worker_twice_is_an_error_and_all_others_are_answered(
    cluster: Any, tmp_path: Path
) -> None:
    deaths = tmp_path / "deaths.txt"
    data = _examples(40)
    data[17]["context"] = "kill"
    result = evaluate(ray_parts.Deadly(str(deaths)), data, progress=False, engine=RayEngine(cluster.address))

    assert _keys(result.rows) == [("deadly", k) for k in range(40)]
    failed = [row for row in result.rows if row.error is not None]
    assert [(row.example_id, row.error) for row in failed] == [
        (17, "SystemFailure: the example killed its worker 2 times")
    ]
    assert [row.response for row in result.rows if row.error is None] == [
        each["context"].upper() for each in data if each["context"] != "kill"
    ]
    # A connection that breaks before the cluster knows why costs one more try.
    assert len(deaths.read_text(encoding="utf-8").split()) in (2, 3)


def test_a_system_that_kills_the_workers_that_make_it_ends_the_run(cluster: Any) -> None:
    with pytest.raises(UsageError, match=r"^dies-at-start killed the worker that was creating it, 2 times: "):
        evaluate(ray_parts.DiesAtStart(), _examples(40), progress=False, engine=RayEngine(cluster.address))


def test_a_node_is_killed_three_times_and_others_join(three_nodes: Any) -> None:
    """The head, where the driver is, stays. Nodes are made in the main thread alone, so the run has another one."""
    count, moments = 300, (40, 110, 180)
    due, done = threading.Semaphore(0), threading.Semaphore(0)

    def read() -> Iterator[dict[str, Any]]:
        for place, example in enumerate(_examples(count)):
            if place in moments:
                due.release()
            if place == count - 50:  # by now all three are dead
                for _ in moments:
                    done.acquire(timeout=120)
            yield example

    with ThreadPoolExecutor(1) as runner:
        engine = RayEngine(three_nodes.address)
        running = runner.submit(evaluate, ray_parts.Tail(0.1), read(), progress=False, engine=engine)
        for _ in moments:
            assert due.acquire(timeout=200)
            three_nodes.remove_node(three_nodes.list_all_nodes()[-1], allow_graceful=False)
            three_nodes.start_node()
            done.release()
        result = running.result(timeout=300)
    assert _keys(result.rows) == [("tail", k) for k in range(count)]
    assert [row.error for row in result.rows] == [None] * count


DRIVER = """
import sys
from context_bench import OpenAIProxy, RayEngine, evaluate
url, address, store = sys.argv[1:]
data = [{"id": k, "context": f"number {k}, {k * k}", "question": "?", "answer": str(k)} for k in range(60)]
system, engine = OpenAIProxy(url, name="served"), RayEngine(address)
evaluate(system, data, progress=False, max_workers=4, cache_dir=store, engine=engine)
"""


def test_a_driver_that_is_killed_is_resumed_from_its_store(cluster: Any, tmp_path: Path) -> None:
    in_flight = 4
    with Server(completion("yes", delay=0.5)) as server:
        arguments = [sys.executable, "-c", DRIVER, server.url, cluster.address, str(tmp_path / "store")]
        driver = subprocess.Popen(arguments, env=environment())
        try:
            _wait_until(lambda: len(server.chats) >= 20 or driver.poll() is not None)
            time.sleep(0.2)  # what was answered is on disk by now, and what was asked is not answered yet
        finally:
            os.kill(driver.pid, signal.SIGKILL)
            driver.wait()
        _wait_until(lambda: _is_quiet(server))
        result = evaluate(
            OpenAIProxy(server.url, name="served"),
            _examples(60),
            progress=False,
            max_workers=in_flight,
            cache_dir=tmp_path / "store",
            engine=RayEngine(cluster.address),
        )
        assert _keys(result.rows) == [("served", k) for k in range(60)]
        assert all(row.error is None for row in result.rows)
        assert 60 <= len(server.chats) <= 60 + in_flight


def _wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def _is_quiet(server: Server) -> bool:
    """Whether no request came for a second."""
    before = len(server.chats)
    time.sleep(1.0)
    return len(server.chats) == before
