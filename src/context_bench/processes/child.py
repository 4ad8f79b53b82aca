"""Child processes: started in a group of their own, killed as a group, and heard to the end.

A group of its own, since Ctrl-C in a terminal is for us to handle, and since a program may start others: killing the
group ends them with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO

from context_bench.errors import printable

__all__ = ["LastLines", "describe_exit", "kill_group", "kill_process", "start_child", "wait_for_end"]

File = int | IO[bytes] | None

MAX_COLLECT_SECONDS = 1.0
"""How long to wait for the orphans of a killed group; one that changed its user may have survived."""


def start_child(
    command: Sequence[str],
    *,
    stdin: File = subprocess.PIPE,
    stdout: File = subprocess.PIPE,
    stderr: File = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    files: Sequence[int] = (),
    own_group: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a program without a shell.

    Args:
        command: The program and its arguments.
        stdin: By default a pipe, as is `stdout`.
        stdout: Where its output goes.
        stderr: Ours by default.
        env: Its whole environment; ours by default.
        cwd: Its directory; ours by default.
        files: Open files that it inherits; all others are closed.
        own_group: False for one that makes a session of its own inside, and is not to be killed by its group.
    """
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        pass_fds=files,
        start_new_session=own_group,
    )


def wait_for_end(process: subprocess.Popen[bytes], seconds: float | None) -> int | None:
    """Wait for a program to end by itself; its exit code, or None when it has not ended within so many seconds."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def kill_group(process: subprocess.Popen[bytes]) -> int:
    """Kill a program and its group, and wait; the exit code, which is its own if that had been waited for before."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):  # nobody is left
        pass
    code = process.wait()
    if os.getpid() == 1:
        _collect_orphans(process.pid)
    return code


def _collect_orphans(group: int) -> None:
    """Wait for the rest of a killed group, which process 1 inherits: nobody else would."""
    deadline = time.monotonic() + MAX_COLLECT_SECONDS
    try:
        while time.monotonic() < deadline:
            if os.waitpid(-group, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
    except ChildProcessError:  # all are collected
        pass


def kill_process(pid: int) -> None:
    """Kill a process by its number; nothing happens when it has gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def describe_exit(code: int | None) -> str:
    """Say how a process ended, by its exit code."""
    if code is None:
        return "not ended"
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


class LastLines:
    """The last lines that a process says, read by a thread: a pipe that nobody reads would stop it when it is full.

    Args:
        stream: The pipe; closed at its end.
        most: How many lines are kept.
    """

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self.lines: deque[str] = deque(maxlen=most)
        self._stream = stream
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with self._stream as stream:
            for line in stream:
                self.lines.append(printable(line.decode(errors="replace")))

    def wait(self, seconds: float) -> None:
        """Wait for the end of the stream, which comes with the end of all who can write to it."""
        self._reader.join(seconds)
