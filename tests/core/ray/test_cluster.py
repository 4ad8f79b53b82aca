"""The connection to a cluster: what is said where there is none, and what one of our own leaves behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ray_parts
from command import environment, shell
from context_bench import EvalResult, RayEngine, UsageError, aevaluate, evaluate
from servers import free_port
from timing import depends_on_time

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("default"), pytest.mark.timeout(600)]

DATA = [{"id": 1, "context": "some text", "question": "?", "answer": "text"}]


@pytest.fixture(autouse=True)
def _ray(ray_folder: str) -> None:
    pytest.importorskip("ray", reason="the extra `ray` is not installed")


def test_an_address_where_nobody_listens_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    began = time.monotonic()
    with pytest.raises(
        UsageError, match=r"^no Ray cluster could be reached at '127.0.0.1:\d+' \(.*refused.*\): start it"
    ):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine="ray")
    assert time.monotonic() - began < 60  # Ray itself tries for minutes


@pytest.mark.parametrize("address", ["nonsense", "host:port", ":6379"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match=r"^'.*' is not the address of a Ray cluster: use HOST:PORT, or auto"):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=RayEngine(address))


def test_an_address_for_ray_client_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^'ray://head:10001' is an address for Ray Client, which a run cannot use: "):
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=RayEngine("ray://head:10001"))


def test_a_second_run_of_a_process_is_refused_and_the_first_goes_on(cluster: Any) -> None:
    """Ray has one connection for each process: the first run would take it away from the second when it ends."""

    def run() -> Any:
        data = [DATA[0] | {"id": number} for number in range(20)]
        return aevaluate(ray_parts.Tail(0.05), data, progress=False, engine=RayEngine(cluster.address))

    async def run_two() -> list[Any]:
        return await asyncio.gather(run(), run(), return_exceptions=True)

    first, second = asyncio.run(run_two())
    assert [row.error for row in first.rows] == [None] * 20
    assert isinstance(second, UsageError)
    assert str(second).startswith("another run of this process is on a Ray cluster: start this one when that has ended")
    assert len(asyncio.run(run()).rows) == 20, "and another one may follow"


def test_a_cluster_of_another_version_is_named_in_one_sentence(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    real = ray.__version__
    monkeypatch.setattr(ray, "__version__", "2.0.0")
    with pytest.raises(UsageError) as raised:
        evaluate(ray_parts.Halve(), DATA, progress=False, engine=RayEngine(cluster.address))
    (sentence,) = str(raised.value).splitlines()
    assert f"Ray: {real}" in sentence
    assert "Ray: 2.0.0" in sentence


WATCHER = """
import json
import os
import pathlib
import time

class Watcher:
    name = "watcher"

    def process(self, example):
        pathlib.Path("started").touch()
        time.sleep(float(example.get("seconds", 0)))
        return {"response": json.dumps(list_open(os.environ["MARK"])) if example["id"] == 0 else "done"}


def list_open(mark):
    found = []
    listening = {
        fields[9]: fields[1].rpartition(":")[0]
        for file in ("tcp", "tcp6")
        for fields in map(str.split, pathlib.Path("/proc/net", file).read_text().splitlines()[1:])
        if fields[3] == "0A"
    }
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found += [listening.get(os.readlink(fd)[8:-1]) for fd in (folder / "fd").iterdir()]
        except OSError:
            continue
    return sorted(set(filter(None, found)))
"""


def _find_processes(mark: str) -> dict[int, str]:
    """Find the processes that were started with a mark in their environment, however far down, and their commands."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and (command := (folder / "cmdline").read_bytes()):
                found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found


def _find_agents(mark: str) -> list[int]:
    return [pid for pid, command in _find_processes(mark).items() if "DashboardAgent" in command]


def _wait_until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def _write_run(folder: Path, count: int, seconds: float) -> tuple[list[str], dict[str, str], str]:
    """Write a system and its data; the command that runs it on a cluster of its own, its environment, and its mark."""
    (folder / "watcher.py").write_text(WATCHER)
    lines = [
        f'{{"id": {k}, "context": "c", "question": "q", "answer": "a", "seconds": {seconds}}}' for k in range(count)
    ]
    (folder / "data.jsonl").write_text("\n".join(lines))
    mark = uuid.uuid4().hex
    given = environment(MARK=mark)
    given = {key: value for key, value in given.items() if key == "RAY_TMPDIR" or not key.startswith("RAY_")}
    flags = ["--system", "watcher.py:Watcher", "--dataset", "data.jsonl", "--engine", "ray"]
    return flags, given, mark


@depends_on_time("Ray gives its own processes fixed times to start and to answer")
def test_a_cluster_of_our_own_is_quiet_keeps_to_this_machine_and_is_gone_afterwards(tmp_path: Path) -> None:
    flags, given, mark = _write_run(tmp_path, 3, 0.0)
    run = shell(*flags, "--output", "json", "--quiet", cwd=tmp_path, env=given)
    noise = [line for line in run.stderr.splitlines() if "no worker has started yet" not in line]  # on a busy machine
    assert (run.returncode, noise) == (0, [])
    result = EvalResult.from_json(run.stdout)
    assert [row.error for row in result.rows] == [None] * 3
    # 127.0.0.1, and the same as IPv6 writes it: nobody else can connect.
    assert set(json.loads(result.rows[0].response)) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    _wait_until(lambda: not _find_processes(mark))


@depends_on_time("Ray gives its own processes fixed times to start and to answer")
def test_ctrl_c_at_a_terminal_ends_the_run_and_its_cluster(tmp_path: Path) -> None:
    flags, given, mark = _write_run(tmp_path, 400, 0.2)
    command = [sys.executable, "-m", "context_bench", *flags, "--output", "json", "--quiet"]
    run = subprocess.Popen(command, cwd=tmp_path, env=given, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _wait_until(lambda: (tmp_path / "started").exists() or run.poll() is not None)
        os.killpg(run.pid, signal.SIGINT)  # a terminal tells all that belong to it
        said, _ = run.communicate(timeout=240)
    finally:
        run.kill()
    assert run.returncode == 130
    assert all(row.error is None for row in EvalResult.from_json(said).rows)  # what was in flight was finished
    _wait_until(lambda: not _find_processes(mark))


@depends_on_time("Ray gives its own processes fixed times to start and to answer")
def test_a_run_whose_only_node_dies_ends_and_keeps_its_rows(tmp_path: Path) -> None:
    """A node ends when its agent does, and no other takes its place in a cluster that the run started."""
    flags, given, mark = _write_run(tmp_path, 400, 0.2)
    command = [sys.executable, "-m", "context_bench", *flags, "--output", "json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    run = subprocess.Popen(command, cwd=tmp_path, env=given, **pipes)
    try:
        _wait_until(lambda: (tmp_path / "started").exists() or run.poll() is not None)
        time.sleep(2)
        _wait_until(lambda: _find_agents(mark) or run.poll() is not None)  # a busy machine starts it late
        (agent,) = _find_agents(mark)
        os.kill(agent, signal.SIGKILL)
        out, said = run.communicate(timeout=120)
    finally:
        run.kill()
    assert run.returncode == 2
    assert "the Ray node of this machine has died" in said
    assert 0 < len(EvalResult.from_json(out).rows) < 400


@depends_on_time("Ray gives its own processes fixed times to start and to answer")
def test_a_cluster_that_listens_on_loopback_alone_is_reached_there(tmp_path: Path) -> None:
    """Ray replaces 127.0.0.1 by the address that others see, where nobody listens, and would try for minutes."""
    port = free_port()
    flags, given, mark = _write_run(tmp_path, 3, 0.0)
    settings = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    start = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--node-ip-address=127.0.0.1"]
    start += [f"--port={port}", "--num-cpus=1", "--include-dashboard=false"]
    alone = {**given, **settings, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    subprocess.run(start, env=alone, capture_output=True, timeout=120, check=True)
    try:
        address = ("--ray-address", f"127.0.0.1:{port}")
        began = time.monotonic()
        done = shell(*flags, *address, "--output", "json", "--quiet", cwd=tmp_path, env={**given, **settings})
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - began < 60
    finally:
        for pid in _find_processes(mark):
            os.kill(pid, signal.SIGKILL)
