"""Start-up: help costs little more than argparse, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("numpy", "pandas", "pyarrow", "splintr", "pycurl", "orjson", "asyncio", "rapidfuzz", "sqlite3", "logging")


def cpu_seconds(*arguments: str) -> float:
    """User and system time of one process."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="the CPU time of a process is not known here")
def test_help_costs_at_most_twice_what_argparse_and_json_cost() -> None:
    cpu_seconds("-m", "context_bench", "--help")  # compiles what is not compiled yet
    rounds = [
        (cpu_seconds("-c", "import argparse, json"), cpu_seconds("-m", "context_bench", "--help")) for _ in range(7)
    ]
    bare, ours = (min(times) for times in zip(*rounds))
    assert ours <= 2 * bare + 0.01


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["--bogus"]])
def test_nothing_heavy_is_imported_for_it(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from context_bench.cli import main\n"
        f"main({arguments!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_package_itself_is_light() -> None:
    code = f"import sys, context_bench\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
