"""Programs that are started for a run, and that end together with everything they started themselves."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence

__all__ = ["end", "start", "wait_for_end"]


def start(command: Sequence[str], stderr: int | None = None) -> subprocess.Popen[bytes]:
    """Start a program in a group of its own, with pipes to its stdin and from its stdout."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, start_new_session=True)


def wait_for_end(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit code of a program that ends by itself within so many seconds; None for one that does not."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def end(process: subprocess.Popen[bytes]) -> int:
    """Kill the whole group; the program's exit code, which is its own if that had been waited for before."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):  # nobody is left
        pass
    return process.wait()
