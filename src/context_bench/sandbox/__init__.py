"""Runs programs that a model wrote against tests, without trusting them.

docs/code-execution.md says what is kept from whom, and how.
"""

from context_bench.sandbox.extract import code_blocks
from context_bench.sandbox.find import SANDBOXES, find_isolation
from context_bench.sandbox.run import Verdict, run
from context_bench.sandbox.task import Task, read_task

__all__ = ["SANDBOXES", "Task", "Verdict", "code_blocks", "find_isolation", "read_task", "run"]
