"""Rows of all systems, paired with those of the baseline as they come.

Only sums are kept, so that a run that keeps no rows has verdicts too; a row waits until its partners are there. An
errored row counts as 0, as in every mean; the verdict without errored pairs stands beside it. The answers of a system
to one example are averaged first. What a system scores on a dataset where nothing could be scored is not compared.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from context_bench.compare.comparison import (
    LOOKED,
    SCORE_NAMES,
    UNLIKE,
    Comparison,
    DollarSaving,
    check_margin,
    choose_baseline,
    find_first_samples,
    find_floors,
    is_unread_row,
    name_twin,
    read_group,
    read_value,
    was_stopped_by_looks,
)
from context_bench.compare.repeated_answers import RepeatedAnswers
from context_bench.config import DEFAULT_THRESHOLD
from context_bench.errors import UsageError
from context_bench.numbers import PASS_RATE, choose_score_key
from context_bench.stats import (
    DEFAULT_MARGIN,
    TOO_FEW,
    AnsweredExample,
    DatasetPairs,
    Interval,
    NoiseFloor,
    PairedSums,
    PairSums,
    ScoredRow,
    Verdict,
    average_answers,
    judge_family,
    noise_of_repeats,
    noise_of_twins,
)
from context_bench.stats import Comparison as PairedRuns
from context_bench.text import count_things

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow

__all__ = ["Comparer", "compare_systems"]

Key = tuple[str, Any]
"""Dataset and id of an example."""


class _Answer(NamedTuple):
    """The part of a row that is kept until its partners are there; of several answers to one example, their mean."""

    scored: ScoredRow | AnsweredExample
    dollars: float | None
    is_estimate: bool


def _average(answers: Sequence[_Answer]) -> _Answer:
    """Make one of all answers of a system to one example."""
    known = [each.dollars for each in answers if each.dollars is not None]
    scored = average_answers([each.scored for each in answers if isinstance(each.scored, ScoredRow)])
    return _Answer(scored, sum(known) / len(known) if known else None, any(each.is_estimate for each in answers))


class _Dollars:
    """Costs of a system and of the baseline, on the examples where both are known."""

    def __init__(self) -> None:
        self.pairs = PairSums()
        self.known = self.estimated = 0

    def add(self, own: _Answer, baseline: _Answer) -> None:
        """Add the two answers to one example."""
        if own.dollars is not None and baseline.dollars is not None:
            group = own.scored.group if own.scored.group is not None else baseline.scored.group
            self.pairs.add(baseline.dollars, own.dollars, None if group is None else f"{own.scored.dataset} {group}")
            self.estimated += own.is_estimate or baseline.is_estimate
        self.known += own.dollars is not None or baseline.dollars is not None

    def describe(self, verdict: Verdict | None) -> DollarSaving | None:
        """Describe what is saved, claimed for a system that is not worse; None where no cost is known."""
        if not self.known:
            return None
        n = self.pairs.n
        nothing = Interval(math.nan, math.nan, math.nan, n=n, method="paired t", mark=TOO_FEW)
        if not n:
            return DollarSaving(nothing, 0, "not priced: there is no example whose cost is known of both systems")
        if reason := _explain_no_claim(verdict):
            return DollarSaving(nothing, n, f"not claimed: {reason}")
        notes = [f"an estimate for {self.estimated:,} of {n:,} examples"] if self.estimated else []
        if n < self.known:
            notes.append(f"{self.known - n:,} examples whose cost is known of one system alone are left out")
        saved = self.pairs.difference(scores=False).interval().multiply(1000)
        return DollarSaving(saved, n, "; ".join(notes))


def _explain_no_claim(verdict: Verdict | None) -> str:
    if verdict is None:
        return "its quality was not compared"
    if verdict.control:
        return "it is a control"
    if not verdict.not_worse:
        return f"its quality is {verdict.word}" + (", and may be worse" if verdict.word == "undecided" else "")
    return ""


def _explain_left_out(paired: Mapping[str, PairedRuns], tags: Sequence[str]) -> list[str]:
    """Say which systems are not compared on all datasets that others are."""
    missing = {name: [tag for tag in tags if tag not in sums.datasets] for name, sums in paired.items()}
    return [
        f"{name} is compared without {', '.join(lost)}, where it and the baseline do not both have a score"
        for name, lost in missing.items()
        if lost
    ]


class Comparer:
    """Pairs rows with those of the baseline.

    Args:
        systems: All systems of the run.
        baseline: One of them.
        read: Reads the number that is compared off a row.
        threshold: A score from here on passes: for flips.
        repeats: How often each example is answered: the answers to one example are then not independent.
        twin: The second run of the baseline, if there is one.
        keep_apart: Whether contexts that no model has read are not held against answers, which have another score.
    """

    def __init__(
        self,
        systems: Iterable[str],
        baseline: str,
        read: Callable[[EvalRow], float | None],
        *,
        threshold: float = DEFAULT_THRESHOLD,
        repeats: int = 1,
        twin: str | None = None,
        keep_apart: bool = True,
    ) -> None:
        self.baseline, self._read, self._repeats, self._keep_apart = baseline, read, repeats, keep_apart
        self._threshold, self._twin, self._flips = threshold, twin, 0
        self._sums = {name: PairedRuns() for name in systems if name != baseline}
        self._dollars = {name: _Dollars() for name in self._sums}
        self._again = RepeatedAnswers(repeats, threshold) if repeats > 1 else None
        self._scored: set[tuple[str, str]] = set()
        self._nonzero: set[tuple[str, str]] = set()
        self._imperfect: set[tuple[str, str]] = set()
        self._kinds: dict[str, set[bool]] = {}
        self._examples: Counter[tuple[str, str]] = Counter()
        self._failed, self._least, self._most = False, math.inf, -math.inf
        self._unchanged: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()
        self._unscored: set[tuple[str, str]] = set()
        self._answers: dict[tuple[str, Key], list[_Answer]] = {}
        self._baseline_rows: dict[Key, _Answer] = {}
        self._waiting: dict[Key, dict[str, _Answer]] = {}
        self._paired: dict[Key, int] = {}

    @property
    def waiting(self) -> int:
        """How many examples are kept because a row of them has not come."""
        return len(self._baseline_rows) + len(self._waiting)

    def add(self, rows: Iterable[EvalRow]) -> None:
        """Take in rows of any system."""
        for row in rows:
            self._add(row)

    def _add(self, row: EvalRow) -> None:
        key, answer = (row.dataset, row.example_id), self._take(row)
        if self._again is None:
            self._place(row.system, key, answer)
            return
        if row.system == self.baseline:
            self._again.add(row, answer.scored.value)
        answers = self._answers.setdefault((row.system, key), [])
        answers.append(answer)
        if len(answers) == self._repeats:
            del self._answers[row.system, key]
            self._place(row.system, key, _average(answers))

    def _place(self, system: str, key: Key, answer: _Answer) -> None:
        """Pair what a system made of an example with what the baseline did, or let it wait for that."""
        self._examples[system, key[0]] += answer.scored.value is not None
        if system == self.baseline:
            waiting = self._waiting.pop(key, {})
            for name, other in waiting.items():
                self._pair(name, other, answer)
            if len(waiting) < len(self._sums):
                self._baseline_rows[key] = answer
                self._paired[key] = len(waiting)
        elif (baseline := self._baseline_rows.get(key)) is not None:
            self._pair(system, answer, baseline)
            self._paired[key] += 1
            if self._paired[key] >= len(self._sums):  # all have come: nothing of the example has to be kept
                del self._paired[key], self._baseline_rows[key]
        else:
            self._waiting.setdefault(key, {})[system] = answer

    def _close(self) -> Comparer:
        """Return a comparer that takes the answers there are for all, where some of an example have not come."""
        if not self._answers:
            return self
        closed = copy.deepcopy(self)
        for (system, key), answers in closed._answers.items():
            closed._place(system, key, _average(answers))
        closed._answers = {}
        return closed

    def _take(self, row: EvalRow) -> _Answer:
        metadata, score, failed = row.metadata, self._read(row), row.error is not None
        self._failed = self._failed or failed
        self._rows[row.system] += 1
        self._unchanged[row.system] += metadata.get("unchanged") is True or metadata.get("untouched") is True
        if not failed:
            self._kinds.setdefault(row.system, set()).add(is_unread_row(row))
        if failed or (score is not None and score != 1):
            self._imperfect.add((row.system, row.dataset))
        if score is not None:
            self._scored.add((row.system, row.dataset))
            if score:
                self._nonzero.add((row.system, row.dataset))
            self._least, self._most = min(self._least, score), max(self._most, score)
        elif not failed:
            self._unscored.add((row.system, row.dataset))
        dollars = metadata.get("cost_usd")
        scored = ScoredRow(str(row.example_id), row.dataset, score, read_group(row), failed)
        known = isinstance(dollars, int | float) and not isinstance(dollars, bool)
        return _Answer(scored, dollars if known else None, metadata.get("cost_is_estimate") is True)

    def _pair(self, name: str, own: _Answer, baseline: _Answer) -> None:
        if name not in self._sums:
            self._sums[name], self._dollars[name] = PairedRuns(), _Dollars()
        datasets = self._sums[name].datasets
        pairs = datasets.get(own.scored.dataset)
        if pairs is None:
            pairs = datasets[own.scored.dataset] = DatasetPairs()
        pairs.add_pair(own.scored, baseline.scored)
        self._dollars[name].add(own, baseline)
        if name == self._twin:
            values = own.scored.value, baseline.scored.value
            if None not in values:
                self._flips += sum(value >= self._threshold for value in values if value is not None) == 1

    def _list_measured(self) -> dict[str, PairedRuns]:
        """List what was paired on datasets where both sides could be scored."""
        found = {}
        for name, sums in self._sums.items():
            if self.is_unlike(name):
                continue
            datasets = {tag: pairs for tag, pairs in sums.datasets.items() if pairs.n and self._is_known(name, tag)}
            if datasets:
                found[name] = PairedRuns(datasets)
        return found

    def _is_known(self, name: str, tag: str) -> bool:
        sides = [(name, tag), (self.baseline, tag)]
        scored = [side in self._scored for side in sides]
        return any(scored) and all(known or side not in self._unscored for known, side in zip(scored, sides))

    def compare(
        self,
        metric: str | None = None,
        margin: float = DEFAULT_MARGIN,
        controls: Iterable[str] = (),
        settled: Mapping[str, Verdict] | None = None,
        fixed_groups: bool = False,
    ) -> Comparison | None:
        """Decide what can be said so far; None where no pair has a score on both sides.

        Args:
            metric: The name of what is compared; by default that of the score.
            margin: A difference within it does not matter.
            controls: Systems that never win.
            settled: Verdicts by looks, on systems that were stopped by those: nothing else may be said of them, by
                dataset neither.
            fixed_groups: Whether the documents or conversations of the run are all that matter.
        """
        if (closed := self._close()) is not self:
            return closed.compare(metric, margin, controls, settled, fixed_groups)
        measured = self._list_measured()
        if not measured:
            return None
        never_win = set(controls)
        paired = {name: sums for name, sums in measured.items() if name != self._twin}
        tags = sorted({tag for sums in measured.values() for tag in sums.datasets})
        verdicts = judge_family(
            [sums.contrast(name, control=name in never_win) for name, sums in paired.items()],
            margin=margin,
            fixed_groups=fixed_groups,
        )
        verdicts = [(settled or {}).get(each.name, each) for each in verdicts]
        by_dataset: dict[str, list[Verdict]] = {}
        if len(tags) > 1 and not settled:
            places = [(name, tag) for tag in tags for name, sums in paired.items() if tag in sums.datasets]
            family = [
                PairedRuns({tag: paired[name].datasets[tag]}).contrast(name, control=name in never_win)
                for name, tag in places
            ]
            judged = judge_family(family, margin=margin, fixed_groups=fixed_groups)
            for (_, tag), verdict in zip(places, judged):
                by_dataset.setdefault(tag, []).append(verdict)
        said = [
            *_explain_left_out(paired, tags),
            *self._explain_scale(margin),
            *self._explain_unchanged(paired, never_win),
        ]
        said += [] if settled else self._explain_one_sided(paired)
        unscored = sorted({tag for sums in self._sums.values() for tag in sums.datasets}.difference(tags))
        said += [f"{tag or 'data without a tag'} is in no verdict: it has no scores of both sides" for tag in unscored]
        if metric in SCORE_NAMES:
            metric = choose_score_key(len(tags))
        elif len(tags) > 1:
            said.append(f"{metric} is the mean over the datasets, each with the same weight")
        return Comparison(
            *(self.baseline, str(metric), margin, verdicts, by_dataset, tuple(said)),
            self._find_noise(measured),
            self._find_savings(verdicts),
        )

    def has_only_zeros(self, system: str, tag: str | None = None) -> bool:
        """Whether neither a system nor the baseline has a score but 0, on a dataset or on any."""
        sides, tags = (system, self.baseline), self._sums[system].datasets if tag is None else (tag,)
        return all((side, each) not in self._nonzero for side in sides for each in tags)

    def is_unlike(self, system: str) -> bool:
        """Whether a system and the baseline do not both answer, or both return contexts that no model has read."""
        kinds = self._kinds.get(system, set()) | self._kinds.get(self.baseline, set())
        return self._keep_apart and len(kinds) > 1

    def explain_unlike(self) -> dict[str, str]:
        """Say of the systems that cannot be held against the baseline which returns contexts, and which answers."""
        unlike = [name for name in self._sums if self.is_unlike(name)]
        pairs = {name: (name, self.baseline) if True in self._kinds[name] else (self.baseline, name) for name in unlike}
        return {name: UNLIKE.format(*pair) for name, pair in pairs.items()}

    def is_perfect(self, tag: str | None = None) -> bool:
        """Whether every system that is compared has the best score on every example, of a dataset or of all."""
        names = [self.baseline, *self._list_measured()]
        return not any(name in names and tag in (None, each) for name, each in self._imperfect)

    def _explain_one_sided(self, paired: Mapping[str, PairedRuns]) -> list[str]:
        """Say of how many examples only one of two systems has a score: no verdict can count those."""
        found = []
        for name, sums in paired.items():
            scored = sum(self._examples[side, tag] for side in (name, self.baseline) for tag in sums.datasets)
            if left := scored - 2 * sums.pairs:
                many = f"{count_things(left, 'example')} {'is' if left == 1 else 'are'}"
                found.append(f"{name}: {many} left out of the verdict, with a score of one side alone")
        return found

    def _explain_unchanged(self, paired: Mapping[str, PairedRuns], controls: Collection[str]) -> list[str]:
        """Name the systems that passed every example on as it was: nothing of those was tested. Controls may do so."""
        return [
            f"{name} changed nothing on {self._unchanged[name]:,} of {count_things(self._rows[name], 'example')}"
            for name in paired
            if name not in controls and self._repeats == 1 and self._unchanged[name] == self._rows[name] > 0
        ]

    def _explain_scale(self, margin: float) -> list[str]:
        """Say what scores that do not lie between 0 and 1 mean for the verdicts."""
        if (self._least >= 0 and self._most <= 1) or not self._scored:
            return []
        said = [
            f"scores lie between {self._least:.4g} and {self._most:.4g}, and the margin of {margin:g} is in their "
            "unit; losses that were not seen are not bounded, as no bound is known for such scores"
        ]
        if self._failed and self._least < 0:
            said.append("a failed example counts as 0, which is more than an answer with a score below 0")
        return said

    def _find_noise(self, measured: dict[str, PairedRuns]) -> NoiseFloor | None:
        """Find what the baseline differs from itself by."""
        twin = measured.get(self._twin or "")
        if twin is not None:
            sums = PairedSums()
            for each in twin.datasets.values():
                sums.merge(each.join())
            noise = noise_of_twins(sums, flips=self._flips)
            if noise.nothing_seen:
                return noise
            width = twin.difference().interval()  # by clusters and over several datasets, as the differences are
            return replace(noise, floor=(width.high - width.low) / 2)
        if self._again is None:
            return None
        noise = noise_of_repeats(self._again.total(), answers=self._repeats)
        return None if math.isnan(noise.flips) else noise

    def _find_savings(self, verdicts: Sequence[Verdict]) -> dict[str, DollarSaving]:
        known = {verdict.name: verdict for verdict in verdicts}
        found = {name: sums.describe(known.get(name)) for name, sums in self._dollars.items() if name != self._twin}
        return {name: saving for name, saving in found.items() if saving is not None}


# --- results


def compare_systems(
    result: EvalResult, baseline: str | None, metric: str | None, margin: float | None
) -> Comparison | None:
    """Hold every system of a result against one of them, as `EvalResult.compare` says."""
    settings = result.settings
    controls, twin = settings.controls, settings.twin
    systems = [name for name in result.systems if name != twin]
    wanted = settings.baseline if baseline is None else baseline
    chosen = choose_baseline(systems, wanted if wanted in systems else baseline, controls)
    width = check_margin(settings.margin if margin is None else margin)
    known = result.comparison
    same = known is not None and known.baseline == chosen and known.margin == width
    if chosen is None or (same and metric in SCORE_NAMES):
        return known if metric in SCORE_NAMES and (same or margin is None) else None
    if not result.rows:
        raise UsageError("this result has no rows: run again without keep_rows=False (--no-rows) to compare more")
    score_field = settings.score_field
    fields = {name for row in result.rows for name in row.scores}
    if metric not in (*SCORE_NAMES, PASS_RATE) and metric not in fields:
        known_names = ", ".join(("score", PASS_RATE, *sorted(fields - {"score"})))
        raise UsageError(f"the metric must be one of {known_names} (got {metric!r})")
    threshold = DEFAULT_THRESHOLD if settings.threshold is None else settings.threshold
    comparer = Comparer(
        result.systems,
        chosen,
        read_value(metric or "score", score_field, threshold),
        threshold=threshold,
        repeats=settings.repeats,
        twin=twin if name_twin(chosen) == twin else None,
        keep_apart=score_field == "score" and metric in (*SCORE_NAMES, PASS_RATE),
    )
    comparer.add(result.rows)
    found = comparer.compare(metric, width, controls, fixed_groups=settings.fixed_groups)
    if found is None:
        return None
    first = find_first_samples(result.config)
    config = result.config
    found = found.mark_first(first) if first else found
    if was_stopped_by_looks(config):
        found = replace(found, notes=(*found.notes, LOOKED))
    if metric not in (*SCORE_NAMES, PASS_RATE):
        return found
    return found.withhold_zeros(comparer.has_only_zeros).withhold_unneeded(find_floors(config), comparer.is_perfect)
