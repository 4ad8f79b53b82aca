"""Costs of a memory (writing, time until searchable, storage, queries), and mean scores by question type.

All numbers come from the rows. Each row has the costs of its question, and the costs of writing its conversation, which
count once per conversation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, ClassVar

from context_bench.metrics.quality import MeanTally
from context_bench.metrics.running import RunningMetric
from context_bench.results import EvalRow
from context_bench.stats import Interval

_UNCOUNTED = "its calls were not counted, because the system was passed as an object or takes no base_url"
_SPENT = ("calls", "prompt_tokens", "completion_tokens", "embed_calls", "embed_tokens", "usd")


@dataclass(frozen=True)
class MemoryCosts(RunningMetric):
    """Calls, tokens, dollars and seconds of writing (background work included) and of queries.

    `ingest_calls`, `ingest_tokens`, `ingest_embed_calls`, `ingest_embed_tokens`, `ingest_usd` and `ingest_seconds` are
    per 1,000 turns. `searchable_seconds` is the time from the first turn of a conversation until its probed turns were
    found; `disk_bytes` and `memories` measure the stored data of a conversation. `found_per_question` is the number of
    retrieved items. `query_calls`, `query_tokens`, `query_usd` and `query_seconds_median` are per question, without the
    reader, whose tokens are `answer_tokens`.
    """

    name = "memory-costs"

    def start(self) -> MemoryCostTally:
        return MemoryCostTally()


class MemoryCostTally:
    def __init__(self) -> None:
        self._written: dict[str, Mapping[str, Any]] = {}
        self._seconds: list[float] = []
        self._asked: list[Mapping[str, Any] | None] = []
        self._answer_tokens: list[int] = []
        self._found: list[int] = []
        self._unmeasured: dict[str, str] = {}

    def add(self, row: EvalRow) -> None:
        facts = row.metadata.get("memory")
        if not isinstance(facts, Mapping):
            return
        frozen = (facts.get("ingest") or {}).get("frozen")  # nothing was written or searched: it came from a file
        if facts.get("ingest") and not frozen:
            self._written.setdefault(str(row.metadata.get("group")), facts["ingest"])
        query = facts.get("query")
        if isinstance(query, Mapping) and row.error is None:
            if not frozen:
                self._seconds.append(float(query.get("seconds", 0.0)))
                self._asked.append(query.get("spent"))
            if "found" in query:
                self._found.append(int(query["found"]))
            if row.upstream_tokens is not None:
                self._answer_tokens.append(row.upstream_tokens + int(row.metadata.get("response_tokens") or 0))

    def result(self) -> dict[str, float]:
        return self._compute({})

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Return the numbers with late calls, made after the memory counted as written, charged to writing."""
        late = (report.get("memory") or {}).get("late") if isinstance(report.get("memory"), Mapping) else None
        if not late:
            return {}
        return {**self._compute(late), "late_calls": float(late["calls"] + late["embed_calls"])}

    def unmeasured(self) -> dict[str, str]:
        return self._unmeasured

    def _compute(self, late: Mapping[str, Any]) -> dict[str, float]:
        written = list(self._written.values())
        values: dict[str, float] = {}
        self._unmeasured = {}
        turns = sum(int(each.get("turns", 0)) for each in written)
        if turns:
            values |= self._measure_writing(written, turns / 1000, late)
        if self._seconds:
            values |= {f"query_{key}": value for key, value in self._measure_spent(self._asked, "query").items()}
            values["query_seconds_median"] = median(self._seconds)
        if self._found:
            values["found_per_question"] = sum(self._found) / len(self._found)
        if self._answer_tokens:
            values["answer_tokens"] = sum(self._answer_tokens) / len(self._answer_tokens)
        return values

    def _measure_writing(
        self, written: list[Mapping[str, Any]], thousands: float, late: Mapping[str, Any]
    ) -> dict[str, float]:
        phases = [each.get(phase) for each in written for phase in ("spent", "background")]
        sums = self._measure_spent([*phases, *([late] if late else [])], "ingest")
        # Convert the mean over the phases to a sum, and then to a share per turn.
        scale = (len(phases) + bool(late)) / thousands
        values = {f"ingest_{key}": value * scale for key, value in sums.items()}
        values["ingest_seconds"] = math.fsum(float(each["seconds"]) for each in written) / thousands
        values["ingest_turns"] = thousands * 1000
        for key, why in (("searchable_seconds", "unsearchable"), ("disk_bytes", ""), ("memories", "unlisted")):
            known = [float(each[key]) for each in written if each.get(key) is not None]
            reason = next((str(each[why]) for each in written if each.get(why)), "")
            if reason:
                self._unmeasured[key] = reason
            if known or reason:
                values[key] = math.nan if reason else math.fsum(known) / len(known)
        return values

    def _measure_spent(self, spent: list[Any], prefix: str) -> dict[str, float]:
        """Average the costs; return NaN and a reason if they were not counted."""
        keys = ("calls", "tokens", "embed_calls", "embed_tokens", "usd")
        if not all(isinstance(each, Mapping) for each in spent):
            self._unmeasured |= {f"{prefix}_{key}": _UNCOUNTED for key in keys}
            return dict.fromkeys(keys, math.nan)
        sums = {key: math.fsum(each.get(key) or 0 for each in spent) / len(spent) for key in _SPENT}
        usd = sums["usd"]
        if any(each.get("usd") is None for each in spent):
            model = next((each["unpriced"] for each in spent if each.get("unpriced")), "one of its models")
            self._unmeasured[f"{prefix}_usd"] = f"no price for {model}; add one to a file for --prices"
            usd = math.nan
        tokens = sums["prompt_tokens"] + sums["completion_tokens"]
        return {
            "calls": sums["calls"],
            "tokens": tokens,
            "embed_calls": sums["embed_calls"],
            "embed_tokens": sums["embed_tokens"],
            "usd": usd,
        }


@dataclass(frozen=True)
class ByType(RunningMetric):
    """The mean of a score for each type of question (`type:<name>`), with intervals by conversation."""

    score_field: str = "score"
    name = "by-type"
    columns: ClassVar[dict[str, str]] = {}  # none: types have a separate table

    def start(self) -> TypeTally:
        return TypeTally(self.score_field)


class TypeTally:
    def __init__(self, score_field: str) -> None:
        self._field = score_field
        self._means: dict[str, MeanTally] = {}

    def add(self, row: EvalRow) -> None:
        kind = str(row.metadata.get("question_type") or "")
        if kind:
            if kind not in self._means:
                self._means[kind] = MeanTally(self._field)
            self._means[kind].add(row)

    def result(self) -> dict[str, float]:
        return {f"type:{kind}": self._means[kind].mean for kind in sorted(self._means)}

    def intervals(self) -> dict[str, Interval]:
        return {f"type:{kind}": mean.spread.interval() for kind, mean in self._means.items() if mean.count}

    def unmeasured(self) -> dict[str, str]:
        return {f"type:{kind}": why for kind, mean in self._means.items() if (why := mean.explain_unmeasured())}
