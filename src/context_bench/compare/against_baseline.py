"""Compares the systems of one run with its baseline while the rows arrive.

Only sums are kept, so runs that keep no rows have verdicts too. A failed row counts as 0, as in every mean; a second
verdict leaves out pairs with a failure. Repeated answers to an example are averaged first. A dataset is left out of the
comparison if one of the sides could not be scored on it at all.
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
    """Whether a context reached its reader unchanged; a system that answers may send its model another context."""
    return row.metadata.get("unchanged") is True and (is_unread_row(row) or row.upstream_tokens is not None)


@dataclass(slots=True)
class _Seen:
    """Facts about the rows of one system on one dataset."""

    rows: int = 0
    failed: int = 0
    unchanged: int = 0
    compresses: bool = False
    examples: int = 0  # with a score; repeated answers count once
    scored: bool = False
    unscored: bool = False  # whether a row that did not fail has no score
    nonzero: bool = False
    imperfect: bool = False
    kinds: set[bool] = field(default_factory=set)  # one of: unread contexts (True), answers (False)


class Comparer:
    """Pairs the rows of all systems with those of the baseline, and judges the differences.

    Args:
        systems: All systems of the run.
        baseline: The one that all others are compared with.
        read: Returns the compared number of a row.
        threshold: The lowest score that passes, for counting flips.
        repeats: How often each example is answered; answers to the same example are not independent.
        twin: The second run of the baseline, if any.
        keep_apart: Never compare contexts that no model has read with answers: they have different scores.
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
        """The number of examples that wait in memory for further rows."""
        return self._pairing.waiting

    def add(self, rows: Iterable[EvalRow]) -> None:
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
        """Return the pairs of each system, on datasets where both sides could be scored."""
        found = {}
        for name, pairs in self._pairs.items():
            if self.is_unlike(name):
                continue
            datasets = {tag: each for tag, each in pairs.datasets.items() if each.n and self._is_known(name, tag)}
            if datasets:
                found[name] = Pairs(datasets)
        return found

    def _is_known(self, name: str, tag: str) -> bool:
        """Whether at least one side has scores, and a side without scores has only failures."""
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
        """Judge the pairs so far; None if no pair has a score on both sides.

        Args:
            metric: The name of the compared number; by default that of the score.
            margin: The largest difference that does not matter.
            controls: Systems that never win.
            settled: Verdicts of systems that interim looks stopped. They replace all other verdicts,
                also by dataset.
            fixed_groups: Judge only the documents or conversations of this run, not others like them.
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
        void -= {each.name for each in verdicts if each.word == "worse"}  # worse because of its failures
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
        said += [
            f"{tag or 'data without a tag'} is left out of all verdicts: one side lacks scores" for tag in unscored
        ]
        if metric in SCORE_NAMES:
            metric = choose_score_key(len(tags))
        elif len(tags) > 1:
            said.append(f"{metric} is the mean of the datasets with equal weights")
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
        """Return a copy that averages the repeated answers so far; this object can still take more."""
        closed = copy.deepcopy(self)
        closed._pairing.close()
        closed._blind_spots.close()
        return closed

    def has_only_zeros(self, system: str, tag: str | None = None) -> bool:
        """Whether a system and the baseline scored nothing but 0, on one dataset or on all."""
        tags = [each for name, each in self._seen if name == system] if tag is None else [tag]
        sides = [self._seen.get((side, each)) for side in (system, self.baseline) for each in tags]
        return not any(side.nonzero for side in sides if side is not None)

    def _find_kinds(self, system: str) -> set[bool]:
        return set().union(*(seen.kinds for (name, _), seen in self._seen.items() if name == system))

    def is_unlike(self, system: str) -> bool:
        """Whether only one of the two, system or baseline, answers; the other returns unread contexts."""
        return self._keep_apart and len(self._find_kinds(system) | self._find_kinds(self.baseline)) > 1

    def explain_unlike(self) -> dict[str, str]:
        """Explain, by system, why unread contexts and answers cannot be compared."""
        unlike = [name for name in self._pairs if self.is_unlike(name)]
        return {
            name: UNLIKE.format(*((name, self.baseline) if True in self._find_kinds(name) else (self.baseline, name)))
            for name in unlike
        }

    def is_perfect(self, tag: str | None = None) -> bool:
        """Whether all compared systems have a perfect score on every example, of one dataset or of all."""
        if self._pairing.is_open:
            return self._close_copy().is_perfect(tag)
        names = [self.baseline, *self._list_measured()]
        return not any(
            seen.imperfect for (name, own), seen in self._seen.items() if name in names and tag in (None, own)
        )

    def _explain_one_sided(self, paired: Mapping[str, Pairs]) -> list[str]:
        """Say how many examples count in no verdict because only one side has a score."""
        found = []
        for name, pairs in paired.items():
            scored = sum(self._seen[side, tag].examples for side in (name, self.baseline) for tag in pairs.datasets)
            if left := scored - 2 * pairs.n:
                many = f"{count_things(left, 'example')} {'is' if left == 1 else 'are'}"
                found.append(f"{name}: {many} left out of the verdict: scored on one side only")
        return found

    def _find_unchanged(self, paired: Mapping[str, Pairs], controls: Collection[str]) -> dict[str, tuple[int, int]]:
        """Find the systems that changed none of the examples on which they succeeded, so nothing was tested.

        Returns:
            For each name, the number of unchanged examples and of all examples.
        """
        found = {}
        for name in paired:
            own = [seen for (system, _), seen in self._seen.items() if system == name]
            rows, unchanged = sum(seen.rows for seen in own), sum(seen.unchanged for seen in own)
            if name not in controls and unchanged == rows - sum(seen.failed for seen in own) > 0:
                found[name] = (unchanged // self._repeats, rows // self._repeats)
        return found

    def _explain_scale(self, margin: float) -> list[str]:
        """Say what scores outside 0 to 1 mean for the verdicts."""
        if self._least >= 0 and self._most <= 1:
            return []
        said = [
            f"scores lie between {self._least:.4g} and {self._most:.4g}, so the margin of {margin:g} is on that scale; "
            "losses in unseen examples are not bounded, because these scores have no known limits"
        ]
        if self._failed and self._least < 0:
            said.append("a failed example counts as 0, which is better than a negative score")
        return said

    def _find_noise(self, measured: dict[str, Pairs]) -> NoiseFloor | None:
        """Find how much the baseline differs from itself."""
        twin = measured.get(self._twin or "")
        if twin is not None:
            sums = PairedSums()
            for each in twin.datasets.values():
                sums.merge(each.join())
            noise = noise_of_twins(sums, flips=self._flips)
            if noise.nothing_seen:
                return noise
            width = twin.difference().interval()  # by cluster and dataset, like the differences
            return replace(noise, floor=(width.high - width.low) / 2)
        if self._again is None:
            return None
        noise = noise_of_repeats(self._again.total(), answers=self._repeats)
        return None if math.isnan(noise.flips) else noise


def _explain_left_out(paired: Mapping[str, Pairs], tags: Sequence[str]) -> list[str]:
    """Name the systems that are not compared on all datasets."""
    missing = {name: [tag for tag in tags if tag not in sums.datasets] for name, sums in paired.items()}
    return [
        f"{name} is compared without {', '.join(lost)}: the system or the baseline has no score there"
        for name, lost in missing.items()
        if lost
    ]


def compare_systems(
    result: EvalResult, baseline: str | None, metric: str | None, margin: float | None
) -> Comparison | None:
    """Compare the systems of a result with a baseline, for `EvalResult.compare`."""
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
        raise UsageError("this result has no rows to compare again: run without keep_rows=False (--no-rows)")
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
