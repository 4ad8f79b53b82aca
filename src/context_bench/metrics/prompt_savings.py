"""Prompt tokens that a system saved, with a best and a worst case where calls could not be matched to rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from context_bench.metrics.facts import read_fact, read_sides, was_repeated
from context_bench.metrics.row_by_row import RunningMetric
from context_bench.metrics.spread import MeanSpread, RatioSpread
from context_bench.results import EvalRow
from context_bench.stats import Interval
from context_bench.text import count_things
from context_bench.traits import MetricTraits

__all__ = ["PromptSavings", "SavingsTally"]


@dataclass(frozen=True)
class PromptSavings(RunningMetric):
    """1 - upstream/sent over summed tokens: the share of the prompt that the model did not have to read.

    `untouched_share` is the share of rows in which the model got exactly what was sent. Errored rows are left out, and
    so are rows that could not be matched to their upstream calls for certain; where there are such,
    `prompt_savings_best` counts none of the doubtful calls as theirs, and `prompt_savings_worst` counts all. So does
    `untouched_share`. Answers without a call count as saved, except where only our own repetition of an example saved
    the call: a note says how many are left out.
    """

    name = "prompt-savings"
    by_dataset = (
        *("prompt_savings", "prompt_savings_best", "prompt_savings_worst"),
        *("untouched_share", "untouched_share_best", "untouched_share_worst"),
    )
    keys = (*by_dataset, "sent_tokens", "mean_sent_tokens")

    def __context_bench_traits__(self) -> MetricTraits:
        return MetricTraits(bound=SavingsTally.bound)

    def start(self) -> SavingsTally:
        """Start the sums."""
        return SavingsTally()


class SavingsTally:
    """Sums tokens on both sides of a system."""

    def __init__(self) -> None:
        self._sent = self._passed_on = 0.0
        self._rows = self._judged = self._untouched = self._repeated = 0
        self._unjudged = self._maybe_untouched = 0
        self._changes: Counter[str] = Counter()
        self._unknown_sent = self._least = self._most = 0.0
        self._spread, self._untouched_spread = RatioSpread(), MeanSpread()

    def add(self, row: EvalRow) -> None:
        """Add one row."""
        sides = read_sides(row)
        self._changes.update(row.metadata.get("changed_settings") or ())
        if sides is None:
            self._repeated += was_repeated(row)
            self._add_unknown(row)
            return
        self._rows += 1
        self._sent += sides[0]
        self._passed_on += sides[1]
        self._spread.add(row, sides[1], sides[0])
        untouched = read_fact(row, "untouched")
        if untouched is not None:
            self._judged += 1
            self._untouched += untouched == 1
            self._untouched_spread.add(row, untouched == 1)

    def _add_unknown(self, row: EvalRow) -> None:
        """Add a row of which only bounds are known."""
        sent, least, most = (read_fact(row, key) for key in ("sent_tokens", *_BOUNDS))
        if row.error is None and sent is not None and least is not None and most is not None:
            self._unknown_sent += sent
            self._least += least
            self._most += most
            if (maybe := read_fact(row, "untouched_at_best")) is not None:
                self._unjudged += 1
                self._maybe_untouched += maybe == 1

    def result(self) -> dict[str, float]:
        """Return the savings so far."""
        values: dict[str, float] = {}
        if self._rows and self._sent:
            values |= {
                "prompt_savings": 1.0 - self._passed_on / self._sent,
                "sent_tokens": self._sent,
                "mean_sent_tokens": self._sent / self._rows,
            }
            if self._judged:
                values["untouched_share"] = self._untouched / self._judged
        return values | self._bounds(0.0) | self._bound_untouched(0)

    def intervals(self) -> dict[str, Interval]:
        """Give the intervals of the savings and of the share that was left alone."""
        intervals = {"prompt_savings": self._spread.interval().subtract_from(1.0)} if self._sent else {}
        return intervals | ({"untouched_share": self._untouched_spread.interval()} if self._judged else {})

    def bound(self, report: Mapping[str, Any]) -> dict[str, float]:
        """Return the best and the worst case with what a tapped system reports at its end: calls that came late."""
        late, calls = report.get("late_tokens", 0), report.get("late_calls", 0)
        bounds = self._bounds(float(late) if isinstance(late, int | float) else 0.0)
        return bounds | self._bound_untouched(calls if isinstance(calls, int) else 0)

    def _bound_untouched(self, late: int) -> dict[str, float]:
        """Compute both cases of the untouched share: a call that came late may be one more of an untouched row."""
        rows = self._judged + self._unjudged
        if not rows or not (self._unjudged or late):
            return {}
        cases = [(self._untouched + self._maybe_untouched) / rows, max(0, self._untouched - late) / rows]
        if self._judged:
            cases.append(self._untouched / self._judged)
        return {"untouched_share_best": max(cases), "untouched_share_worst": min(cases)}

    def notes(self) -> dict[str, str]:
        """Say what the proxy changed beside the prompt, and which rows the savings leave out."""
        notes = {}
        if self._changes:
            shown = [f"{change} ({count_things(rows, 'row')})" for change, rows in self._changes.most_common(_SHOWN)]
            more = f" and {len(self._changes) - _SHOWN} more" if len(self._changes) > _SHOWN else ""
            notes["untouched_share"] = f"changed beside the messages: {'; '.join(shown)}{more}"
        if self._repeated:
            notes["prompt_savings"] = (
                f"without {self._repeated:,} answers that cost no call only since --repeats asked again"
            )
        return notes

    def _bounds(self, late: float) -> dict[str, float]:
        """Compute both cases; none where all calls are known. The headline leaves rows out, and lies between them."""
        sent = self._sent + self._unknown_sent
        if not sent or not (self._unknown_sent or late):
            return {}
        cases = [1.0 - (self._passed_on + tokens) / sent for tokens in (self._least, self._most + late)]
        if self._sent:
            cases.append(1.0 - self._passed_on / self._sent)
        return {"prompt_savings_best": max(cases), "prompt_savings_worst": min(cases)}


_SHOWN = 5
"""Changes of settings that a note names."""
_BOUNDS = ("least_upstream_tokens", "most_upstream_tokens")
