"""Pairs the answers of two arms by example, for every comparison.

`Pairing` matches answers in any order of arrival; an answer waits until its partner has arrived. `Pairs` adds up the
matched answers. Only sums are kept, so long runs need no more memory than short ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from context_bench.numbers import MACRO_SCORE, MEAN_SCORE, PASS_RATE
from context_bench.stats import Contrast, Difference, PairedSums, PairSums, average_differences

if TYPE_CHECKING:
    from context_bench.results import EvalRow

SCORE_NAMES = (None, "score", MEAN_SCORE, MACRO_SCORE)
"""Names of the primary score, which for several datasets is their mean with equal weights."""

Key = tuple[str, Any]  # dataset and id of an example


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """The part of a row that a comparison needs, or the mean of several answers to an example."""

    id: str | int
    dataset: str
    value: float | None  # the score; 0 for a failed answer, None for no score
    group: str | None = None  # the document or conversation that the example shares with others
    failed: bool = False  # whether the answer, or any of several, failed
    # a digest of the whole example, if known: the same id with different content is not a pair
    content: bytes | None = None
    dollars: float | None = None  # the answer's cost, if known
    is_estimate: bool = False  # whether that cost is an estimate


def average_answers(answers: Sequence[ScoredAnswer]) -> ScoredAnswer:
    """Average all answers to an example: repeats are not independent examples."""
    first = answers[0]
    if len(answers) == 1:
        return first
    values = [each.value for each in answers if each.value is not None]
    costs = [each.dollars for each in answers if each.dollars is not None]
    return ScoredAnswer(
        first.id,
        first.dataset,
        math.fsum(values) / len(values) if values else None,
        first.group,
        any(each.failed for each in answers),
        first.content,
        sum(costs) / len(costs) if costs else None,
        any(each.is_estimate for each in answers),
    )


# --- reading rows


def read_answer(
    row: EvalRow, score: float | None, *, id: str | int | None = None, content: bytes | None = None
) -> ScoredAnswer:
    """Read the parts of a row that a comparison needs; answers are paired by `id`."""
    failed, estimate = row.error is not None, row.metadata.get("cost_is_estimate") is True
    key, value = row.example_id if id is None else id, 0.0 if failed else score
    return ScoredAnswer(key, row.dataset, value, read_group(row), failed, content, read_dollars(row), estimate)


def read_dollars(row: EvalRow) -> float | None:
    """Return the cost of an answer in dollars; None if unknown."""
    dollars = row.metadata.get("cost_usd")
    return dollars if isinstance(dollars, int | float) and not isinstance(dollars, bool) else None


def read_group(row: EvalRow) -> str | None:
    """Return the document or conversation that an example shares with others; repeats do not form a group."""
    cluster = row.metadata.get("cluster")
    return str(cluster) if isinstance(cluster, str | int) else None


NOT_AN_ANSWER = "the system returned a context, not an answer"  # why an evaluator of answers gives no score


def is_unread_row(row: EvalRow) -> bool:
    """Whether the row is a context that no model has read, so it has no answer to score."""
    return row.metadata.get("output") == "context" and "answered" not in row.metadata


def read_value(metric: str, score_field: str, threshold: float) -> Callable[[EvalRow], float | None]:
    """Return a function that reads the compared number of a row: its score, pass or fail, or another score."""
    if metric == PASS_RATE:

        def read_pass(row: EvalRow) -> float | None:
            score = row.scores.get(score_field)
            return None if score is None else float(score >= threshold)

        return read_pass
    name = score_field if metric in SCORE_NAMES else metric
    return lambda row: row.scores.get(name)


# --- sums over pairs


@dataclass
class DatasetPairs:
    """Sums over the pairs of one dataset."""

    clean: PairSums = field(default_factory=PairSums)  # pairs in which neither side failed
    failed: PairSums = field(default_factory=PairSums)  # all others
    baseline_total: float = 0.0  # sum of the baseline's scores over the pairs
    both_failed: int = 0  # pairs in which both sides failed: these are not equal answers

    def add(self, one: ScoredAnswer, two: ScoredAnswer) -> bool:
        """Add a pair if both sides have a score; return whether they have."""
        first, second = one.value, two.value
        if first is None or second is None:
            return False
        self.baseline_total += second
        self.both_failed += one.failed and two.failed and not first and not second
        group = one.group if one.group is not None else two.group
        (self.failed if one.failed or two.failed else self.clean).add(first, second, group)
        return True

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return self.clean.n + self.failed.n

    def join(self) -> PairedSums:
        """Return the sums over all pairs, ignoring clusters."""
        sums = self.clean.join()
        sums.merge(self.failed.join())
        return sums

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Compute the difference over the pairs, by cluster if there are clusters."""
        if without_errors or not self.failed.n:
            return self.clean.difference()
        both = PairSums()
        both.merge(self.clean)
        both.merge(self.failed)
        return both.difference()


@dataclass
class Pairs:
    """Sums over the pairs of one system and its baseline, by dataset."""

    datasets: dict[str, DatasetPairs] = field(default_factory=dict)

    def add(self, one: ScoredAnswer, two: ScoredAnswer) -> bool:
        """Add a pair if both sides have a score; return whether they have."""
        pairs = self.datasets.get(one.dataset)
        if pairs is None:
            pairs = self.datasets[one.dataset] = DatasetPairs()
        return pairs.add(one, two)

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return sum(each.n for each in self.datasets.values())

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Compute the headline difference: for several datasets, the mean with equal weights."""
        parts = [each.difference(without_errors=without_errors) for each in self.datasets.values() if each.n]
        return parts[0] if len(parts) == 1 else average_differences(parts)

    def contrast(self, name: str = "", *, control: bool = False) -> Contrast:
        """Return the difference with and without errors, for `judge_family`."""
        return Contrast(name, self.difference(), self.difference(without_errors=True), control)


Answers = dict[Key, ScoredAnswer]  # one system's scored answers, one for each example


def gather_answers(rows: Iterable[EvalRow], field: str) -> Answers:
    """Collect the answers of one system's rows, averaged by example; `field` is the score."""
    found: dict[Key, list[ScoredAnswer]] = {}
    for row in rows:
        answer = read_answer(row, row.scores.get(field))
        if answer.value is not None:
            found.setdefault((row.dataset, row.example_id), []).append(answer)
    return {key: average_answers(answers) for key, answers in found.items()}


def compare_answers(one: Answers, two: Answers) -> Difference:
    """Compute the difference between two systems on the examples that both answered."""
    pairs = Pairs()
    for key, answer in one.items():
        if key in two:
            pairs.add(answer, two[key])
    return pairs.difference()


class Pairing:
    """Matches the answers of systems with those of the baseline by example while they arrive.

    For each example that both answered, `on_pair` gets the system, its answer and the baseline's. `on_example` gets
    every answer, paired or not. Repeated answers are averaged before pairing.
    """

    def __init__(
        self,
        systems: Iterable[str],
        baseline: str,
        on_pair: Callable[[str, ScoredAnswer, ScoredAnswer], object],
        *,
        repeats: int = 1,
        baseline_repeats: int | None = None,
        on_example: Callable[[str, ScoredAnswer], object] | None = None,
    ) -> None:
        self.baseline = baseline
        self._systems, self._on_pair, self._on_example = {*systems} - {baseline}, on_pair, on_example
        self._repeats, self._baseline_repeats = repeats, baseline_repeats or repeats
        self._open: dict[tuple[str, Key], list[ScoredAnswer]] = {}
        self._baseline_answers: dict[Key, ScoredAnswer] = {}
        self._paired: dict[Key, int] = {}  # systems that answered, for examples that the baseline answered
        self._waiting: dict[Key, dict[str, ScoredAnswer]] = {}

    @property
    def waiting(self) -> int:
        """The number of examples that wait in memory for another answer."""
        return len(self._baseline_answers) + len(self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether an example lacks some of its repeated answers."""
        return bool(self._open)

    def count_unpaired(self) -> tuple[int, int]:
        """Count examples without a partner: first those of the systems, then those of the baseline."""
        return len(self._waiting), len(self._baseline_answers)

    def add(self, system: str, answer: ScoredAnswer) -> None:
        key, repeats = (answer.dataset, answer.id), self._repeats
        if system == self.baseline:
            repeats = self._baseline_repeats
        else:
            self._systems.add(system)
        if repeats == 1:
            self._place(system, key, answer)
            return
        answers = self._open.setdefault((system, key), [])
        answers.append(answer)
        if len(answers) == repeats:
            del self._open[system, key]
            self._place(system, key, average_answers(answers))

    def close(self) -> None:
        """For examples that still lack some repeats, average the answers received so far."""
        for (system, key), answers in self._open.items():
            self._place(system, key, average_answers(answers))
        self._open = {}

    def _place(self, system: str, key: Key, answer: ScoredAnswer) -> None:
        if self._on_example is not None:
            self._on_example(system, answer)
        if system == self.baseline:
            waiting = self._waiting.pop(key, {})
            for name, other in waiting.items():
                self._on_pair(name, other, answer)
            if len(waiting) < len(self._systems):
                self._baseline_answers[key] = answer
                self._paired[key] = len(waiting)
        elif (baseline := self._baseline_answers.get(key)) is not None:
            self._on_pair(system, answer, baseline)
            self._paired[key] += 1
            if self._paired[key] >= len(self._systems):  # complete: forget the example
                del self._paired[key], self._baseline_answers[key]
        else:
            self._waiting.setdefault(key, {})[system] = answer
