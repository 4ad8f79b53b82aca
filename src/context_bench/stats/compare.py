"""Two runs side by side: pairs their rows by dataset and id as they stream past, and keeps sums, not rows.

Rows wait only until their partner comes: two runs in the same order need next to no memory, whatever their length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from context_bench.stats.clusters import ClusterSums, clustered_difference
from context_bench.stats.differences import (
    Difference,
    PairedSums,
    average_differences,
    paired_difference,
    unpaired_difference,
)
from context_bench.stats.means import Moments
from context_bench.stats.verdicts import Contrast

__all__ = ["Comparison", "DatasetPairs", "ScoredRow", "compare_rows"]


Key = tuple[str, str, int]


@dataclass(frozen=True)
class ScoredRow:
    """What a comparison needs of a row: an errored one counts as 0, one without a score is left out."""

    id: str
    dataset: str
    score: float | None
    group: str | None = None
    error: bool = False
    repeat: int = 0

    @property
    def value(self) -> float | None:
        """The score as means count it."""
        return 0.0 if self.error else self.score


@dataclass
class DatasetPairs:
    """Sums over the pairs of one dataset."""

    pairs: PairedSums = field(default_factory=PairedSums)
    clean: PairedSums = field(default_factory=PairedSums)
    """Without the pairs in which either side failed."""
    groups: ClusterSums = field(default_factory=ClusterSums)
    clean_groups: ClusterSums = field(default_factory=ClusterSums)
    first: Moments = field(default_factory=Moments)
    second: Moments = field(default_factory=Moments)
    grouped: int = 0

    def add_pair(self, one: ScoredRow, two: ScoredRow, *, repeats: bool = False) -> None:
        """Count a pair, if both sides have a score; with repeats, an example without a group is one by itself."""
        first, second = one.value, two.value
        if first is None or second is None:
            return
        self.pairs.add(first, second)
        group = one.group if one.group is not None else two.group
        if group is None and repeats:
            group = one.id
        self.grouped += group is not None
        self.groups.add(str(group), first - second)
        if not (one.error or two.error):
            self.clean.add(first, second)
            self.clean_groups.add(str(group), first - second)

    @property
    def clustered(self) -> bool:
        """Whether examples share documents or conversations: every one has a group, and there are fewer groups."""
        return self.grouped == self.pairs.n and len(self.groups.groups) < self.pairs.n

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Give the difference over the pairs, by clusters where there are any."""
        if self.clustered:
            return clustered_difference(self.clean_groups if without_errors else self.groups)
        return paired_difference(self.clean if without_errors else self.pairs)


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

    @property
    def pairs(self) -> int:
        """How many examples both runs scored."""
        return sum(each.pairs.n for each in self.datasets.values())

    def differences(self, *, without_errors: bool = False) -> dict[str, Difference]:
        """Give the paired difference of each dataset that has a pair."""
        return {
            name: each.difference(without_errors=without_errors) for name, each in self.datasets.items() if each.pairs.n
        }

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Give the headline: of one dataset its own, of several the mean with equal weights."""
        parts = list(self.differences(without_errors=without_errors).values())
        return parts[0] if len(parts) == 1 else average_differences(parts)

    def unpaired(self) -> Difference:
        """Give the headline difference as if no example were shared."""
        parts = [
            unpaired_difference(each.first, each.second)
            for each in self.datasets.values()
            if each.first.n and each.second.n
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


def compare_rows(
    first: Iterable[ScoredRow],
    second: Iterable[ScoredRow],
    *,
    threshold: float = 0.7,
    kept: int = 1000,
    repeats: bool = False,
) -> Comparison:
    """Compare two runs.

    Args:
        first: Rows of the run that is judged.
        second: Rows of the baseline.
        threshold: A score that passes.
        kept: So many ids of fixed and of broken examples are listed; all are counted.
        repeats: Whether examples were answered several times: the answers to one example are then a cluster.
    """
    found = Comparison()
    waiting: tuple[dict[Key, ScoredRow], dict[Key, ScoredRow]] = ({}, {})
    for side, row in _alternate(first, second):
        pairs = found.datasets.get(row.dataset)
        if pairs is None:
            pairs = found.datasets[row.dataset] = DatasetPairs()
        if row.value is not None:
            (pairs.second if side else pairs.first).add(row.value)
        key = (row.dataset, row.id, row.repeat)
        partner = waiting[1 - side].pop(key, None)
        if partner is None:
            waiting[side][key] = row
            continue
        one, two = (partner, row) if side else (row, partner)
        pairs.add_pair(one, two, repeats=repeats)
        _note_change(found, one, two, threshold, kept)
    found.only_first, found.only_second = len(waiting[0]), len(waiting[1])
    return found


def _note_change(found: Comparison, one: ScoredRow, two: ScoredRow, threshold: float, kept: int) -> None:
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
