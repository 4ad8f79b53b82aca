"""The first request of each endpoint is sent alone: its failure shows whether all others would fail too.

It is an ordinary example with an ordinary row, not a probe. So nothing is paid twice, and nothing is sent if the cache
has all answers.
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
"""Consecutive failures that stop a system with answers of an earlier run: at least three, and one more per 20 answers.
A resumed run first repeats the examples that failed, and a few of these may always fail."""


class Preflight(Monitor):
    """Holds the jobs of a system back until its first request is answered; stops the system if it fails permanently.

    Args:
        systems: The systems of the run. Only our own endpoints are held back: failures of other systems prove nothing.
        drop: Called with the name of a system that must be stopped.
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
        self.stopped: dict[str, str] = {}  # stopped systems, and why
        self.done = not self._undecided

    def stop(self) -> None:
        """Drop all jobs that are held back."""
        self._is_over = True

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> None:  # noqa: ARG002
        """Count the stored answers of a system.

        Examples that failed in an earlier run are asked first and may always fail: a few such failures do not show that
        the system does not work.
        """
        if outcome.known and row.error is None and row.system in self._undecided:
            self._answered[row.system] += 1

    async def admit(self, job: Job) -> bool:
        """Admit the first request of a system alone; the others wait for its outcome."""
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
        """Judge the system by the outcome of a request that was sent alone, then release the next."""
        turn = self._alone.pop(job.order, None)
        if turn is None:
            return
        if outcome is not None:
            self._judge(job.system.name, outcome)
        turn.release()

    def _judge(self, name: str, outcome: Outcome) -> None:
        """Stop a system whose first request failed permanently, or release its jobs."""
        reason = self._explain[name](outcome.cause, outcome.processed)
        self._failed[name] += 1
        answered = self._answered[name]
        if reason is not None and answered and self._failed[name] < MIN_FAILURES + answered // ANSWERS_PER_FAILURE:
            return  # the next one is sent alone too
        del self._undecided[name]
        self.done = not self._undecided and not self.stopped and reason is None
        if reason is not None:
            self.stopped[name] = printable(reason)
            self._drop(name)
            warn(describe_stop(name, printable(reason)))


def describe_stop(name: str, reason: str) -> str:
    """Say that a system was stopped, and why; a name that is also the server's address appears once."""
    said = f"it{reason.removeprefix(name)}" if reason.startswith(f"{name} is ") else reason
    return f"{name} was stopped after its first request: {said}"
