"""The connection to a cluster: what is said where there is none, and what one of our own leaves behind."""

from __future__ import annotations

import time
from typing import Any

import pytest

import ray_parts
from context_bench import RayEngine, UsageError, evaluate
from servers import free_port

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default"), pytest.mark.timeout(300)]

DATA = [{"id": 1, "context": "some text", "question": "?", "answer": "text"}]


@pytest.fixture(autouse=True)
def _ray() -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")


def test_an_address_where_nobody_listens_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    began = time.monotonic()
    with pytest.raises(
        UsageError, match=r"^no Ray cluster could be reached at '127.0.0.1:\d+' \(.*refused.*\): start it"
    ):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine="ray")
    assert time.monotonic() - began < 60  # Ray itself tries for minutes


@pytest.mark.parametrize("address", ["nonsense", "host:port", ":6379", "ray://nowhere"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=r"^'.*' is not the address of a Ray cluster: give HOST:PORT, or auto"):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=RayEngine(address))


def test_a_cluster_of_another_version_is_named_in_one_sentence(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    real = ray.__version__
    monkeypatch.setattr(ray, "__version__", "2.0.0")
    with pytest.raises(UsageError) as raised:
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=RayEngine(cluster.address))
    (sentence,) = str(raised.value).splitlines()
    assert f"Ray: {real}" in sentence
    assert "Ray: 2.0.0" in sentence
