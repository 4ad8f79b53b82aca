"""As process 1 of a container: orphans are collected, signals arrive, and the exit code is the command's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import environment
from numbered import right, write
from servers import Reply, Request, Server

INSIDE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def setup_module() -> None:
    try:
        allowed = subprocess.run([*INSIDE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this user may not make a process namespace")


SYSTEM = """
import os, pathlib, subprocess, time

def system(example):
    # The sleeping ones lose their parent at once, and become children of process 1.
    subprocess.run(["sh", "-c", "sleep 0.05 & sleep 0.05 & exit 0"], check=True)
    time.sleep(0.3)
    stats = (path.read_text() for path in pathlib.Path("/proc").glob("[0-9]*/stat"))
    zombies = sum(text.rpartition(")")[2].split()[0] == "Z" for text in stats)
    return {"response": f"{zombies} zombies, first {os.path.exists('/proc/1/status')}"}
"""


def test_orphans_are_collected(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(4))
    (tmp_path / "mine.py").write_text(SYSTEM)
    command = [sys.executable, "-m", "context_bench", "--system", "mine.py:system", "--dataset", "data.jsonl"]
    done = subprocess.run(
        [*INSIDE, *command, "--output", "json", "--no-store"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [row["response"] for row in json.loads(done.stdout)["rows"]] == ["0 zombies, first True"] * 4


def test_the_exit_code_is_the_commands(tmp_path: Path) -> None:
    command = [*INSIDE, sys.executable, "-m", "context_bench", "--no-such-flag"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=False)
    assert done.returncode == 2


def test_sigterm_reaches_the_run(tmp_path: Path) -> None:
    """`docker stop` sends it to process 1, which without a handler would not hear it."""
    write(tmp_path / "data.jsonl", *range(50))

    def slow(request: Request) -> Reply:
        given = right(request)
        given.delay = 0.2
        return given

    with Server(slow) as server:
        command = [sys.executable, "-m", "context_bench", "--proxy", server.url, "--name", "p", "--output", "json"]
        process = subprocess.Popen(
            [*INSIDE, *command, "--dataset", "data.jsonl", "--max-workers", "1"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        while len(server.chats) < 3:
            time.sleep(0.01)
        (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        subprocess.run(["kill", f"-{int(signal.SIGTERM)}", first], check=True)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert 3 <= len(json.loads(out)["rows"]) < 50
