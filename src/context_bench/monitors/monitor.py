"""Base class of monitors, which watch a run: they can delay a request, drop a system or stop the run.

Preflight, budget, error limit, interim looks, progress and debugging are monitors. `core/run.py` builds the monitors
that a run needs and calls them all in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from context_bench.traits import system_traits
from context_bench.types import System

if TYPE_CHECKING:
    from context_bench.core.call import Outcome
    from context_bench.core.row import Job
    from context_bench.results import EvalRow


class Monitor:
    """Watches a run. Only overridden methods are called, and `settle` only if `admit` is overridden too.

    Attributes:
        done: Whether it will admit every request from now on, so `admit` need not be called.
    """

    done = False

    async def admit(self, job: Job) -> bool:  # noqa: ARG002
        """Wait until the request of a job may be sent; False drops the job."""
        return True

    async def settle(self, job: Job, outcome: Outcome | None) -> None:
        """Take the outcome of an admitted request; None if another monitor refused it or it raised `Stopped`."""

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> str | None:  # noqa: ARG002
        """Take a finished row, and return the reason to stop the run, if any."""
        return None

    def drop(self, name: str) -> None:
        """Note that nothing more is sent to the system of this name."""

    def stop(self) -> None:
        """Admit nothing more, because the run is stopped."""


class Debug(Monitor):
    """Stops the run at the first exception of a user's own code, and keeps it in `bug` for the debugger."""

    def __init__(self) -> None:
        self.bug: BaseException | None = None

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> str | None:  # noqa: ARG002
        from context_bench.core.call import find_bug  # not at the top: progress bars do not need the core

        if self.bug is not None or (bug := find_bug(outcome.cause)) is None:
            return None
        self.bug = bug
        return f"{row.system} raised {row.error} on example {row.example_id!r}"


class Followed(Monitor):
    """Tells matched controls the size that their system reached on each example, and when no more rows will come."""

    def __init__(self, systems: Sequence[System]) -> None:
        found = [system_traits(each).follows for each in systems]
        self._followers = {each.system: each for each in found if each is not None}
        self.wanted = bool(self._followers)

    def on_row(self, job: Job, row: EvalRow, outcome: Outcome) -> None:  # noqa: ARG002
        """Note how many tokens a system left out of an example."""
        follower: Any = self._followers.get(row.system)
        if follower is not None and not row.repeat:
            sent, left, saved = row.metadata.get("sent_tokens"), row.upstream_tokens, None
            if row.error is None and isinstance(sent, int) and left is not None:
                saved = sent - left
            follower.note(job.item.example, saved)

    def drop(self, name: str) -> None:
        """Release controls that wait for a stopped system."""
        if name in self._followers:
            self._followers[name].close()

    def stop(self) -> None:
        """Release all controls: no more rows will come."""
        for each in self._followers.values():
            each.close()
