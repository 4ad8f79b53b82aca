"""What a correct answer costs, in tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

from context_bench.results import EvalRow

__all__ = ["CostOfPass"]


@dataclass(frozen=True)
class CostOfPass:
    """Output tokens spent for each passing example (after arXiv:2504.13359); lower is better.

    Tokens of examples that failed are spent too, so they count.
    """

    threshold: float = 0.7
    score_field: str = "score"
    name = "cost-of-pass"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """Divide all output tokens by the number of passes; infinite when nothing passes."""
        passing = sum(
            row.error is None and row.scores.get(self.score_field, -math.inf) >= self.threshold for row in rows
        )
        tokens = sum(row.output_tokens for row in rows)
        return {"cost_of_pass": tokens / passing if passing else math.inf, "num_passing": float(passing)}
