"""Runs programs that a model wrote against tests, without trusting them.

docs/code-execution.md has the threat model.
"""

from context_bench.sandbox.code_blocks import find_code_blocks
from context_bench.sandbox.isolation import SANDBOXES, find_isolation
from context_bench.sandbox.verdict import ProgramVerdict, Task, read_task, run

__all__ = ["SANDBOXES", "ProgramVerdict", "Task", "find_code_blocks", "find_isolation", "read_task", "run"]
