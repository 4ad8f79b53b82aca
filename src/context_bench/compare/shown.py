"""What both kinds of comparison show: a table in print and in a notebook, one verdict by name, and a frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from context_bench.numbers import get_number
from context_bench.registry import import_object
from context_bench.stats import Verdict

if TYPE_CHECKING:
    import pandas

MAX_LINES = 8  # systems in a `repr`


@dataclass(frozen=True, repr=False)
class ShownComparison(ABC):
    """A comparison of systems with a baseline, as `EvalResult.compare` returns it.

    Attributes:
        baseline: The system, or the run, that the others are compared with.
        metric: The key of the compared number: the run's score, or another that the user chose.
        margin: The largest difference that does not matter.
    """

    baseline: str
    metric: str
    margin: float

    @abstractmethod
    def list_verdicts(self) -> list[Verdict]:
        """List the verdict on each system, over all datasets."""

    @abstractmethod
    def __str__(self) -> str:
        """Lay out the verdicts as tables, with the notes needed to read them."""

    def of(self, system: str) -> Verdict | None:
        """Return the verdict on a system; None for the baseline itself, or for a system that was not compared."""
        return next((verdict for verdict in self.list_verdicts() if verdict.name == system), None)

    def to_dataframe(self) -> pandas.DataFrame:
        """Make a frame: a line for each system, with its difference, interval, p and verdict (extra `dataframe`)."""
        found = self.list_verdicts()
        same = {"baseline": self.baseline, "metric": self.metric, "margin": self.margin}
        columns = {
            "system": [each.name for each in found],
            **{key: [value] * len(found) for key, value in same.items()},
            "n": [each.n for each in found],
            "difference": [each.difference for each in found],
            "difference:low": [each.interval.low for each in found],
            "difference:high": [each.interval.high for each in found],
            "p": [each.p for each in found],
            "p_holm": [each.p_holm for each in found],
            "verdict": [each.word for each in found],
            "reason": [each.reason for each in found],
        }
        return import_object("context_bench.output.exports:make_frame")(columns)

    def __repr__(self) -> str:
        found = self.list_verdicts()
        title = get_number(self.metric).title
        lines = [f"{type(self).__name__}: {title} against {self.baseline}, margin ±{self.margin:g}"]
        for each in found[:MAX_LINES]:
            limits = f" [{each.interval.low:+.3f}, {each.interval.high:+.3f}]" if each.interval.known else ""
            lines.append(f"  {each.name}: {each.difference:+.3f}{limits}, {each.word}")
        if len(found) > MAX_LINES:
            lines.append(f"  and {len(found) - MAX_LINES} more")
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        return str(self)
