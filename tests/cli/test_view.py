"""`context-bench view` as a process: it prints its address, answers, and ends when it is told to."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from getpass import getuser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from command import called, environment, shell
from context_bench import evaluate
from context_bench.store.database import connect


def _keep(example: dict[str, Any]) -> str:
    return str(example["context"])


@pytest.mark.parametrize(
    ("number", "ssh"), [(signal.SIGINT, ""), (signal.SIGTERM, "203.0.113.7 50000 198.51.100.2 22")]
)
def test_it_answers_until_it_is_told_to_end(tmp_path: Path, number: int, ssh: str) -> None:
    examples = [{"id": 1, "context": "c", "question": "q", "answer": "c"}]
    evaluate([_keep], examples, cache_dir=str(tmp_path / "runs"), progress=False)
    command = [sys.executable, "-m", "context_bench", "view", "--store", "runs", "--no-open"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    environ = environment(SSH_CONNECTION=ssh)
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen(command, cwd=tmp_path, env=environ, text=True, **pipes))
        stack.callback(process.kill)  # leaving Popen's block waits for its end
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/runs", timeout=60) as reply:
            assert b'"rows":1' in reply.read()
        assert "Ctrl-C stops" in process.stderr.readline()
        if ssh:
            assert "this command opens a tunnel" in process.stderr.readline()
            port = urlsplit(address).port
            assert process.stderr.readline().strip() == f"ssh -N -L {port}:127.0.0.1:{port} {getuser()}@198.51.100.2"
        process.send_signal(number)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--store", "none"], "there is no store in none: nothing was recorded there yet"),
        (["--port", "70000"], "must be a port from 0 to 65535 (got '70000')"),
        (["--port", "x"], "must be a port from 0 to 65535 (got 'x')"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, flags: list[str], said: str) -> None:
    done = called("view", "--no-open", *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("version", "written"), [(99, "a newer"), (3, "an older")])
def test_a_store_of_another_version_is_one_sentence(tmp_path: Path, version: int, written: str) -> None:
    connect(tmp_path).execute(f"PRAGMA user_version = {version}").connection.close()
    done = shell("view", "--no-open", "--store", str(tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert f"was written by {written} context-bench" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_token_is_not_in_the_command_line_of_the_browser(tmp_path: Path) -> None:
    """Every user of a machine can read command lines: the browser is given a file that leads to the address."""
    examples = [{"id": 1, "context": "c", "question": "q", "answer": "c"}]
    evaluate([_keep], examples, cache_dir=str(tmp_path / "runs"), progress=False)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncp "${{1#file://}}" {tmp_path}/page.html\n')
    browser.chmod(0o755)
    told = environment(BROWSER=str(browser), DISPLAY=":1")
    command = [sys.executable, "-m", "context_bench", "view", "--store", "runs"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, env=told, text=True, **pipes) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        for _ in range(600):
            if (tmp_path / "page.html").exists() and (tmp_path / "page.html").stat().st_size:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    asked = (tmp_path / "asked").read_text().strip()
    assert asked.startswith("file://")
    assert address.rstrip("/").rpartition("/")[2] not in asked
    assert f"url={address}" in (tmp_path / "page.html").read_text()
    page = Path(asked.removeprefix("file://"))
    assert not page.exists(), "it is gone with the viewer"
