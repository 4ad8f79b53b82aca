"""Code: programs judged by running their tests, and patches by the files that they change.

The program and its tests run in two processes, in a sandbox that they can neither leave nor deceive; only values pass
between them, and the verdict comes from the tests' process alone, after the last test. docs/code-execution.md has the
threat model. Patches are neither applied nor run.
"""

from __future__ import annotations

import math
import re
from typing import Any

from context_bench.errors import DataError, UsageError
from context_bench.results import Scores
from context_bench.sandbox import SANDBOXES, find_code_blocks, find_isolation, read_task, run
from context_bench.text.golds import gold_answers, response_text


class CodeExecution:
    """Scores `pass_at_1`: 1.0 when the code in the response passes every test of the example.

    Reads HumanEval's form (`test` with `check(candidate)`, `entry_point`, and the code to complete in `prompt` or
    `context`) and MBPP's (`test_list`, or asserts in `test`). The response may be a completion, a whole program, or a
    chat message with fences; code within `<think>` alone is not an answer.

    The `timeout` is wall-clock seconds for one program with its tests. The `sandbox` "auto" and "bubblewrap" need
    bubblewrap: without it, nothing is run or scored. "none" runs programs unprotected.
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
        """Return why this machine cannot run programs; None if the sandbox works."""
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


_GIT = re.compile(r"^diff --git a/(.+?) b/(.+)$", re.MULTILINE)
_SIDES = re.compile(r"^--- (?:a/)?([^\t\n]+)[^\n]*\n\+\+\+ (?:b/)?([^\t\n]+)", re.MULTILINE)
_PATH = re.compile(r"(?<![\w./:-])((?:[\w.+-]+/)+[\w.+-]*\w|[\w+-]+\.[A-Za-z]\w{0,5})(?![\w/])")
MAX_PATCH_CHARS = 400_000


def find_patched_files(text: str) -> set[str]:
    """Find the files in the headers of a diff, with both names of a renamed file."""
    pairs = _GIT.findall(text) or _SIDES.findall(text)
    return {path.strip() for pair in pairs for path in pair} - {"/dev/null"}


def find_named_files(text: str) -> set[str]:
    """Find paths in a reply that is not a diff."""
    return set(_PATH.findall(text[:MAX_PATCH_CHARS]))


class PatchFiles:
    """Scores `patch_file_recall`, `patch_file_precision` and `patch_file_f1`.

    They compare the files of the gold patch with those of the reply: the headers of its diff or, without a diff, the
    paths that it names. They show where a system would change the code, not whether the change is right. With several
    gold patches, the one with the best F1 counts.
    """

    name = "patch-files"
    version = 2
    score_fields = ("patch_file_recall", "patch_file_precision", "patch_file_f1")

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [files for gold in gold_answers(original) if (files := find_patched_files("\n".join(gold)))]
        if not golds:
            return Scores(reason="no gold patch")
        response = response_text(processed)
        given = find_patched_files(response) or find_named_files(response)
        best = max((_score_overlap(given, gold) for gold in golds), key=lambda scores: scores[2])
        return Scores(dict(zip(self.score_fields, best)), details={"files": sorted(given)[:50]})


def _score_overlap(given: set[str], gold: set[str]) -> tuple[float, float, float]:
    hits = len(given & gold)
    if not hits:
        return 0.0, 0.0, 0.0
    return hits / len(gold), hits / len(given), 2 * hits / (len(gold) + len(given))
