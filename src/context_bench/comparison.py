"""Every system against the baseline: which wins, and is it sure? What is said of them, and who is the baseline.

`comparer.py` makes it from rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from context_bench.errors import UsageError, suggest
from context_bench.stats import ALL_GROUPS, FIRST, Interval, NoiseFloor, Verdict

if TYPE_CHECKING:
    from context_bench.results import EvalRow

__all__ = [
    "LOOKED",
    "ONLY_ZEROS",
    "SCORE_NAMES",
    "Comparison",
    "DollarSaving",
    "check_margin",
    "choose_baseline",
    "explain_first_samples",
    "find_empty_score",
    "find_first_samples",
    "mark_samples",
    "mark_verdict",
    "name_twin",
    "read_group",
    "read_intervals",
    "read_settled",
    "read_value",
    "was_stopped_by_looks",
    "withhold_verdict",
]

_USUAL_BASELINES = ("direct", "passthrough")

SCORE_NAMES = (None, "score", "mean_score", "macro_score")
"""Names for the score that counts: over several datasets it is their mean, each with the same weight."""

_TWIN = "{} (again)"

LOOKED = (
    "systems of this run were stopped when they were decided (--stop-when-decided), which these p-values and intervals "
    "do not account for: its own verdicts do"
)
"""The note on verdicts that are made of such a run afterwards."""

ONLY_ZEROS = (
    "every score is 0 on both sides, so that no loss could show: look at some answers (context-bench diff last)"
)
"""The reason why there is no verdict on a system where neither it nor the baseline scored on any example."""


def name_twin(baseline: str) -> str:
    """Name the second run of the baseline."""
    return _TWIN.format(baseline)


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
        meant = suggest(wanted, systems)
        hint = f"; {meant}" if meant else ""
        raise UsageError(f"the baseline must be one of the systems {', '.join(systems)} (got {wanted!r}){hint}")
    if len(systems) < 2:
        return None
    competing = [name for name in systems if name not in set(controls)]
    return wanted or next((name for name in _USUAL_BASELINES if name in systems), (competing or systems)[0])


def find_empty_score(config: Mapping[str, Any], summary: Mapping[str, Mapping[str, float]]) -> str:
    """Say why the score of a run tells nothing of quality; empty where it does.

    F1 of a whole context against a short answer is the higher the shorter the context, whatever is left in it. Where a
    reader or a tap is behind a system, it is an answer that is scored.
    """
    returns, primaries = config.get("returns") or {}, (config.get("primary") or {}).values()
    contexts = [name for name, kind in returns.items() if kind == "context" and name in summary]
    unread = any("prompt_savings" not in summary[name] for name in contexts)
    if (config.get("score_field") or "score") != "score" or "f1" not in primaries or not unread:
        return ""
    return (
        "f1 of a whole context says little: --score-field answer_in_context asks whether the answer is still there, "
        "and --reader URL has a model answer"
    )


def find_first_samples(config: Mapping[str, Any]) -> list[str]:
    """Find the datasets of a run whose first examples were taken, which are not a random draw."""
    return [tag for tag, how in (config.get("samples") or {}).items() if how == "first"]


def explain_first_samples(tags: Sequence[str]) -> str:
    """Say what follows for intervals and verdicts: they hold for those examples, and may not for others."""
    names = ", ".join(tags)
    return f"the first examples of {names} are not a random draw: intervals hold for all only of a random sample"


def _mark(interval: Interval) -> Interval:
    """Mark an interval over examples that are not a random draw; one that has a mark keeps it."""
    return interval if interval.mark else replace(interval, mark=FIRST)


def mark_samples(
    intervals: dict[str, dict[str, Interval]], config: Mapping[str, Any]
) -> dict[str, dict[str, Interval]]:
    """Mark the intervals that stand on datasets whose first examples were taken."""
    first = find_first_samples(config)
    if not first:
        return intervals
    ends = tuple(f"{sign}{tag or 'unknown'}" for tag in first for sign in "@:")
    return {
        name: {
            key: _mark(each) if key.endswith(ends) or not ("@" in key or key.startswith("dataset:")) else each
            for key, each in own.items()
        }
        for name, own in intervals.items()
    }


def mark_verdict(verdict: Verdict) -> Verdict:
    """Mark the intervals of a verdict over examples that are not a random draw."""
    narrow = None if verdict.narrow is None else _mark(verdict.narrow)
    return replace(verdict, interval=_mark(verdict.interval), narrow=narrow)


def withhold_verdict(verdict: Verdict, reason: str) -> Verdict:
    """Return it with no word, as what was compared says nothing of quality."""
    unknown = Interval(verdict.difference, math.nan, math.nan, 0.9, verdict.n)
    clean = None if verdict.word_without_errors is None else "undecided"
    return replace(
        verdict,
        word="undecided",
        reason=reason,
        needed_n=None,
        needed_n_if_equal=None,
        promised=True,
        scope=ALL_GROUPS,
        narrow=unknown,
        word_without_errors=clean,
    )


def read_settled(config: Mapping[str, Any]) -> dict[str, Verdict]:
    """Read the verdicts by looks of a run that stopped systems when they were decided; none of another run."""
    looked = (config.get("looks") or {}).get("systems") or {}
    return {name: Verdict.from_dict(each["verdict"]) for name, each in looked.items()}


def was_stopped_by_looks(config: Mapping[str, Any]) -> bool:
    """Whether systems of a run stopped when they were decided, also where its answers were scored again since."""
    return bool(config.get("looks") or config.get("looks_before"))


def check_margin(margin: float) -> float:
    """Return a margin that can be: a difference of scores within it does not matter.

    Raises:
        UsageError: It is not between 0 and 1.
    """
    if not 0 < margin < 1:
        raise UsageError(f"the margin must be between 0 and 1 (got {margin:g})")
    return margin


def read_group(row: EvalRow) -> str | None:
    """Return the document or conversation that an example shares with others, where it does.

    The answers to one repeated example are no group: they are averaged.
    """
    cluster = row.metadata.get("cluster")
    return str(cluster) if isinstance(cluster, str | int) else None


def read_value(metric: str, score_field: str, threshold: float) -> Callable[[EvalRow], float | None]:
    """Return what reads the number that is compared off a row: its score, whether it passed, or another score."""
    if metric == "pass_rate":

        def read_pass(row: EvalRow) -> float | None:
            score = row.scores.get(score_field)
            return None if score is None else float(score >= threshold)

        return read_pass
    name = score_field if metric in SCORE_NAMES else metric
    return lambda row: row.scores.get(name)


@dataclass(frozen=True)
class DollarSaving:
    """Savings of a system against the baseline, over the examples whose cost is known of both.

    Attributes:
        per_1k: Dollars for a thousand examples, below 0 where the system costs more; NaN where it is not claimed.
        pairs: Examples whose cost is known on both sides.
        note: Why it is not claimed, or what has to be known to read it.
    """

    per_1k: Interval
    pairs: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON can hold it."""
        return {"per_1k": self.per_1k.to_dict(), "pairs": self.pairs, "note": self.note}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DollarSaving:
        """Read back what `to_dict` wrote."""
        return cls(Interval.from_dict(stored["per_1k"]), stored["pairs"], stored["note"])


@dataclass(frozen=True)
class Comparison:
    """Verdicts on the systems of a run, each compared with the baseline.

    Attributes:
        baseline: The system that the others are held against.
        metric: What is compared: `macro_score` over several datasets, else `mean_score`, or another that was asked for.
        margin: A difference within it does not matter.
        verdicts: One for each other system, over all datasets.
        by_dataset: The same for each dataset, corrected apart; empty with one dataset.
        notes: What has to be known to read them.
        noise: What the baseline differs from itself by: by its second run, else by repeats; None without either.
        savings: Dollars that each other system saves, where costs are known.
    """

    baseline: str
    metric: str
    margin: float
    verdicts: list[Verdict]
    by_dataset: dict[str, list[Verdict]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    noise: NoiseFloor | None = None
    savings: dict[str, DollarSaving] = field(default_factory=dict)

    def of(self, system: str) -> Verdict | None:
        """Return the verdict on a system; None for the baseline itself."""
        return next((verdict for verdict in self.verdicts if verdict.name == system), None)

    def withhold(self, reason: str) -> Comparison:
        """Return it with no verdict on any system, as what was compared says nothing of their quality."""
        by_dataset = {tag: [withhold_verdict(each, reason) for each in found] for tag, found in self.by_dataset.items()}
        return replace(
            self,
            verdicts=[withhold_verdict(each, reason) for each in self.verdicts],
            by_dataset=by_dataset,
            notes=(*self.notes, f"no verdict: {reason}"),
        )

    def withhold_zeros(self, has_only_zeros: Callable[[str, str | None], bool]) -> Comparison:
        """Return it with no verdict on systems that scored 0 throughout, as the baseline did.

        Args:
            has_only_zeros: Whether it is so for a system on a dataset, or None for all of them.
        """
        zeros = [each.name for each in self.verdicts if has_only_zeros(each.name, None)]
        by_dataset = {
            tag: [withhold_verdict(each, ONLY_ZEROS) if has_only_zeros(each.name, tag) else each for each in found]
            for tag, found in self.by_dataset.items()
        }
        if not zeros:
            return replace(self, by_dataset=by_dataset)
        unclaimed = {
            name: replace(each, per_1k=Interval(math.nan, math.nan, math.nan), note="not claimed: every score is 0")
            for name, each in self.savings.items()
            if name in zeros and not each.note.startswith("not ")
        }
        on = "" if len(zeros) == len(self.verdicts) else f" on {', '.join(zeros)}"
        return replace(
            self,
            verdicts=[withhold_verdict(each, ONLY_ZEROS) if each.name in zeros else each for each in self.verdicts],
            by_dataset=by_dataset,
            savings={**self.savings, **unclaimed},
            notes=(*self.notes, f"no verdict{on}: {ONLY_ZEROS}"),
        )

    def mark_first(self, tags: Sequence[str]) -> Comparison:
        """Return it with a mark at the intervals over datasets whose first examples were taken, and a note."""
        return replace(
            self,
            verdicts=[mark_verdict(each) for each in self.verdicts],
            by_dataset={
                tag: [mark_verdict(each) for each in found] if tag in tags else found
                for tag, found in self.by_dataset.items()
            },
            savings={name: replace(each, per_1k=_mark(each.per_1k)) for name, each in self.savings.items()},
            notes=(*self.notes, explain_first_samples(tags)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Write it as JSON can hold it."""
        return {
            "baseline": self.baseline,
            "metric": self.metric,
            "margin": self.margin,
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "by_dataset": {tag: [each.to_dict() for each in found] for tag, found in self.by_dataset.items()},
            "notes": list(self.notes),
            "noise": None if self.noise is None else self.noise.to_dict(),
            "savings": {name: saving.to_dict() for name, saving in self.savings.items()},
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
            NoiseFloor.from_dict(stored["noise"]) if stored.get("noise") else None,
            {name: DollarSaving.from_dict(each) for name, each in (stored.get("savings") or {}).items()},
        )


def read_intervals(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Interval]]:
    """Read back intervals that were written as JSON."""
    return {name: {key: Interval.from_dict(value) for key, value in values.items()} for name, values in stored.items()}
