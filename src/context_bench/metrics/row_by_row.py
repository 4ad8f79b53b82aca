"""The shape that all metrics here share: rows are added one at a time, so that a run of any length fits in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod

from context_bench.results import EvalRow
from context_bench.summary import fold
from context_bench.types import Tally

__all__ = ["NoTally", "RunningMetric"]


class RunningMetric(ABC):
    """A metric whose numbers grow row by row. A metric of a user needs no parent: `name` and `compute` are enough."""

    @abstractmethod
    def start(self) -> Tally:
        """Start counting: return a new tally, to which the rows of one system are added."""

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Add all rows to a new tally, and return its numbers."""
        return fold(self.start(), rows)


class NoTally:
    """Counts nothing, for numbers that compare systems and do not come from the rows of one.

    Args:
        values: What stands there until systems are compared.
    """

    def __init__(self, **values: float) -> None:
        self._values = values

    def add(self, row: EvalRow) -> None:
        """Ignore the row."""

    def result(self) -> dict[str, float]:
        """Return the placeholder."""
        return dict(self._values)
