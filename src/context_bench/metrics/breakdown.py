"""The mean score of each dataset on its own."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from context_bench.metrics.quality import MeanScore
from context_bench.results import EvalRow

__all__ = ["PerDatasetBreakdown"]


@dataclass(frozen=True)
class PerDatasetBreakdown:
    """Mean of a score for each dataset tag, as `dataset:<tag>`; rows without a tag are `unknown`."""

    score_field: str = "f1"
    name = "per-dataset-breakdown"

    def compute(self, rows: list[EvalRow]) -> dict[str, float]:
        """One mean for each tag, sorted by tag."""
        by_tag: dict[str, list[EvalRow]] = defaultdict(list)
        for row in rows:
            by_tag[row.dataset or "unknown"].append(row)
        mean = MeanScore(self.score_field)
        return {f"dataset:{tag}": mean.compute(by_tag[tag])["mean_score"] for tag in sorted(by_tag)}
