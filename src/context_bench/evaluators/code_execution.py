"""Programs judged by running their tests, in a sandbox that they can neither leave nor deceive.

The program and its tests run in two processes; only values pass between them, and the verdict comes from
the tests' process alone, after the last test. docs/code-execution.md has the threat model.
"""

from __future__ import annotations

import math
from typing import Any

from context_bench.errors import DataError, UsageError
from context_bench.results import Scores
from context_bench.sandbox import SANDBOXES, find_code_blocks, find_isolation, read_task, run
from context_bench.text.golds import response_text


class CodeExecution:
    """Scores `pass_at_1`: 1.0 when the code in the response passes every test of the example.

    Reads HumanEval's form (`test` with `check(candidate)`, `entry_point`, and the code to complete in
    `prompt` or `context`) and MBPP's (`test_list`, or asserts in `test`). The response may be a
    completion, a whole program, or a chat message with fences; code within `<think>` alone is not an answer.

    Args:
        timeout: Seconds of wall-clock time for one program with its tests.
        sandbox: "auto" and "bubblewrap" need bubblewrap, and where it is missing nothing is run or scored;
            "none" runs programs unprotected.
    """

    name = "code-execution"
    version = 3
    needs_answer = True
    score_fields = ("pass_at_1",)
    slow = True

    def __init__(self, timeout: float = 10.0, sandbox: str = "auto") -> None:
        if not 0 < timeout < math.inf:
            raise UsageError(f"timeout must be a number of seconds above 0 (got {timeout!r})")
        if sandbox not in SANDBOXES:
            raise UsageError(f"sandbox must be one of {', '.join(SANDBOXES)} (got {sandbox!r})")
        self.timeout = timeout
        self.sandbox = sandbox

    def explain_refusal(self) -> str | None:
        """Say why no program is run on this machine; None where the sandbox is there."""
        try:
            find_isolation(self.sandbox)
        except UsageError as error:
            return str(error)
        return None

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        """Run the program against the example's tests; `details["reason"]` says why it failed."""
        try:
            task = read_task(original)
        except DataError as error:
            return Scores(reason=str(error))
        if task is None:
            return Scores(reason="no tests: the example has neither test nor test_list")
        blocks = find_code_blocks(response_text(processed))
        if not blocks:
            return _make_failure("no code in the reply")
        if (refusal := self.explain_refusal()) is not None:
            return Scores(reason=refusal)
        verdict = run(task, blocks, find_isolation(self.sandbox), self.timeout)
        if verdict.passed is None:
            return Scores(reason=verdict.reason)
        return Scores({"pass_at_1": 1.0}) if verdict.passed else _make_failure(verdict.reason)


def _make_failure(reason: str) -> Scores:
    return Scores({"pass_at_1": 0.0}, details={"reason": reason})
