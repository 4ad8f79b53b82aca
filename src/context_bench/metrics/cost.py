"""What a correct answer costs, in tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.results import EvalRow
from context_bench.summary import fold

__all__ = ["CostOfPass"]


@dataclass(frozen=True)
class CostOfPass:
    """Output tokens spent for each passing example (after arXiv:2504.13359); lower is better.

    Tokens of examples that failed are spent too, so they count.
    """

    threshold: float = 0.7
    score_field: str = "score"
    name = "cost-of-pass"

    def start(self) -> CostTally:
        """A running count."""
        return CostTally(self.threshold, self.score_field)

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Divide all output tokens by the number of passes; infinite when nothing passes."""
        return fold(self.start(), rows)


class CostTally:
    """Counts passes and tokens."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._field = threshold, score_field
        self._passing = self._tokens = 0

    def add(self, row: EvalRow) -> None:
        """Take one row in."""
        self._tokens += row.output_tokens
        if row.error is None and row.scores.get(self._field, -math.inf) >= self._threshold:
            self._passing += 1

    def result(self) -> dict[str, float]:
        """Tokens for each pass so far."""
        cost = self._tokens / self._passing if self._passing else math.inf
        return {"cost_of_pass": cost, "num_passing": float(self._passing)}
