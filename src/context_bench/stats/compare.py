"""Two runs side by side: pairs their examples by dataset, id and content as they stream past; keeps sums, not rows.

Rows wait only until their partner comes: two runs in the same order need next to no memory, whatever their length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from context_bench.config import DEFAULT_THRESHOLD
from context_bench.stats.clusters import ClusterSums, ScoreSums, clustered_difference, compare_means
from context_bench.stats.differences import (
    Difference,
    PairedSums,
    average_differences,
    paired_difference,
)
from context_bench.stats.verdicts import Contrast

__all__ = [
    "AnsweredExample",
    "Comparison",
    "DatasetPairs",
    "PairSums",
    "Pairing",
    "ScoredRow",
    "average_answers",
    "compare_rows",
]


Key = tuple[str, str]
"""Dataset and id: what an example is paired by."""


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """The part of a row that a comparison needs: an errored one counts as 0, one without a score is left out.

    `content` stands for the whole example, where it is known: two rows with one id and other contents are not a pair.
    """

    id: str
    dataset: str
    score: float | None
    group: str | None = None
    error: bool = False
    repeat: int = 0
    content: bytes | None = None

    @property
    def value(self) -> float | None:
        """The score as means count it."""
        return 0.0 if self.error else self.score


@dataclass(frozen=True, slots=True)
class AnsweredExample:
    """All answers of a system to one example as one: the mean of those that have a score.

    `error` says that any of them failed.
    """

    id: str
    dataset: str
    value: float | None
    group: str | None
    error: bool
    content: bytes | None


def average_answers(rows: Sequence[ScoredRow]) -> ScoredRow | AnsweredExample:
    """Make one of all answers to an example: asking again tells nothing of other examples."""
    first = rows[0]
    if len(rows) == 1:
        return first
    values = [value for row in rows if (value := row.value) is not None]
    mean = math.fsum(values) / len(values) if values else None
    failed = any(row.error for row in rows)
    return AnsweredExample(first.id, first.dataset, mean, first.group, failed, first.content)


@dataclass
class PairSums:
    """Sums over pairs, with those that share a document or a conversation by cluster."""

    alone: PairedSums = field(default_factory=PairedSums)
    """Pairs that have no cluster: each counts by itself."""
    grouped: PairedSums = field(default_factory=PairedSums)
    clusters: ClusterSums = field(default_factory=ClusterSums)

    def add(self, first: float, second: float, group: str | None) -> None:
        """Add one pair, and what its example shares with others."""
        if group is None:
            self.alone.add(first, second)
        else:
            self.grouped.add(first, second)
            self.clusters.add(group, first - second)

    def merge(self, other: PairSums) -> None:
        """Take in what others there are."""
        self.alone.merge(other.alone)
        self.grouped.merge(other.grouped)
        self.clusters.merge(other.clusters)

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return self.alone.n + self.grouped.n

    def join(self) -> PairedSums:
        """Give the sums over all pairs, whatever they share."""
        sums = PairedSums()
        sums.merge(self.alone)
        sums.merge(self.grouped)
        return sums

    def difference(self, *, scores: bool = True) -> Difference:
        """Give the difference: by clusters where any has more than one pair; it then has that by row too."""
        rows = paired_difference(self.join(), scores=scores)
        if self.clusters.shared:
            return replace(clustered_difference(self.clusters, self.alone, scores=scores), rows=rows)
        return rows


@dataclass
class DatasetPairs:
    """Sums over the pairs of one dataset."""

    clean: PairSums = field(default_factory=PairSums)
    """Pairs in which neither side failed."""
    failed: PairSums = field(default_factory=PairSums)
    """The others."""
    first: ScoreSums = field(default_factory=ScoreSums)
    """Scores of the first run, whether they have a partner or not."""
    second: ScoreSums = field(default_factory=ScoreSums)
    baseline_total: float = 0.0
    """Sum of the second run's scores over the pairs."""
    both_failed: int = 0
    """Pairs of which neither side has a score of its own: two failures are no equal answers."""

    def add_pair(self, one: ScoredRow | AnsweredExample, two: ScoredRow | AnsweredExample) -> bool:
        """Count a pair, if both sides have a score; say whether they have."""
        first, second = one.value, two.value
        if first is None or second is None:
            return False
        self.baseline_total += second
        self.both_failed += one.error and two.error and not first and not second
        group = one.group if one.group is not None else two.group
        (self.failed if one.error or two.error else self.clean).add(first, second, group)
        return True

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return self.clean.n + self.failed.n

    def join(self) -> PairedSums:
        """Give the sums over all pairs, whatever they share."""
        sums = self.clean.join()
        sums.merge(self.failed.join())
        return sums

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Give the difference over the pairs, by clusters where there are any."""
        if without_errors or not self.failed.n:
            return self.clean.difference()
        both = PairSums()
        both.merge(self.clean)
        both.merge(self.failed)
        return both.difference()


@dataclass
class Comparison:
    """The first run against the second: by dataset and in all, and which examples were fixed or broken."""

    datasets: dict[str, DatasetPairs] = field(default_factory=dict)
    fixed: list[tuple[str, str]] = field(default_factory=list)
    """(dataset, id) of those that pass in the first run alone; the first `kept` of them."""
    broken: list[tuple[str, str]] = field(default_factory=list)
    fixed_count: int = 0
    broken_count: int = 0
    only_first: int = 0
    only_second: int = 0
    changed_content: int = 0
    """Rows with the same id in both runs, and another content."""
    known_content: int = 0
    """Pairs of which the contents are known to agree; the others agree in their id."""

    @property
    def pairs(self) -> int:
        """How many examples both runs scored."""
        return sum(each.n for each in self.datasets.values())

    def differences(self, *, without_errors: bool = False) -> dict[str, Difference]:
        """Give the paired difference of each dataset that has a pair."""
        return {name: each.difference(without_errors=without_errors) for name, each in self.datasets.items() if each.n}

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Give the headline: of one dataset its own, of several the mean with equal weights."""
        parts = list(self.differences(without_errors=without_errors).values())
        return parts[0] if len(parts) == 1 else average_differences(parts)

    def unpaired(self) -> Difference:
        """Give the headline difference as if no example were shared."""
        parts = [
            compare_means(each.first, each.second) for each in self.datasets.values() if each.first.n and each.second.n
        ]
        return parts[0] if len(parts) == 1 else average_differences(parts)

    def contrast(self, name: str = "", *, control: bool = False) -> Contrast:
        """Give what a family of verdicts takes."""
        clean = self.difference(without_errors=True)
        return Contrast(name, self.difference(), clean, control)


def _alternate(first: Iterable[ScoredRow], second: Iterable[ScoredRow]) -> Iterator[tuple[int, ScoredRow]]:
    """Read both by turns, so that rows in the same order meet at once."""
    waiting = [(0, iter(first)), (1, iter(second))]
    while waiting:
        for side, rows in [*waiting]:
            row = next(rows, None)
            if row is None:
                waiting.remove((side, rows))
            else:
                yield side, row


class Pairing:
    """Takes the rows of two runs as they come, and pairs them by example.

    Args:
        threshold: A score that passes; of several answers to an example, their mean.
        kept: So many ids of fixed and of broken examples are listed; all are counted.
        repeats: How often each example was answered, in the run that is judged and in the baseline.
    """

    def __init__(
        self, *, threshold: float = DEFAULT_THRESHOLD, kept: int = 1000, repeats: tuple[int, int] = (1, 1)
    ) -> None:
        self._found = Comparison()
        self._threshold, self._kept, self._repeats = threshold, kept, repeats
        self._answers: tuple[dict[Key, list[ScoredRow]], ...] = ({}, {})
        self._waiting: tuple[dict[Key, ScoredRow | AnsweredExample], ...] = ({}, {})

    def add(self, row: ScoredRow, *, baseline: bool) -> None:
        """Take a row of the run that is judged, or of the baseline."""
        side, key = int(baseline), (row.dataset, row.id)
        if self._repeats[side] == 1:
            self._place(key, row, side)
            return
        answers = self._answers[side].setdefault(key, [])
        answers.append(row)
        if len(answers) == self._repeats[side]:
            self._place(key, average_answers(self._answers[side].pop(key)), side)

    def _place(self, key: Key, row: ScoredRow | AnsweredExample, side: int) -> None:
        """Pair an example with its partner, or let it wait for that."""
        found = self._found
        pairs = found.datasets.get(row.dataset)
        if pairs is None:
            pairs = found.datasets[row.dataset] = DatasetPairs()
        value = row.value
        if value is not None:
            (pairs.second if side else pairs.first).add(value, row.group)
        partner = self._waiting[1 - side].pop(key, None)
        if partner is None:
            self._waiting[side][key] = row
            return
        both = row.content is not None and partner.content is not None
        if both and row.content != partner.content:
            found.changed_content += 1
            return
        one, two = (partner, row) if side else (row, partner)
        if pairs.add_pair(one, two):
            found.known_content += both
            _note_change(found, one, two, self._threshold, self._kept)

    def finish(self) -> Comparison:
        """Give the comparison, when all rows of both runs have come."""
        for side, open_examples in enumerate(self._answers):
            for key, answers in open_examples.items():  # not all answers came: what there is counts
                self._place(key, average_answers(answers), side)
            open_examples.clear()
        self._found.only_first, self._found.only_second = map(len, self._waiting)
        return self._found


def compare_rows(
    first: Iterable[ScoredRow],
    second: Iterable[ScoredRow],
    *,
    threshold: float = DEFAULT_THRESHOLD,
    kept: int = 1000,
    repeats: tuple[int, int] = (1, 1),
) -> Comparison:
    """Compare two runs.

    Args:
        first: Rows of the run that is judged.
        second: Rows of the baseline.
        threshold: A score that passes.
        kept: So many ids of fixed and of broken examples are listed; all are counted.
        repeats: How often each example was answered, in the first run and in the second.
    """
    pairing = Pairing(threshold=threshold, kept=kept, repeats=repeats)
    for side, row in _alternate(first, second):
        pairing.add(row, baseline=bool(side))
    return pairing.finish()


def _note_change(
    found: Comparison,
    one: ScoredRow | AnsweredExample,
    two: ScoredRow | AnsweredExample,
    threshold: float,
    kept: int,
) -> None:
    if one.value is None or two.value is None:
        return
    passes, passed = one.value >= threshold, two.value >= threshold
    if passes == passed:
        return
    listed = found.fixed if passes else found.broken
    if len(listed) < kept:
        listed.append((one.dataset, one.id))
    if passes:
        found.fixed_count += 1
    else:
        found.broken_count += 1
