"""What became of the evidence, against whether the answer was right."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import get_args

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.metrics.running import MeanSpread, RunningMetric
from context_bench.numbers import EVIDENCE_SURVIVAL
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.text.evidence_state import State, read_state

__all__ = ["EvidenceShares"]


@dataclass(frozen=True)
class EvidenceShares(RunningMetric):
    """Rows by what became of their evidence, and whether the answer was right, as shares of them all.

    `evidence_verbatim`, `evidence_recoverable` and `evidence_lost` add up to 1; so do `lost_by_system`,
    `failed_anyway`, `right_without_evidence` and the rows that kept it and were right. A row without either score, or
    with an error, is in none of them: `evidence_rows` are left.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "evidence-survival"

    def start(self) -> EvidenceTally:
        return EvidenceTally(self.threshold, self.score_field)


class EvidenceTally:
    """Counts rows by (state, right)."""

    def __init__(self, threshold: float, score_field: str) -> None:
        self._threshold, self._field = threshold, score_field
        self._cells: Counter[tuple[State, bool]] = Counter()
        self._rewritten = self._unknown = 0
        self._spread = MeanSpread()

    def add(self, row: EvalRow) -> None:
        state, score = read_state(row.scores), row.scores.get(self._field)
        if row.error is not None or score is None:
            return
        evaluator = EvidenceShares.name  # the evaluator has the same name
        if state is not None:
            self._cells[state, score >= self._threshold] += 1
            self._rewritten += state == "lost" and bool((row.metadata.get(evaluator) or {}).get("rewritten"))
            self._spread.add(row, state != "lost")
        else:
            # Evidence was looked for in vain: which call gave the answer is not known.
            reason = row.metadata.get("answer_unknown")
            self._unknown += reason is not None and row.unscored.get(evaluator) == reason

    def result(self) -> dict[str, float]:
        rows = self._cells.total()
        if not rows:
            return {"evidence_survival_best": 1.0, "evidence_survival_worst": 0.0} if self._unknown else {}
        states = {state: self._cells[state, True] + self._cells[state, False] for state in get_args(State)}
        survived = rows - states["lost"]
        values = {
            EVIDENCE_SURVIVAL: survived / rows,
            **{f"evidence_{state}": count / rows for state, count in states.items()},
            "evidence_rewritten": self._rewritten / rows,
            "lost_by_system": self._cells["lost", False] / rows,
            "failed_anyway": (self._cells["verbatim", False] + self._cells["recoverable", False]) / rows,
            "right_without_evidence": self._cells["lost", True] / rows,
            "evidence_rows": float(rows),
        }
        if self._unknown:
            every = rows + self._unknown
            values["evidence_survival_best"] = (survived + self._unknown) / every
            values["evidence_survival_worst"] = survived / every
        return values

    def intervals(self) -> dict[str, Interval]:
        return {EVIDENCE_SURVIVAL: self._spread.interval()} if self._cells else {}
