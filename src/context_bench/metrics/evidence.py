"""Evidence against answers: whether the evidence survived, and whether the answer was right."""

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


class EvidenceTally:
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


@dataclass(frozen=True)
class EvidenceShares(RunningMetric):
    """Shares of rows by the state of their evidence and by whether the answer was right.

    `evidence_verbatim`, `evidence_recoverable` and `evidence_lost` add up to 1; so do `lost_by_system`,
    `failed_anyway`, `right_without_evidence` and the share of rows that kept their evidence and were right. Rows that
    lack a score or have an error are left out; `evidence_rows` is the number of the remaining rows.
    """

    threshold: float = DEFAULT_THRESHOLD
    score_field: str = "score"
    name = "evidence-survival"
    tally = EvidenceTally


class EngagementTally:
    """Sums over the rows that a system changed."""

    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._rows = self._acted = self._scored = self._whole = self._kept = 0
        self._score = self._deepest = 0.0
        self._depths: list[float] = []

    def add(self, row: EvalRow) -> None:
        if row.error is not None:
            return
        facts = row.metadata
        if depth := facts.get("evidence_depth"):
            self._depths.append(depth[0])
            self._deepest = max(self._deepest, depth[1])
        if facts.get("output") == "context":
            changed, sizes = not facts.get("unchanged"), (row.input_tokens, row.output_tokens)
        elif facts.get("untouched") is not None and row.upstream_tokens is not None and facts.get("sent_tokens"):
            changed, sizes = not facts["untouched"], (facts["sent_tokens"], row.upstream_tokens)
        else:
            return
        self._rows += 1
        if not changed:
            return
        self._acted += 1
        self._whole, self._kept = self._whole + sizes[0], self._kept + sizes[1]
        if (score := row.scores.get(self._field)) is not None:
            self._scored += 1
            self._score += score

    def result(self) -> dict[str, float]:
        values: dict[str, float] = {}
        if self._rows:
            values = {"acted_rows": float(self._acted), "acted_share": self._acted / self._rows}
        if self._scored:
            values["acted_score"] = self._score / self._scored
        if self._whole:
            values["acted_savings"] = 1 - self._kept / self._whole
        if self._depths:
            ordered = sorted(self._depths)
            values["evidence_depth"] = ordered[len(ordered) // 2]
            values["evidence_depth_most"] = self._deepest
        return values


@dataclass(frozen=True)
class Engagement(RunningMetric):
    """The number of rows that a system changed, its score and savings on them, and the place of the evidence.

    A system that leaves most examples unchanged looks harmless over all of them. Rows for which this is
    unknown (a proxy without a tap) are left out.
    """

    score_field: str = "score"
    name = "engagement"
    tally = EngagementTally
