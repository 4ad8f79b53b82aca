"""Examples that are answered several times: does one answer pass, do all, and how much of the spread is chance?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.quality import ScoreCount
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats import Interval, RepeatedAnswers, flip_share, pass_all_k, pass_at_k, repeat_share

__all__ = ["Repeats"]

_KEYS = ("pass_at_k", "pass_all_k", "repeat_flips", "repeat_variance_share")


@dataclass(frozen=True)
class Repeats(RunningMetric):
    """Consistency of K answers to each example; an answer that failed counts as 0.

    `pass_at_k`: at least one of the K passes. `pass_all_k`: all K pass. `repeat_flips`: of two answers to one example
    just one passes. `repeat_variance_share`: the part of the variance of scores that lies between answers to one
    example; the rest lies between examples. An example counts once K answers with a score are there, in the last two
    from the second on.
    """

    repeats: int = 2
    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "repeats"
    by_dataset = _KEYS

    def start(self) -> RepeatsTally:
        """Start gathering answers."""
        return RepeatsTally(self.repeats, self.threshold, self.score_field)


class RepeatsTally:
    """Keeps the answers to an example until all of them are there."""

    def __init__(self, repeats: int, threshold: float, score_field: str) -> None:
        self._repeats, self._rows = repeats, ScoreCount(score_field)
        self._answers = RepeatedAnswers(repeats, threshold)

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        self._answers.add((row.dataset, row.example_id), self._rows.take(row))

    def intervals(self) -> dict[str, Interval]:
        """Give each number with its interval."""
        sums = self._answers.total()
        found = (
            pass_at_k(sums, self._repeats),
            pass_all_k(sums, self._repeats),
            flip_share(sums),
            repeat_share(sums),
        )
        return dict(zip(_KEYS, found))

    def result(self) -> dict[str, float]:
        """Return the numbers so far; 0.0 where no example has enough answers."""
        return {key: 0.0 if math.isnan(each.value) else each.value for key, each in self.intervals().items()}

    def unmeasured(self) -> dict[str, str]:
        """Name what no example has enough answers for."""
        missing = self._rows.unmeasured(*_KEYS)
        if missing:
            return missing
        reasons = dict.fromkeys(_KEYS, f"no example has {self._repeats} answers with a score")
        reasons["repeat_flips"] = "no example has two answers with a score"
        reasons["repeat_variance_share"] = "all scores are the same, or too few examples have two answers with a score"
        return {key: reasons[key] for key, interval in self.intervals().items() if math.isnan(interval.value)}
