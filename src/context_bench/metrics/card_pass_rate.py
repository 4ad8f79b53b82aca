"""The share that passes by the threshold which a dataset's card recommends, beside the usual one.

Hardly any system reaches a ROUGE score of 0.7. Rows say in their metadata which threshold their card recommends;
without any such row there is no number.
"""

from __future__ import annotations

from dataclasses import dataclass

from context_bench.metrics.quality import ScoreCount
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow

__all__ = ["CardPassRate"]


@dataclass(frozen=True)
class CardPassRate(RunningMetric):
    """`card_pass_rate` over the rows whose card recommends a threshold, and `card_threshold` where that is one."""

    score_field: str = "score"
    name = "card-pass-rate"
    by_dataset = ("card_pass_rate", "card_threshold")

    def start(self) -> CardPassTally:
        """Start counting."""
        return CardPassTally(self.score_field)


class CardPassTally:
    """Counts passes, each by the threshold of its own row."""

    def __init__(self, score_field: str) -> None:
        self._rows = ScoreCount(score_field)
        self._passing = 0
        self._thresholds: set[float] = set()

    def add(self, row: EvalRow) -> None:
        """Add one row; one without a threshold of its own is left out."""
        threshold = row.metadata.get("card_threshold")
        if not isinstance(threshold, int | float):
            return
        self._thresholds.add(float(threshold))
        value = self._rows.take(row)
        if value is not None:
            self._passing += value >= threshold

    def result(self) -> dict[str, float]:
        """Return the share so far; nothing where no row has a threshold of its own."""
        if not self._thresholds:
            return {}
        values = {"card_pass_rate": self._passing / self._rows.count if self._rows.count else 0.0}
        if len(self._thresholds) == 1:
            values["card_threshold"] = next(iter(self._thresholds))
        return values

    def unmeasured(self) -> dict[str, str]:
        """Name the share when no row has the score."""
        return self._rows.unmeasured("card_pass_rate") if self._thresholds else {}

    def notes(self) -> dict[str, str]:
        """Name the thresholds that it goes by."""
        if not self._thresholds:
            return {}
        shown = ", ".join(f"{threshold:g}" for threshold in sorted(self._thresholds))
        return {"card_pass_rate": f"the share with a score of at least {shown}, as the dataset's card recommends"}
