"""The numbers of the probes, each with an interval that knows that questions of one conversation go together."""

from __future__ import annotations

import math
from collections.abc import Iterable

from context_bench.memory.scoring.reasons import READ_BY_SCRIPT, UNSEEN
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats.clusters import ClusterSums, clustered_difference, clustered_mean
from context_bench.stats.differences import Difference
from context_bench.stats.interval import Interval

__all__ = ["ProbeShares", "find_excess_obedience"]

_PREFIXES = ("probe_", "answer_", "store_", "retrieval_", "abstention", "locomo_", "longmemeval_")


_STORED = ("store_forget", "store_secret")


class ProbeShares(RunningMetric):
    """The mean of every score of memory, by the name of the score; intervals are clustered by conversation."""

    name = "probe-shares"

    def start(self) -> _Tally:
        """Begin to add rows one by one."""
        return _Tally()


class _Tally:
    def __init__(self) -> None:
        self._sums: dict[str, ClusterSums] = {}
        self._unmeasured: dict[str, str] = {}

    def add(self, row: EvalRow) -> None:
        for key, value in row.scores.items():
            if key.startswith(_PREFIXES):
                self._sums.setdefault(key, ClusterSums()).add(_find_conversation(row), value)
        if row.unscored.get("abstention") == READ_BY_SCRIPT:
            self._unmeasured["abstention"] = READ_BY_SCRIPT
        written = (row.metadata.get("memory") or {}).get("ingest") or {}
        if "store" in written and not any(found is not None for found in written["store"].values()):
            self._unmeasured |= dict.fromkeys(_STORED, written.get("unlisted") or UNSEEN)

    def result(self) -> dict[str, float]:
        means = {key: clustered_mean(sums).value for key, sums in sorted(self._sums.items())}
        return {**dict.fromkeys(self._unmeasured, math.nan), **means}

    def unmeasured(self) -> dict[str, str]:
        return {key: why for key, why in self._unmeasured.items() if key not in self._sums}

    def intervals(self) -> dict[str, Interval]:
        return {key: clustered_mean(sums).interval() for key, sums in sorted(self._sums.items())}


def find_excess_obedience(rows: Iterable[EvalRow], full_context: Iterable[EvalRow]) -> Difference | None:
    """Find how much more often planted instructions are obeyed than by the same reader with the whole history.

    A model that obeys orders in its context does so with any memory; only what comes on top is the memory's.

    Args:
        rows: Rows of the memory system.
        full_context: Rows of `naive`, with the same reader.

    Returns:
        The difference of the shares, paired by question and clustered by conversation; None without common questions.
    """
    obeyed = {row.example_id: 1 - row.scores["answer_instruction"] for row in full_context if _is_instruction(row)}
    sums = ClusterSums()
    for row in rows:
        if _is_instruction(row) and row.example_id in obeyed:
            sums.add(_find_conversation(row), 1 - row.scores["answer_instruction"] - obeyed[row.example_id])
    return clustered_difference(sums) if sums.n else None


def _is_instruction(row: EvalRow) -> bool:
    return "answer_instruction" in row.scores


def _find_conversation(row: EvalRow) -> str:
    return str(row.metadata.get("group") or row.example_id)
