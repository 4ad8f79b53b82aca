"""A run whose notes nobody can read goes on, and its result is whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command import called, environment
from numbered import asked, right, write
from servers import Server

pytestmark = pytest.mark.skipif(os.name == "nt", reason="descriptors of POSIX")


def run(folder: Path, redirected: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with its streams redirected by a shell, as in `2>&-`."""
    command = [sys.executable, "-m", "context_bench", *arguments]
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirected}', "sh", *command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("redirected", ["2>&-", "2>/dev/full", "2>&- <&-"])
@pytest.mark.parametrize("verbose", [False, True])
def test_closed_stderr(tmp_path: Path, redirected: str, verbose: bool) -> None:
    if "full" in redirected and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    write(tmp_path / "data.jsonl", *range(20))
    more = ["--verbose"] if verbose else []
    with Server(right) as server:
        done = run(
            tmp_path,
            redirected,
            "--proxy",
            server.url,
            "--name",
            "p",
            "--dataset",
            "data.jsonl",
            "--output=json",
            *more,
        )
        assert done.returncode == 0
        assert len(asked(server)) == 20
    assert len(json.loads(done.stdout)["rows"]) == 20, "the notes are not in the result"
    assert len(called("runs", "export", "last", "--output", "csv", cwd=tmp_path).stdout.splitlines()) == 21


def test_a_reader_of_stderr_that_goes_away(tmp_path: Path) -> None:
    write(tmp_path / "data.jsonl", *range(200))
    with Server(right) as server:
        command = [sys.executable, "-m", "context_bench", "--proxy", server.url, "--name", "p", "--verbose"]
        process = subprocess.Popen(
            [*command, "--dataset", "data.jsonl", "--output", "json"],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        assert process.stdout is not None
        process.stderr.readline()
        process.stderr.close()
        out = process.stdout.read()
        assert process.wait(60) == 0
        process.stdout.close()
        assert len(asked(server)) == 200
    assert len(json.loads(out)["rows"]) == 200


def test_a_mistake_with_closed_stderr_keeps_its_exit_code(tmp_path: Path) -> None:
    done = run(tmp_path, "2>&-", "--no-such-flag")
    assert (done.returncode, done.stdout) == (2, "")


def test_closed_stdout_is_no_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, ">&- 2>err.txt", "--system", "passthrough", "--dataset", "needle:length=100,n=2", "--no-store")
    assert done.returncode == 0
    assert "Traceback" not in (tmp_path / "err.txt").read_text()
