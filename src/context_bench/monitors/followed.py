"""Tells matched controls the size that their system reached on each example, and when no more rows will come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from context_bench.core.call import Outcome
from context_bench.core.row import Job
from context_bench.monitors.monitor import Monitor
from context_bench.results import EvalRow
from context_bench.traits import system_traits
from context_bench.types import System


class Followed(Monitor):
    """Hands the rows of systems to the controls that are cut to their size."""

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
