"""Every system against the baseline: which wins, and is it sure?

Rows are paired as they come: both systems answered the same example. Only sums are kept, so that a run that keeps no
rows has verdicts too. An errored row counts as 0, as in every mean; the verdict without errored pairs stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError
from context_bench.stats import DEFAULT_MARGIN, DatasetPairs, Interval, ScoredRow, Verdict, judge_family
from context_bench.stats import Comparison as PairedRuns

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = ["Comparer", "Comparison", "check_margin", "choose_baseline", "read_value"]

_USUAL_BASELINES = ("direct", "passthrough")

Key = tuple[str, Any, int]


def choose_baseline(systems: Sequence[str], wanted: str | None = None, controls: Iterable[str] = ()) -> str | None:
    """Choose the system that the others are held against; None where there is nothing to hold against it.

    Args:
        systems: In the order of the run.
        wanted: The name that the user gave.
        controls: Systems that do not compete; they are taken last.
    Raises:
        UsageError: The wanted one is not among the systems.
    """
    if wanted is not None and wanted not in systems:
        raise UsageError(f"the baseline must be one of the systems ({', '.join(systems)}), and {wanted!r} is not")
    if len(systems) < 2:
        return None
    competing = [name for name in systems if name not in set(controls)]
    return wanted or next((name for name in _USUAL_BASELINES if name in systems), (competing or systems)[0])


def check_margin(margin: float) -> float:
    """Return a margin that can be: a difference of scores within it does not matter.

    Raises:
        UsageError: It is not between 0 and 1.
    """
    if not 0 < margin < 1:
        raise UsageError(f"the margin must be between 0 and 1 (got {margin:g})")
    return margin


def read_value(metric: str, score_field: str, threshold: float) -> Callable[[EvalRow], float | None]:
    """Return what reads the number that is compared off a row: its score, whether it passed, or another score."""
    if metric == "pass_rate":

        def passed(row: EvalRow) -> float | None:
            score = row.scores.get(score_field)
            return None if score is None else float(score >= threshold)

        return passed
    name = score_field if metric in ("score", "mean_score", "macro_score") else metric
    return lambda row: row.scores.get(name)


@dataclass(frozen=True)
class Comparison:
    """What can be said of the systems of a run against one of them.

    Attributes:
        baseline: The system that the others are held against.
        metric: What is compared: `macro_score` over several datasets, else `mean_score`, or another that was asked for.
        margin: A difference within it does not matter.
        verdicts: One for each other system, over all datasets.
        by_dataset: The same for each dataset, corrected apart; empty with one dataset.
        notes: What has to be known to read them.
    """

    baseline: str
    metric: str
    margin: float
    verdicts: list[Verdict]
    by_dataset: dict[str, list[Verdict]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def of(self, system: str) -> Verdict | None:
        """Return the verdict on a system; None for the baseline itself."""
        return next((verdict for verdict in self.verdicts if verdict.name == system), None)

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON can hold it."""
        return {
            "baseline": self.baseline,
            "metric": self.metric,
            "margin": self.margin,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "by_dataset": {tag: [each.to_dict() for each in found] for tag, found in self.by_dataset.items()},
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Comparison:
        """Read back what `to_dict` wrote."""
        return cls(
            stored["baseline"],
            stored["metric"],
            stored["margin"],
            [Verdict.from_dict(each) for each in stored["verdicts"]],
            {tag: [Verdict.from_dict(each) for each in found] for tag, found in stored["by_dataset"].items()},
            tuple(stored.get("notes", ())),
        )


class Comparer:
    """Pairs rows with those of the baseline, as they come.

    Args:
        systems: All systems of the run.
        baseline: One of them.
        read: Reads the number that is compared off a row.
        repeats: Whether examples are answered several times: the answers to one example are then not independent.
    """

    def __init__(
        self, systems: Iterable[str], baseline: str, read: Callable[[EvalRow], float | None], *, repeats: bool = False
    ) -> None:
        self.baseline, self._read, self._repeats = baseline, read, repeats
        self._sums = {name: PairedRuns() for name in systems if name != baseline}
        self._baseline_rows: dict[Key, ScoredRow] = {}
        self._waiting: dict[Key, dict[str, ScoredRow]] = {}
        self._paired: dict[Key, int] = {}

    def add(self, rows: Iterable[EvalRow]) -> None:
        """Take in rows of any system."""
        for row in rows:
            self._add(row)

    def _add(self, row: EvalRow) -> None:
        key = (row.dataset, row.example_id, row.repeat)
        cluster = row.metadata.get("cluster")
        scored = ScoredRow(
            str(row.example_id),
            row.dataset,
            self._read(row),
            None if cluster is None else str(cluster),
            row.error is not None,
        )
        if row.system == self.baseline:
            waiting = self._waiting.pop(key, {})
            for name, other in waiting.items():
                self._pair(name, other, scored)
            if len(waiting) < len(self._sums):
                self._baseline_rows[key] = scored
                self._paired[key] = len(waiting)
        elif (baseline := self._baseline_rows.get(key)) is not None:
            self._pair(row.system, scored, baseline)
            self._paired[key] += 1
            if self._paired[key] >= len(self._sums):  # all have come: nothing of the example has to be kept
                del self._paired[key], self._baseline_rows[key]
        else:
            self._waiting.setdefault(key, {})[row.system] = scored

    def _pair(self, name: str, row: ScoredRow, baseline: ScoredRow) -> None:
        datasets = self._sums.setdefault(name, PairedRuns()).datasets
        pairs = datasets.get(row.dataset)
        if pairs is None:
            pairs = datasets[row.dataset] = DatasetPairs()
        pairs.add_pair(row, baseline, repeats=self._repeats)

    def compare(
        self,
        metric: str | None = None,
        margin: float = DEFAULT_MARGIN,
        controls: Iterable[str] = (),
        notes: Sequence[str] = (),
    ) -> Comparison | None:
        """Decide what can be said so far; None where no pair has a score on both sides.

        Args:
            metric: The name of what is compared; by default that of the score.
            margin: A difference within it does not matter.
            controls: Systems that never win.
            notes: What has to be known to read it.
        """
        never_win = set(controls)
        paired = {name: sums for name, sums in self._sums.items() if sums.pairs}
        if not paired:
            return None
        tags = sorted({tag for sums in paired.values() for tag, pairs in sums.datasets.items() if pairs.pairs.n})
        contrasts = [sums.contrast(name, control=name in never_win) for name, sums in paired.items()]
        by_dataset: dict[str, list[Verdict]] = {}
        if len(tags) > 1:
            places = [(name, tag) for tag in tags for name, sums in paired.items() if tag in sums.datasets]
            places = [(name, tag) for name, tag in places if paired[name].datasets[tag].pairs.n]
            family = [
                PairedRuns({tag: paired[name].datasets[tag]}).contrast(name, control=name in never_win)
                for name, tag in places
            ]
            for (_, tag), verdict in zip(places, judge_family(family, margin=margin)):
                by_dataset.setdefault(tag, []).append(verdict)
        headline = metric or ("macro_score" if len(tags) > 1 else "mean_score")
        return Comparison(
            self.baseline, headline, margin, judge_family(contrasts, margin=margin), by_dataset, tuple(notes)
        )


def read_intervals(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Interval]]:
    """Read back intervals that were written as JSON."""
    return {name: {key: Interval.from_dict(value) for key, value in values.items()} for name, values in stored.items()}
