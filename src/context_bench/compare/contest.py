"""A contest: one system against its baseline, within a run or between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from context_bench.compare.blind_spots import Sensitivity
from context_bench.compare.pairing import DatasetPairs, Pairing, Pairs, ScoredAnswer
from context_bench.compare.run_inputs import RunInput
from context_bench.stats import Contrast, Difference, ScoreSums, Verdict, average_differences, compare_means

SYSTEM, BASELINE = "system", "baseline"  # sides of a contest; systems of two runs may have the same name

MAX_LISTED = 1000  # fixed or broken examples to list for one system; all are counted


@dataclass
class Changes:
    """Examples that pass on one side only: all are counted, the first ones listed by dataset and id."""

    count: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)

    def add(self, answer: ScoredAnswer) -> None:
        self.count += 1
        if len(self.examples) < MAX_LISTED:
            self.examples.append((answer.dataset, str(answer.id)))


@dataclass
class Contest:
    name: str
    source: RunInput
    system: str
    baseline: RunInput
    baseline_system: str
    control: bool = False
    pairs: Pairs = field(default_factory=Pairs)  # sums over the examples that both answered
    scores: dict[str, ScoreSums] = field(default_factory=dict)  # its scores by dataset, paired or not
    baseline_scores: dict[str, ScoreSums] = field(default_factory=dict)  # the same for the baseline
    fixed: Changes = field(default_factory=Changes)  # examples that pass only with the system
    broken: Changes = field(default_factory=Changes)  # examples that pass only with the baseline
    same_content: int = 0  # pairs with the same known content; the others have only the same id
    other_content: int = 0  # examples with the same id and different content
    only_here: int = 0  # examples that the baseline lacks
    only_in_baseline: int = 0  # examples that the system lacks
    verdict: Verdict | None = None  # on the headline number
    by_dataset: dict[str, Verdict] = field(default_factory=dict)  # on each dataset
    context_unneeded: str = ""  # why the examples cannot show that it lost nothing; empty if they can

    @property
    def sensitivity(self) -> Sensitivity | None:
        """Whether the run's data could have shown a loss at the system's size; None if unknown."""
        return self.source.sensitivity.get(self.system)

    def start_pairing(self, threshold: float) -> Pairing:
        """Return a pairing that adds its pairs to this contest; `threshold` is the lowest score that passes."""

        def add_example(side: str, answer: ScoredAnswer) -> None:
            if answer.value is not None:
                scores = self.scores if side == SYSTEM else self.baseline_scores
                scores.setdefault(answer.dataset, ScoreSums()).add(answer.value, answer.group)

        def add_pair(_: str, own: ScoredAnswer, baseline: ScoredAnswer) -> None:
            known = own.content is not None and baseline.content is not None
            if known and own.content != baseline.content:
                self.other_content += 1
            elif self.pairs.add(own, baseline) and own.value is not None and baseline.value is not None:
                self.same_content += known
                if (passes := own.value >= threshold) != (baseline.value >= threshold):
                    (self.fixed if passes else self.broken).add(own)

        repeats, others = self.source.settings.repeats, self.baseline.settings.repeats
        return Pairing([SYSTEM], BASELINE, add_pair, repeats=repeats, baseline_repeats=others, on_example=add_example)

    def list_datasets(self) -> list[str]:
        """List the datasets on which both sides have scores."""
        return sorted(self.scores.keys() & self.baseline_scores.keys())

    def get_pairs(self, tag: str) -> DatasetPairs:
        return self.pairs.datasets.get(tag) or DatasetPairs()

    def is_paired(self, tag: str) -> bool:
        """Whether a dataset is compared by pairs: at least half of the smaller side has a partner."""
        n = self.get_pairs(tag).n
        return n >= 2 and 2 * n >= min(self.scores[tag].n, self.baseline_scores[tag].n)

    def contrast(self, tags: Sequence[str]) -> Contrast:
        """Return the difference on some datasets (for several, the mean): over pairs if possible, else of two means.

        The difference without errors requires that all datasets are paired.
        """
        clean = self._average(tags, without_errors=True) if all(map(self.is_paired, tags)) else None
        return Contrast(self.name, self._average(tags), clean, self.control)

    def _average(self, tags: Sequence[str], *, without_errors: bool = False) -> Difference:
        parts = [
            self.get_pairs(tag).difference(without_errors=without_errors)
            if self.is_paired(tag)
            else compare_means(self.scores[tag], self.baseline_scores[tag])
            for tag in tags
        ]
        return parts[0] if len(parts) == 1 else average_differences(parts)

    def find_means(self) -> tuple[float, float]:
        """Return the mean scores of the system and the baseline over the compared examples."""
        means = []
        for tag in self.list_datasets():
            pairs = self.get_pairs(tag)
            if self.is_paired(tag):
                baseline = pairs.baseline_total / pairs.n
                means.append((baseline + pairs.join().total / pairs.n, baseline))
            else:
                means.append((self.scores[tag].join().mean, self.baseline_scores[tag].join().mean))
        return sum(one for one, _ in means) / len(means), sum(other for _, other in means) / len(means)

    def count_changes(self) -> tuple[int, int] | None:
        """Count the fixed and the broken examples; None if nothing is paired."""
        return (self.fixed.count, self.broken.count) if self.pairs.n else None
