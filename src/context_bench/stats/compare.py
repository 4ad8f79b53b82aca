"""Two runs side by side: pairs their rows by dataset, id and content as they stream past; keeps sums, not rows.

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

__all__ = ["Comparison", "DatasetPairs", "Pairing", "ScoredRow", "compare_rows"]


Key = tuple[str, str, int]
"""Dataset, id and repeat: what a row is paired by."""


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
    repeated: int = 0
    """Pairs whose group is the example itself, which was answered several times."""
    baseline_total: float = 0.0
    """Sum of the second run's scores over the pairs."""

    def add_pair(self, one: ScoredRow, two: ScoredRow, *, repeats: bool = False) -> None:
        """Count a pair, if both sides have a score; with repeats, an example without a group is one by itself."""
        first, second = one.value, two.value
        if first is None or second is None:
            return
        self.pairs.add(first, second)
        self.baseline_total += second
        group = one.group if one.group is not None else two.group
        if group is None and repeats:
            group = one.id
        self.grouped += group is not None
        self.repeated += group == one.id
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
            groups = self.clean_groups if without_errors else self.groups
            return clustered_difference(groups, repeated=self.repeated == self.pairs.n)
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
    changed_content: int = 0
    """Rows with the same id in both runs, and another content."""
    known_content: int = 0
    """Pairs of which the contents are known to agree; the others agree in their id."""

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


class Pairing:
    """Takes the rows of two runs as they come, and pairs them.

    Args:
        threshold: A score that passes.
        kept: So many ids of fixed and of broken examples are listed; all are counted.
        repeats: Whether examples were answered several times: the answers to one example are then a cluster.
    """

    def __init__(self, *, threshold: float = 0.7, kept: int = 1000, repeats: bool = False) -> None:
        self._found = Comparison()
        self._threshold, self._kept, self._repeats = threshold, kept, repeats
        self._waiting: tuple[dict[Key, ScoredRow], dict[Key, ScoredRow]] = ({}, {})

    def add(self, row: ScoredRow, *, baseline: bool) -> None:
        """Take a row of the run that is judged, or of the baseline."""
        found, side = self._found, int(baseline)
        pairs = found.datasets.get(row.dataset)
        if pairs is None:
            pairs = found.datasets[row.dataset] = DatasetPairs()
        value = row.value
        if value is not None:
            (pairs.second if side else pairs.first).add(value)
        key = (row.dataset, row.id, row.repeat)
        partner = self._waiting[1 - side].pop(key, None)
        if partner is None:
            self._waiting[side][key] = row
            return
        both = row.content is not None and partner.content is not None
        if both and row.content != partner.content:
            found.changed_content += 1
            return
        found.known_content += both
        one, two = (partner, row) if side else (row, partner)
        pairs.add_pair(one, two, repeats=self._repeats)
        _note_change(found, one, two, self._threshold, self._kept)

    def finish(self) -> Comparison:
        """Give the comparison, when all rows of both runs have come."""
        self._found.only_first, self._found.only_second = map(len, self._waiting)
        return self._found


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
    pairing = Pairing(threshold=threshold, kept=kept, repeats=repeats)
    for side, row in _alternate(first, second):
        pairing.add(row, baseline=bool(side))
    return pairing.finish()


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
