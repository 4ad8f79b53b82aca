"""Comparison of each system with the baseline: verdicts, intervals, savings, and when a verdict is withheld.

`against_baseline.py` computes it from the rows of a run, `runs.py` from several runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from context_bench.compare.blind_spots import Sensitivity, read_sensitivity, write_sensitivity
from context_bench.compare.shown import ShownComparison
from context_bench.errors import UsageError, suggest
from context_bench.registry import import_object
from context_bench.settings import read_settings
from context_bench.stats import ALL_GROUPS, FIRST, Interval, NoiseFloor, Verdict

_USUAL_BASELINES = ("direct", "passthrough")

_TWIN = "{} (again)"

LOOKED = (
    "this run stopped systems early (--stop-when-decided); its own verdicts account for that, these p-values and "
    "intervals do not"
)
"""Note on verdicts that are computed later from a run that stopped systems early."""

ONLY_ZEROS = "every score is 0 on both sides, so no loss can be seen: look at some answers (context-bench diff last)"
"""The reason why a system has no verdict if neither it nor the baseline scored on any example."""

NO_VERDICT = "its score has no verdict"
"""The reason why a system has no rank, and no star on its score."""

UNLIKE = (
    "no verdict: {} returns a context and {} an answer, so no score applies to both; --reader URL lets a model answer "
    "from the context"
)
"""Note on a score that cannot be compared with the baseline's."""

_UNNEEDED = "these examples do not need their context: {}"


def name_twin(baseline: str) -> str:
    """Return the name of the second run of the baseline."""
    return _TWIN.format(baseline)


def choose_baseline(systems: Sequence[str], wanted: str | None = None, controls: Iterable[str] = ()) -> str | None:
    """Choose the system to compare the others with; None if there are no others.

    Args:
        systems: In the order of the run.
        wanted: The user's choice.
        controls: Systems that do not compete; they are chosen last.
    Raises:
        UsageError: The user's choice is not one of the systems.
    """
    if wanted is not None and wanted not in systems:
        meant = suggest(wanted, systems)
        hint = f"; {meant}" if meant else ""
        raise UsageError(f"the baseline must be one of the systems {', '.join(systems)} (got {wanted!r}){hint}")
    if len(systems) < 2:
        return None
    competing = [name for name in systems if name not in set(controls)]
    return wanted or next((name for name in _USUAL_BASELINES if name in systems), (competing or systems)[0])


def find_first_samples(config: Mapping[str, Any]) -> list[str]:
    """Find the datasets of which a run used only the first examples, not a random sample."""
    return [tag for tag, how in read_settings(config).samples.items() if how == "first"]


def explain_first_samples(tags: Sequence[str]) -> str:
    """Say that intervals may not hold beyond the first examples."""
    names = ", ".join(tag or "the data" for tag in tags)
    return f"only the first examples of {names} were used: intervals may not hold for the rest"


def _mark(interval: Interval) -> Interval:
    """Mark an interval as computed over the first examples; an existing mark stays."""
    return interval if interval.mark else replace(interval, mark=FIRST)


def mark_samples(
    intervals: dict[str, dict[str, Interval]], config: Mapping[str, Any]
) -> dict[str, dict[str, Interval]]:
    """Mark intervals over datasets of which only the first examples were used."""
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
    """Mark the intervals of a verdict over the first examples of a dataset."""
    narrow = None if verdict.narrow is None else _mark(verdict.narrow)
    return replace(verdict, interval=_mark(verdict.interval), narrow=narrow)


def withhold_verdict(verdict: Verdict, reason: str) -> Verdict:
    """Return the verdict as undecided for a reason: the compared scores say nothing about quality."""
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


def are_unlike(config: Mapping[str, Any], one: str, other: str) -> bool:
    """Whether one of two systems answers, and the other returns contexts that no model has read.

    False if the user named a score: it then applies to both.
    """
    settings = read_settings(config)
    known, unread = settings.returns, settings.unread
    default = settings.score_field == "score"
    return default and one in known and other in known and (one in unread) != (other in unread)


def find_floors(config: Mapping[str, Any]) -> frozenset[str]:
    """Find the systems that read no context: examples that they get right do not need it."""
    settings = read_settings(config)
    usual = (name for name in settings.controls if name in ("floor", "closed-book"))
    return frozenset((*settings.floors, *usual))


def explain_floor(verdicts: Iterable[Verdict], floors: Collection[str], baseline: str, *, perfect: bool = False) -> str:
    """Say why examples do not need their context: a floor is not worse, or all scores are perfect; else "".

    `perfect` means that every system always has the best score.
    """
    for verdict in verdicts:
        if verdict.name in floors and verdict.not_worse:
            return _UNNEEDED.format(f"{verdict.name}, which reads none, is not worse than {baseline}")
        if verdict.name in floors and perfect:
            return _UNNEEDED.format(f"every score is 1, also with {verdict.name}, which reads none")
    return ""


def withhold_unneeded(verdict: Verdict, floors: Collection[str], reason: str) -> Verdict:
    """Withhold a verdict of equal quality; differences that were shown, and the floor's verdict, stay."""
    shown = verdict.name in floors or verdict.word in ("better", "worse")
    return verdict if shown else withhold_verdict(verdict, reason)


def read_settled(config: Mapping[str, Any]) -> dict[str, Verdict]:
    """Read the verdicts of systems that interim looks stopped; empty for other runs."""
    looked = read_settings(config).looks.get("systems") or {}
    return {name: Verdict.from_dict(each["verdict"]) for name, each in looked.items()}


def was_stopped_by_looks(config: Mapping[str, Any]) -> bool:
    """Whether the run used --stop-when-decided, even if its answers were scored again later."""
    settings = read_settings(config)
    return bool(settings.looks or settings.looks_before)


def check_margin(margin: float) -> float:
    """Return the margin if it is valid.

    Raises:
        UsageError: It is not between 0 and 1.
    """
    if not 0 < margin < 1:
        raise UsageError(f"the margin must be between 0 and 1 (got {margin:g})")
    return margin


@dataclass(frozen=True)
class DollarSaving:
    """Dollars that a system saves against the baseline, over examples with a known cost for both.

    Attributes:
        per_1k: Dollars per thousand examples, negative if the system costs more; NaN if not claimed.
        pairs: The number of these examples.
        note: Why it is not claimed, or a remark needed to read it.
    """

    per_1k: Interval
    pairs: int
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"per_1k": self.per_1k.to_dict(), "pairs": self.pairs, "note": self.note}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> DollarSaving:
        return cls(Interval.from_dict(stored["per_1k"]), stored["pairs"], stored["note"])


@dataclass(frozen=True, repr=False)
class Comparison(ShownComparison):
    """Verdicts on the systems of a run, each compared with the baseline.

    Attributes:
        verdicts: One for each other system, over all datasets.
        by_dataset: The same for each dataset, corrected separately; empty with one dataset.
        notes: Remarks needed to read the verdicts.
        noise: How much the baseline differs from itself: in its second run, else in repeats; None without either.
        savings: Dollars that each other system saves, if costs are known.
        context_unneeded: Why the examples cannot show that a system lost nothing: a floor, which reads no context, does
            as well as the baseline. Empty if they can, or if no floor was run.
        sensitivity: Whether the data could have shown a loss, by naive cuts to the size that each system reached.
        sensitivity_by_dataset: The same for each dataset; empty with one dataset.
    """

    verdicts: list[Verdict]
    by_dataset: dict[str, list[Verdict]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    noise: NoiseFloor | None = None
    savings: dict[str, DollarSaving] = field(default_factory=dict)
    context_unneeded: str = ""
    sensitivity: dict[str, Sensitivity] = field(default_factory=dict)
    sensitivity_by_dataset: dict[str, dict[str, Sensitivity]] = field(default_factory=dict)

    def list_verdicts(self) -> list[Verdict]:
        return self.verdicts

    def __str__(self) -> str:
        text: str = import_object("context_bench.output.verdict_tables:render_verdicts")(self)
        return text

    def is_blind(self, system: str, dataset: str | None = None) -> bool:
        """Whether the data, or one dataset, could not have shown a loss: a naive cut of the same size is not worse."""
        known = (self.sensitivity if dataset is None else self.sensitivity_by_dataset.get(dataset, {})).get(system)
        return known is not None and known.word == "none"

    def explain_blindness(self, system: str) -> str:
        """Say why "not worse" proves nothing, if a naive cut of the same size is not worse either; else ""."""
        verdict = self.of(system)
        blind = verdict is not None and verdict.not_worse and self.is_blind(system)
        return self.sensitivity[system].reason if blind else ""

    def can_have_failed(self, system: str) -> bool | None:
        """Whether all naive cuts of the same size are shown worse; None if they were not judged."""
        known = self.sensitivity.get(system)
        return None if known is None or known.word in ("small saving", "void") else known.word == "shown"

    def explain_silence(self, system: str) -> str:
        """Say why the score of a system has no verdict; "" if it has one, even "undecided"."""
        if self.context_unneeded:
            return self.context_unneeded
        verdict = self.of(system)
        judged = self.verdicts if system == self.baseline else [] if verdict is None else [verdict]
        return "" if any(each.reason != ONLY_ZEROS for each in judged) else NO_VERDICT

    def withhold_zeros(self, has_only_zeros: Callable[[str, str | None], bool]) -> Comparison:
        """Return a copy without verdicts on systems for which they and the baseline scored only 0.

        Args:
            has_only_zeros: Whether this holds for a system on a dataset (None: on all).
        """
        zeros = [each.name for each in self.verdicts if has_only_zeros(each.name, None)]
        by_dataset = {
            tag: [withhold_verdict(each, ONLY_ZEROS) if has_only_zeros(each.name, tag) else each for each in found]
            for tag, found in self.by_dataset.items()
        }
        if not zeros:
            return replace(self, by_dataset=by_dataset)
        on = "" if len(zeros) == len(self.verdicts) else f" on {', '.join(zeros)}"
        return replace(
            self,
            verdicts=[withhold_verdict(each, ONLY_ZEROS) if each.name in zeros else each for each in self.verdicts],
            by_dataset=by_dataset,
            savings={**self.savings, **self._unclaim(zeros, "every score is 0")},
            notes=(*self.notes, f"no verdict{on}: {ONLY_ZEROS}"),
        )

    def withhold_unneeded(self, floors: Collection[str], is_perfect: Callable[[str | None], bool]) -> Comparison:
        """Return a copy without verdicts of equal quality if a system that reads no context does as well.

        Args:
            floors: Systems that read no context.
            is_perfect: Whether every system, and so a floor, has only perfect scores on a dataset (None: on all).
        """
        by_dataset, notes = dict(self.by_dataset), list(self.notes)
        for tag, found in self.by_dataset.items():
            if why := explain_floor(found, floors, self.baseline, perfect=is_perfect(tag)):
                by_dataset[tag] = [withhold_unneeded(each, floors, why) for each in found]
                notes.append(f"{tag or 'data without a tag'}: {why}")
        why = explain_floor(self.verdicts, floors, self.baseline, perfect=is_perfect(None))
        if not why:
            return replace(self, by_dataset=by_dataset, notes=tuple(notes))
        return replace(
            self,
            verdicts=[withhold_unneeded(each, floors, why) for each in self.verdicts],
            by_dataset=by_dataset,
            savings={**self.savings, **self._unclaim(self.savings, "these examples do not need their context")},
            notes=tuple(notes),
            context_unneeded=why,
        )

    def withhold_blind(self) -> Comparison:
        """Return a copy without savings of systems for which this data could not have shown a loss."""
        found = self.savings
        for name in self.savings:
            if reason := self.explain_blindness(name):
                found = {**found, **self._unclaim([name], reason)}
        return replace(self, savings=found)

    def _unclaim(self, names: Collection[str], reason: str) -> dict[str, DollarSaving]:
        """Replace the savings of systems by the reason why their quality is not shown."""
        nothing = Interval(math.nan, math.nan, math.nan)
        return {
            name: replace(each, per_1k=nothing, note=f"not claimed: {reason}")
            for name, each in self.savings.items()
            if name in names and not each.note.startswith("not ")
        }

    def mark_first(self, tags: Sequence[str]) -> Comparison:
        """Return a copy with a note and marked intervals over datasets of which only the first examples were used."""
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
        return {
            **vars(self),
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
            "by_dataset": {tag: [each.to_dict() for each in found] for tag, found in self.by_dataset.items()},
            "notes": list(self.notes),
            "noise": None if self.noise is None else self.noise.to_dict(),
            "savings": {name: saving.to_dict() for name, saving in self.savings.items()},
            "context_unneeded": self.context_unneeded or None,
            "sensitivity": write_sensitivity(self.sensitivity),
            "sensitivity_by_dataset": {
                tag: write_sensitivity(found) for tag, found in self.sensitivity_by_dataset.items()
            },
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Comparison:
        return cls(
            stored["baseline"],
            stored["metric"],
            stored["margin"],
            [Verdict.from_dict(each) for each in stored["verdicts"]],
            {tag: [Verdict.from_dict(each) for each in found] for tag, found in stored["by_dataset"].items()},
            tuple(stored.get("notes", ())),
            NoiseFloor.from_dict(stored["noise"]) if stored.get("noise") else None,
            {name: DollarSaving.from_dict(each) for name, each in (stored.get("savings") or {}).items()},
            stored.get("context_unneeded") or "",
            read_sensitivity(stored.get("sensitivity")),
            {tag: read_sensitivity(found) for tag, found in (stored.get("sensitivity_by_dataset") or {}).items()},
        )


def read_intervals(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Interval]]:
    return {name: {key: Interval.from_dict(value) for key, value in values.items()} for name, values in stored.items()}
