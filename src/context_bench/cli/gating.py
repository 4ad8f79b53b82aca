"""The gate of a run or of a comparison: its sentences on stderr, its files, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from context_bench.cli.messages import say

if TYPE_CHECKING:
    from context_bench.compare.conditions import Condition
    from context_bench.compare.gates import Candidate, Outcome

__all__ = ["Gate", "OpenGate"]

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True)
class Gate:
    """The flags of a gate."""

    conditions: Sequence[Condition]
    junit: str | None
    summary: str | None

    @classmethod
    def read(cls, flags: Any) -> Gate:
        """Read the flags of `add_gate`.

        Raises:
            UsageError: There is a file for the outcomes of conditions, and no condition.
        """
        if flags.junit and not flags.fail_if:
            from context_bench.errors import UsageError

            raise UsageError("--junit has nothing to write without a condition: add --fail-if")
        return cls(flags.fail_if, flags.junit, flags.summary)

    @contextmanager
    def open(self, allowed: Collection[str] = ()) -> Iterator[OpenGate]:
        """Try the files before anything is run; they are replaced when they are whole.

        `allowed` are numbers that the run may have: one that it turns out not to have leaves its condition open.
        """
        from context_bench.cli.output import open_destination

        with ExitStack() as stack:
            writers = {
                flag: stack.enter_context(open_destination(path, quiet=True, flag=flag))
                for flag, path in (("--junit", self.junit), ("--summary", self._find_summary()))
                if path
            }
            yield OpenGate(self, writers, allowed)

    def _find_summary(self) -> str | None:
        """Return the file of --summary, unless it is the one that is appended to anyway."""
        same = self.summary and self.conditions and self.summary == os.environ.get(STEP_SUMMARY)
        return None if same else self.summary


class OpenGate:
    """A gate whose files can be written."""

    def __init__(self, gate: Gate, writers: dict[str, Any], allowed: Collection[str] = ()) -> None:
        self._gate, self._writers, self._allowed = gate, writers, allowed

    @property
    def conditions(self) -> Sequence[Condition]:
        """The conditions under which it fails."""
        return self._gate.conditions

    @property
    def wants_report(self) -> bool:
        """Whether a table is needed for a summary."""
        return "--summary" in self._writers or bool(self._gate.conditions and os.environ.get(STEP_SUMMARY))

    def judge(self, candidates: Sequence[Candidate], missing: Sequence[Outcome] = ()) -> list[Outcome]:
        """Judge the conditions, and say what each came to; `missing` systems have failed already."""
        if not self._gate.conditions:
            return []
        from context_bench.compare.gates import judge_gate

        outcomes = [*missing, *judge_gate(self._gate.conditions, candidates, self._allowed)]
        for each in outcomes:
            say(f"gate: {each.sentence}")
        return outcomes

    def write(self, outcomes: Sequence[Outcome], report: str) -> int:
        """Write the files, and return the exit code: 1, 4 or 0."""
        if "--junit" in self._writers:
            from context_bench.output.files import render_junit

            self._writers["--junit"](render_junit(outcomes))
        if self.wants_report:
            from context_bench.output.files import render_summary

            text = render_summary(report, outcomes)
            if "--summary" in self._writers:
                self._writers["--summary"](text)
            if self._gate.conditions and os.environ.get(STEP_SUMMARY):
                _append(Path(os.environ[STEP_SUMMARY]), text)
        if not outcomes:
            return 0
        from context_bench.compare.gates import find_exit_code

        return find_exit_code(outcomes)


def _append(path: Path, text: str) -> None:
    """Append to the summary of a CI job; that it cannot be written is no reason to fail."""
    try:
        with path.open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        say(f"cannot append to ${STEP_SUMMARY} ({path}): {error.strerror or error}")
