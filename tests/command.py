"""The command line for tests: in a process of its own, or called in this one."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["called", "environment", "shell"]


def environment(**more: str) -> dict[str, str]:
    """The environment of a test, without the keys of whoever runs it."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, "PYTHONWARNINGS": "default", **more}


def shell(*arguments: str, cwd: Path, timeout: float = 240.0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `context-bench` with these arguments to its end."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    command = [sys.executable, "-m", "context_bench", *arguments]
    return subprocess.run(command, cwd=cwd, encoding="utf-8", timeout=timeout, check=False, **options)


def called(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same within this process, which costs no start-up."""
    from context_bench.cli import main

    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(cwd)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    finally:
        os.chdir(before)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
