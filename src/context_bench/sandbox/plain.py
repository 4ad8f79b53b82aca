"""Interpreters as ordinary processes with limits: enough for programs that mean no harm, and only for them.

They run as the user, with the user's files and network in reach.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from context_bench.processes.child import kill_group, start_child
from context_bench.sandbox.interpreter import (
    LIMITS,
    MEMORY,
    Child,
    build_command,
    build_environment,
    open_job_file,
)

__all__ = ["Plain"]


class Plain:
    """Starts each interpreter in a session and a temporary directory of its own."""

    def start(self, main: str, job: dict[str, Any], files: Sequence[int], seconds: int) -> Child:
        """Start an interpreter without protection."""
        limits = {**LIMITS, "RLIMIT_CPU": seconds}
        if sys.platform == "linux":
            limits["RLIMIT_AS"] = MEMORY
        directory = tempfile.mkdtemp(prefix="context-bench-")
        try:
            with open_job_file(main, {**job, "limits": limits, "user": None, "cpus": None}) as stdin:
                process = start_child(
                    build_command(),
                    stdin=stdin,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    files=files,
                    cwd=directory,
                    env=build_environment(directory),
                )
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return _Session(process, directory)


class _Session:
    def __init__(self, process: subprocess.Popen[bytes], directory: str) -> None:
        self._process, self._directory = process, directory

    def follow(self) -> None:
        """Nothing to do: the process that was started is the interpreter."""

    def end(self) -> None:
        """Kill the process group, and remove the directory."""
        kill_group(self._process)
        shutil.rmtree(self._directory, ignore_errors=True)
