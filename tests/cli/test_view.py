"""`context-bench view` as a process: it prints its address, answers, and ends when it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from command import called, environment, shell
from context_bench import evaluate
from context_bench.store.database import connect


def _keep(example: dict[str, Any]) -> str:
    return str(example["context"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_it_is_told_to_end(tmp_path: Path, number: int) -> None:
    examples = [{"id": 1, "context": "c", "question": "q", "answer": "c"}]
    evaluate([_keep], examples, cache_dir=str(tmp_path / "runs"), progress=False)
    command = [sys.executable, "-m", "context_bench", "view", "--store", "runs", "--no-open"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/runs", timeout=60) as reply:
            assert b'"rows":1' in reply.read()
        assert "Ctrl-C ends it" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--store", "none"], "there is no store in none: nothing was recorded there yet"),
        (["--port", "70000"], "must be a port from 0 to 65535 (got 70000)"),
        (["--port", "x"], "must be a port from 0 to 65535 (got 'x')"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, flags: list[str], said: str) -> None:
    done = called("view", "--no-open", *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_store_of_a_newer_version_is_one_sentence(tmp_path: Path) -> None:
    connect(tmp_path).execute("PRAGMA user_version = 99").connection.close()
    done = shell("view", "--no-open", "--store", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert "was written by a newer context-bench" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
