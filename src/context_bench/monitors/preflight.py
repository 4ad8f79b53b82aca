"""The first request of each endpoint goes alone: what fails for it alone tells whether all others would fail too.

It is an ordinary example and an ordinary row, not a probe: nothing is paid twice, and nothing is sent when nothing is
left to ask.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence

from context_bench.core.call import Outcome
from context_bench.core.row import Job
from context_bench.errors import printable, warn
from context_bench.monitors.monitor import Monitor
from context_bench.results import EvalRow
from context_bench.traits import is_endpoint, system_traits
from context_bench.types import System

MIN_FAILURES, ANSWERS_PER_FAILURE = 3, 20
"""Requests in a row that must fail before a system is stopped that has answered in an earlier run: at least three, and
one more for every 20 answers. In a resumed run a few examples may fail for ever, and these are asked first."""


class Preflight(Monitor):
    """Holds the jobs of a system back until its first request is answered, and stops the system if that is no use.

    Args:
        systems: Those of the run. Only endpoints of our own are held back: of others no failure tells anything.
        drop: Called with the name of a system to which nothing more is to be sent.
    """

    def __init__(self, systems: Sequence[System], drop: Callable[[str], None]) -> None:
        self._drop = drop
        reasons = {each.name: system_traits(each).stop_reason for each in systems if is_endpoint(each)}
        self._explain = {name: explain for name, explain in reasons.items() if explain is not None}
        self._undecided = {name: asyncio.Lock() for name in self._explain}
        self._is_over = False
        self._alone: dict[int, asyncio.Lock] = {}
        self._answered: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self.stopped: dict[str, str] = {}  # the systems that do not work, and why
        self.done = not self._undecided

    def stop(self) -> None:
        """Let no job go that is held back."""
        self._is_over = True

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> None:  # noqa: ARG002
        """Note that the store has an answer of a system.

        Examples that failed in an earlier run are asked again before all others, and may fail for ever: a few of them
        do not tell that the system does not work.
        """
        if outcome.known and row.error is None and row.system in self._undecided:
            self._answered[row.system] += 1

    async def admit(self, job: Job) -> bool:
        """Let the first request of a system go alone; the others wait for what becomes of it."""
        name = job.system.name
        turn = self._undecided.get(name)
        if turn is None:
            return name not in self.stopped
        await turn.acquire()
        if name in self._undecided and not self._is_over:
            self._alone[job.order] = turn
            return True
        turn.release()
        return not self._is_over and name not in self.stopped

    async def settle(self, job: Job, outcome: Outcome | None) -> None:
        """Judge the system by the outcome of a request that went alone, and let the next one go."""
        turn = self._alone.pop(job.order, None)
        if turn is None:
            return
        if outcome is not None:
            self._judge(job.system.name, outcome)
        turn.release()

    def _judge(self, name: str, outcome: Outcome) -> None:
        """Stop a system whose first request failed for good, or release its jobs."""
        reason = self._explain[name](outcome.cause, outcome.processed)
        self._failed[name] += 1
        answered = self._answered[name]
        if reason is not None and answered and self._failed[name] < MIN_FAILURES + answered // ANSWERS_PER_FAILURE:
            return  # the next one goes alone too
        del self._undecided[name]
        self.done = not self._undecided and not self.stopped and reason is None
        if reason is not None:
            self.stopped[name] = printable(reason)
            self._drop(name)
            warn(describe_stop(name, printable(reason)))


def describe_stop(name: str, reason: str) -> str:
    """Say that a system was stopped, and why; one that is called by the place of its server is named once."""
    said = f"it{reason.removeprefix(name)}" if reason.startswith(f"{name} is ") else reason
    return f"{name} was stopped after its first request: {said}"
