"""Judging programs in a sandbox: what the tests of the sandbox and of its evaluator share."""

from __future__ import annotations

import pytest

from context_bench.errors import UsageError
from context_bench.sandbox import ProgramVerdict, find_code_blocks, find_isolation, read_task, run

__all__ = ["REACHED", "judge", "missing", "needs_sandbox"]

REACHED = "def check(c):\n    assert c() is True\n"
"""Passed by a function that returns True, which those of the attacks do when they get what they want."""


def missing() -> str:
    """Why there is no sandbox here; "" where there is one."""
    try:
        find_isolation("auto")
    except UsageError as error:
        return str(error)
    return ""


needs_sandbox = pytest.mark.skipif(bool(missing()), reason=missing())


def judge(program: str, test: str, sandbox: str = "auto", timeout: float = 10.0, entry: str = "add") -> ProgramVerdict:
    """Run a program against a test in HumanEval's form."""
    task = read_task({"test": test, "entry_point": entry})
    assert task is not None
    return run(task, find_code_blocks(program), find_isolation(sandbox), timeout)
