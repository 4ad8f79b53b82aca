"""Compares the systems of one run with its baseline, as the rows come.

Only sums are kept, so that a run that keeps no rows has verdicts too. A failed row counts as 0, as in every mean; the
verdict without failed pairs is given as well. The answers of a system to one example are averaged first. A dataset on
which one of the sides could not be scored at all is left out of the comparison.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from context_bench.compare.blind_spots import NEUTRAL, VOID, BlindSpots, Sensitivity, is_compressed_row
from context_bench.compare.front import Dollars
from context_bench.compare.pairing import (
    SCORE_NAMES,
    Pairing,
    Pairs,
    ScoredAnswer,
    is_unread_row,
    read_answer,
    read_value,
)
from context_bench.compare.verdicts import (
    LOOKED,
    UNLIKE,
    Comparison,
    check_margin,
    choose_baseline,
    find_first_samples,
    find_floors,
    name_twin,
    was_stopped_by_looks,
    withhold_verdict,
)
from context_bench.config import DEFAULT_THRESHOLD
from context_bench.errors import UsageError
from context_bench.numbers import PASS_RATE, choose_score_key
from context_bench.stats import (
    DEFAULT_MARGIN,
    NoiseFloor,
    PairedSums,
    RepeatedAnswers,
    Verdict,
    judge_family,
    noise_of_repeats,
    noise_of_twins,
)
from context_bench.text import count_things

if TYPE_CHECKING:
    from context_bench.results import EvalResult, EvalRow


def _kept_prompt(row: EvalRow) -> bool:
    """Whether a context reached its reader as it was; a system that answers by itself may send its model another."""
    return row.metadata.get("unchanged") is True and (is_unread_row(row) or row.upstream_tokens is not None)


@dataclass(slots=True)
class _Seen:
    """Facts about the rows of one system on one dataset."""

    rows: int = 0
    failed: int = 0
    unchanged: int = 0
    compresses: bool = False
    examples: int = 0  # examples that have a score, of several answers their mean
    scored: bool = False
    unscored: bool = False  # whether a row that did not fail has no score
    nonzero: bool = False
    imperfect: bool = False
    kinds: set[bool] = field(default_factory=set)  # whether rows are contexts that no model has read


class Comparer:
    """Pairs the rows of all systems with those of the baseline, and judges the differences.

    Args:
        systems: All systems of the run.
        baseline: One of them.
        read: Reads the number that is compared off a row.
        threshold: The lowest score that passes: for flips.
        repeats: How often each example is answered: the answers to one example are then not independent.
        twin: The second run of the baseline, if there is one.
        keep_apart: Whether contexts that no model has read are not compared with answers, which have another score.
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
        systems = list(systems)
        self.baseline, self._read, self._repeats, self._keep_apart = baseline, read, repeats, keep_apart
        self._threshold, self._twin, self._flips = threshold, twin, 0
        self._pairs = {name: Pairs() for name in systems if name != baseline}
        self._dollars = {name: Dollars() for name in self._pairs}
        self._pairing = Pairing(self._pairs, baseline, self._pair, repeats=repeats, on_example=self._count)
        self._again = RepeatedAnswers(repeats, threshold) if repeats > 1 else None
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._blind_spots = BlindSpots(systems, baseline, repeats)
        self._failed, self._least, self._most = False, math.inf, -math.inf

    @property
    def waiting(self) -> int:
        """How many examples are kept because a row of them has not come."""
        return self._pairing.waiting

    def add(self, rows: Iterable[EvalRow]) -> None:
        """Take in rows of any system."""
        for row in rows:
            score = self._read(row)
            self._look_at(row, score)
            self._blind_spots.add(row, score)
            answer = read_answer(row, score)
            if self._again is not None and row.system == self.baseline:
                self._again.add((row.dataset, row.example_id), answer.value)
            self._pairing.add(row.system, answer)
            self._blind_spots.add_answer(row, answer)

    def _look_at(self, row: EvalRow, score: float | None) -> None:
        seen = self._seen.get((row.system, row.dataset))
        if seen is None:
            seen = self._seen[row.system, row.dataset] = _Seen()
        seen.rows += 1
        seen.unchanged += row.metadata.get("untouched") is True or _kept_prompt(row)
        seen.compresses = seen.compresses or is_compressed_row(row)
        if row.error is not None:
            seen.failed += 1
            self._failed = seen.imperfect = True
        else:
            seen.kinds.add(is_unread_row(row))
            seen.unscored = seen.unscored or score is None
        if score is not None:
            seen.scored = True
            seen.nonzero = seen.nonzero or score != 0
            seen.imperfect = seen.imperfect or score != 1
            self._least, self._most = min(self._least, score), max(self._most, score)

    def _count(self, system: str, answer: ScoredAnswer) -> None:
        self._seen[system, answer.dataset].examples += answer.value is not None

    def _pair(self, name: str, own: ScoredAnswer, baseline: ScoredAnswer) -> None:
        if name not in self._pairs:
            self._pairs[name], self._dollars[name] = Pairs(), Dollars()
        self._pairs[name].add(own, baseline)
        self._dollars[name].add(own, baseline)
        if name == self._twin and own.value is not None and baseline.value is not None:
            self._flips += (own.value >= self._threshold) != (baseline.value >= self._threshold)

    def _list_measured(self) -> dict[str, Pairs]:
        """List what was paired on datasets where both sides could be scored."""
        found = {}
        for name, pairs in self._pairs.items():
            if self.is_unlike(name):
                continue
            datasets = {tag: each for tag, each in pairs.datasets.items() if each.n and self._is_known(name, tag)}
            if datasets:
                found[name] = Pairs(datasets)
        return found

    def _is_known(self, name: str, tag: str) -> bool:
        """Whether a side has scores, and none of the two lacks them though it did not fail."""
        sides = [self._seen[name, tag], self._seen[self.baseline, tag]]
        return any(side.scored for side in sides) and all(side.scored or not side.unscored for side in sides)

    def compare(
        self,
        metric: str | None = None,
        margin: float = DEFAULT_MARGIN,
        controls: Iterable[str] = (),
        settled: Mapping[str, Verdict] | None = None,
        fixed_groups: bool = False,
    ) -> Comparison | None:
        """Judge what was paired so far; None where no pair has a score on both sides.

        Args:
            metric: The name of what is compared; by default that of the score.
            margin: A difference within it does not matter.
            controls: Systems that never win.
            settled: Verdicts by looks, on systems that those stopped. They replace all others, also by dataset.
            fixed_groups: Whether the documents or conversations of the run are all that matter.
        """
        if self._pairing.is_open:
            return self._close_copy().compare(metric, margin, controls, settled, fixed_groups)
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
        void = {
            name
            for name in self._find_unchanged(paired, never_win)
            if name not in NEUTRAL
            and any(seen.compresses for (system, _), seen in self._seen.items() if system == name)
        }
        void -= {each.name for each in verdicts if each.word == "worse"}  # by its failures
        verdicts = [withhold_verdict(each, VOID) if each.name in void else each for each in verdicts]
        by_dataset: dict[str, list[Verdict]] = {}
        if len(tags) > 1 and not settled:
            places = [(name, tag) for tag in tags for name, sums in paired.items() if tag in sums.datasets]
            family = [
                Pairs({tag: paired[name].datasets[tag]}).contrast(name, control=name in never_win)
                for name, tag in places
            ]
            judged = judge_family(family, margin=margin, fixed_groups=fixed_groups)
            for (_, tag), verdict in zip(places, judged):
                by_dataset.setdefault(tag, []).append(verdict)
        said = [
            *_explain_left_out(paired, tags),
            *self._explain_scale(margin),
            *(
                f"{name} changed nothing on {unchanged:,} of {count_things(rows, 'example')}"
                for name, (unchanged, rows) in self._find_unchanged(paired, never_win).items()
            ),
        ]
        said += [] if settled else self._explain_one_sided(paired)
        unscored = sorted({tag for sums in self._pairs.values() for tag in sums.datasets}.difference(tags))
        said += [f"{tag or 'data without a tag'} is in no verdict: it has no scores of both sides" for tag in unscored]
        if metric in SCORE_NAMES:
            metric = choose_score_key(len(tags))
        elif len(tags) > 1:
            said.append(f"{metric} is the mean over the datasets, each with the same weight")
        tested = [name for name in paired if name not in never_win | void]
        known = {verdict.name: verdict for verdict in verdicts}
        savings = {name: sums.describe(known.get(name)) for name, sums in self._dollars.items() if name != self._twin}
        return Comparison(
            *(self.baseline, str(metric), margin, verdicts, by_dataset, tuple(said)),
            self._find_noise(measured),
            {name: saving for name, saving in savings.items() if saving is not None},
            sensitivity=self._blind_spots.judge(tested, margin=margin, fixed_groups=fixed_groups)
            | {name: Sensitivity("void", 0.0, paired[name].n, reason=VOID) for name in void},
            sensitivity_by_dataset={
                tag: self._blind_spots.judge(tested, [tag], margin=margin, fixed_groups=fixed_groups)
                for tag in by_dataset
            },
        ).withhold_blind()

    def _close_copy(self) -> Comparer:
        """Return a copy that waits for no more of the repeated answers; more may come to this one."""
        closed = copy.deepcopy(self)
        closed._pairing.close()
        closed._blind_spots.close()
        return closed

    def has_only_zeros(self, system: str, tag: str | None = None) -> bool:
        """Whether neither a system nor the baseline has a score but 0, on a dataset or on any."""
        tags = [each for name, each in self._seen if name == system] if tag is None else [tag]
        sides = [self._seen.get((side, each)) for side in (system, self.baseline) for each in tags]
        return not any(side.nonzero for side in sides if side is not None)

    def _find_kinds(self, system: str) -> set[bool]:
        return set().union(*(seen.kinds for (name, _), seen in self._seen.items() if name == system))

    def is_unlike(self, system: str) -> bool:
        """Whether a system and the baseline do not both answer, or both return contexts that no model has read."""
        return self._keep_apart and len(self._find_kinds(system) | self._find_kinds(self.baseline)) > 1

    def explain_unlike(self) -> dict[str, str]:
        """Say of the systems that cannot be compared with the baseline which returns contexts, and which answers."""
        unlike = [name for name in self._pairs if self.is_unlike(name)]
        return {
            name: UNLIKE.format(*((name, self.baseline) if True in self._find_kinds(name) else (self.baseline, name)))
            for name in unlike
        }

    def is_perfect(self, tag: str | None = None) -> bool:
        """Whether every system that is compared has the best score on every example, of a dataset or of all."""
        if self._pairing.is_open:
            return self._close_copy().is_perfect(tag)
        names = [self.baseline, *self._list_measured()]
        return not any(
            seen.imperfect for (name, own), seen in self._seen.items() if name in names and tag in (None, own)
        )

    def _explain_one_sided(self, paired: Mapping[str, Pairs]) -> list[str]:
        """Say of how many examples only one of two systems has a score: no verdict can count those."""
        found = []
        for name, pairs in paired.items():
            scored = sum(self._seen[side, tag].examples for side in (name, self.baseline) for tag in pairs.datasets)
            if left := scored - 2 * pairs.n:
                many = f"{count_things(left, 'example')} {'is' if left == 1 else 'are'}"
                found.append(f"{name}: {many} left out of the verdict, with a score of one side alone")
        return found

    def _find_unchanged(self, paired: Mapping[str, Pairs], controls: Collection[str]) -> dict[str, tuple[int, int]]:
        """Find the systems that passed on as it was every example on which they did not fail: they tested nothing.

        Returns:
            By name, on how many examples that was, of how many.
        """
        found = {}
        for name in paired:
            own = [seen for (system, _), seen in self._seen.items() if system == name]
            rows, unchanged = sum(seen.rows for seen in own), sum(seen.unchanged for seen in own)
            if name not in controls and unchanged == rows - sum(seen.failed for seen in own) > 0:
                found[name] = (unchanged // self._repeats, rows // self._repeats)
        return found

    def _explain_scale(self, margin: float) -> list[str]:
        """Say what scores that do not lie between 0 and 1 mean for the verdicts."""
        if self._least >= 0 and self._most <= 1:
            return []
        said = [
            f"scores lie between {self._least:.4g} and {self._most:.4g}, and the margin of {margin:g} is in their "
            "unit; losses that were not seen are not bounded, as no bound is known for such scores"
        ]
        if self._failed and self._least < 0:
            said.append("a failed example counts as 0, which is more than an answer with a score below 0")
        return said

    def _find_noise(self, measured: dict[str, Pairs]) -> NoiseFloor | None:
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


def _explain_left_out(paired: Mapping[str, Pairs], tags: Sequence[str]) -> list[str]:
    """Say which systems are not compared on all datasets that others are."""
    missing = {name: [tag for tag in tags if tag not in sums.datasets] for name, sums in paired.items()}
    return [
        f"{name} is compared without {', '.join(lost)}, where it and the baseline do not both have a score"
        for name, lost in missing.items()
        if lost
    ]


def compare_systems(
    result: EvalResult, baseline: str | None, metric: str | None, margin: float | None
) -> Comparison | None:
    """Compare every system of a result with one of them, as `EvalResult.compare` says."""
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
