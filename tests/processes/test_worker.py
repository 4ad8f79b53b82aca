"""Worker processes: results, limits, replacement, and that nothing outlives us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from context_bench.processes.child import WorkerFailed, WorkerPool

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="limits and signals of POSIX")


def pool(function: str, seconds: float = 20, megabytes: int = 1024, size: int = 1) -> WorkerPool:
    return WorkerPool(function, seconds=seconds, megabytes=megabytes, size=size)


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_gone(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def test_runs_a_function_by_name_and_keeps_its_process() -> None:
    pids = pool("os:getpid")
    first = pids.call()
    assert first != os.getpid()
    assert pids.call() == first
    pids.close()


def test_unicode_and_lone_surrogates_pass_through() -> None:
    text = "λ ½ \ud800 \n"
    assert pool("operator:add").call(text, "!") == text + "!"


def test_an_exception_is_told_and_the_worker_lives_on() -> None:
    divide = pool("operator:truediv")
    with pytest.raises(WorkerFailed, match="ZeroDivisionError"):
        divide.call(1, 0)
    assert divide.call(1, 2) == 0.5


def test_a_hang_costs_one_call_and_the_worker_is_replaced() -> None:
    power = pool("builtins:pow", seconds=1)
    assert power.call(2, 10) == 1024
    started = time.monotonic()
    with pytest.raises(WorkerFailed, match="no result within 1 s"):
        power.call(9, 9**9)  # one long multiplication inside the interpreter: no signal handler would get a turn
    assert time.monotonic() - started < 30
    assert power.call(2, 11) == 2048


@POSIX_ONLY
def test_memory_is_limited() -> None:
    with pytest.raises(WorkerFailed, match="MemoryError"):
        pool("operator:mul", megabytes=512).call("x", 2**30)


def test_a_function_that_does_not_exist_is_named() -> None:
    with pytest.raises(WorkerFailed, match=r"no_such_module:f did not start: ModuleNotFoundError"):
        pool("no_such_module:f").call()


@POSIX_ONLY
def test_a_killed_worker_is_replaced() -> None:
    pids = pool("os:getpid")
    first = pids.call()
    os.kill(first, signal.SIGKILL)
    assert is_gone(first, 5)
    assert pids.call() != first


def test_many_threads_share_few_workers() -> None:
    add = pool("operator:add", size=2)
    results: list[int] = []
    threads = [threading.Thread(target=lambda i=i: results.append(add.call(i, i))) for i in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [2 * i for i in range(40)]


def test_a_worker_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert pool("os:getenv").call("OPENAI_API_KEY") is None


SPIN = """
import os

def spin():
    with open(os.environ["TMPDIR"] + "/pid", "w") as file:
        file.write(str(os.getpid()))
    9 ** 9**9
"""

BUSY = """
import threading, time
from context_bench.processes.child import WorkerPool
pids = WorkerPool("os:getpid", seconds=2, megabytes=1024, size=1)
pid = pids.call()
busy = WorkerPool("tests_worker_busy:spin", seconds=2, megabytes=1024, size=1)
threading.Thread(target=busy.call, daemon=True).start()
print(pid, flush=True)
time.sleep(60)
"""


@POSIX_ONLY
def test_workers_end_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "tests_worker_busy.py").write_text(SPIN, encoding="ascii")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, env=environment, text=True) as parent:
        assert parent.stdout is not None
        idle = int(parent.stdout.readline())
        deadline = time.monotonic() + 20
        written = tmp_path / "pid"
        while not (written.exists() and written.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        spinning = int(written.read_text())
        assert is_running(idle)
        assert is_running(spinning)
        parent.kill()
    assert is_gone(idle, 5)
    assert is_gone(spinning, 8)  # its own alarm: limit and grace


def test_nothing_is_left_or_warned_about_at_the_end() -> None:
    code = (
        "from context_bench.processes.child import WorkerPool\n"
        "print(WorkerPool('os:getpid', seconds=5, megabytes=1024).call())\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert is_gone(int(done.stdout), 5)
