"""A real cluster of three nodes on this machine, for all tests of this folder."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from context_bench import EvalResult, EvalRow

NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
"""What each node has: room for one worker, and little memory."""

_OF_TIMES = ("attempts", "waited", "request_seconds", "compressor_seconds")
"""Metadata that says how long something took."""


def _insist(start: Callable[[], Any], tries: int = 4) -> Any:
    """Start a node; Ray gives up after 30 seconds, which a busy machine may need."""
    for left in reversed(range(tries)):
        try:
            return start()
        except Exception as error:
            if not left or "timed out" not in str(error).lower():
                raise
    return None


def _wait_for_three(cluster: Any, seconds: float = 120.0) -> None:
    """Wait until three nodes are there, or more: one whose start was given up may come late."""
    end = time.monotonic() + seconds
    while len(cluster.global_state._live_node_ids()) < 3:
        assert time.monotonic() < end, "the nodes did not join"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def ray_folder() -> Iterator[str]:
    """A folder for the sockets and logs of Ray, whose paths must be short; nobody else's clusters are in it."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["RAY_TMPDIR"] = folder
        yield folder
        del os.environ["RAY_TMPDIR"]


@pytest.fixture(scope="session")
def cluster(ray_folder: str) -> Iterator[Any]:
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.skip("one cluster is enough for this machine: make ray-test runs these tests one after the other")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # on Linux it keeps every node on loopback
    pytest.importorskip("ray", reason="the extra `ray` is not installed")
    from ray.cluster_utils import Cluster

    made = _insist(lambda: Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False}))
    try:
        for _ in range(2):
            _insist(lambda: made.add_node(**NODE))
        _wait_for_three(made)
        made.start_node = lambda **more: _insist(lambda: made.add_node(**NODE, **more))
        yield made
    finally:
        made.shutdown()


@pytest.fixture
def three_nodes(cluster: Any) -> Iterator[Any]:
    """The cluster, with three nodes again afterwards."""
    yield cluster
    while len(cluster.list_all_nodes()) < 3:
        _insist(lambda: cluster.add_node(**NODE))
    _wait_for_three(cluster)


@pytest.fixture
def compared() -> Callable[[EvalResult], list[EvalRow]]:
    """The rows of a result without what times and places may change."""

    def strip(row: EvalRow) -> EvalRow:
        kept = {key: value for key, value in row.metadata.items() if key not in _OF_TIMES}
        return replace(row, latency=0.0, metadata=kept)

    return lambda result: [strip(row) for row in result.rows]
