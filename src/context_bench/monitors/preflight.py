"""The first request of each endpoint goes alone: what fails for it alone tells whether all others would fail too.

It is an ordinary example and an ordinary row, not a probe: nothing is paid twice, and nothing is sent when nothing is
left to ask.
"""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from context_bench.core.call import Outcome
from context_bench.core.row import Job
from context_bench.errors import printable
from context_bench.traits import is_endpoint, system_traits
from context_bench.types import System

__all__ = ["Preflight", "describe_stop"]

_CHANCES, _ANSWERS = 3, 20
"""Requests in a row that have to fail before a system is stopped that has answered in an earlier run: so many, and one
more for so many answers. Of a long run that goes on a few examples may fail for ever, and these are asked first."""


class Preflight:
    """Holds the jobs of a system back until its first request is answered, and stops the system if that is no use.

    Args:
        systems: Those of the run. Only endpoints of our own are held back: of others no failure tells anything.
        run: Brings a job to its row; gives the outcome when the system was really asked.
        stop: Called with a system of which nothing more is to be sent.

    Attributes:
        undecided: The systems that are not known to work yet, each with the turn of its first request.
        stopped: The systems that do not, and why.
    """

    def __init__(
        self,
        systems: Sequence[System],
        run: Callable[[Job], Awaitable[Outcome | None]],
        stop: Callable[[System], None],
    ) -> None:
        self._run, self._stop = run, stop
        self.undecided = {each.name: asyncio.Lock() for each in systems if _can_explain(each)}
        self._over = False
        self._answered: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self.stopped: dict[str, str] = {}

    def end(self) -> None:
        """Start nothing more: jobs that are held back are dropped."""
        self._over = True

    def note_answered(self, name: str) -> None:
        """Note that the store has an answer of a system.

        Examples that failed in an earlier run are asked again before all others, and may fail for ever: a few of them
        do not tell that the system does not work.
        """
        if name in self.undecided:
            self._answered[name] += 1

    async def lets(self, job: Job) -> bool:
        """Run the job alone if it is the first of its system; True if it must still be run."""
        name = job.system.name
        async with self.undecided[name]:
            if name not in self.undecided or self._over:
                return not self._over and name not in self.stopped
            outcome = await self._run(job)
            if outcome is not None:
                self._judge(job.system, outcome)
            return False

    def _judge(self, system: System, outcome: Outcome) -> None:
        """Stop a system whose first request failed for good, or release its jobs."""
        explain = system_traits(system).stop_reason
        name, reason = system.name, None if explain is None else explain(outcome.cause, outcome.processed)
        self._failed[name] += 1
        answered = self._answered[name]
        if reason is not None and answered and self._failed[name] < _CHANCES + answered // _ANSWERS:
            return  # the next one goes alone too
        del self.undecided[name]
        if reason is not None:
            self.stopped[name] = printable(reason)
            self._stop(system)
            warnings.warn(describe_stop(name, printable(reason)), stacklevel=2)


def _can_explain(system: System) -> bool:
    return is_endpoint(system) and system_traits(system).stop_reason is not None


def describe_stop(name: str, reason: str) -> str:
    """Say that a system was stopped, and why; one that is called by the place of its server is named once."""
    said = f"it{reason.removeprefix(name)}" if reason.startswith(f"{name} is ") else reason
    return f"{name} was stopped after its first request: {said}"
