"""Pairs the answers of two arms by example: every comparison gets its pairs here.

`Pairing` matches answers as they stream in, whatever their order; an answer waits until its partner is there. `Pairs`
adds up what was matched. Only sums are kept, so memory stays small however long the runs are.
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
"""Names for the score that counts: over several datasets it is their mean, each with the same weight."""

Key = tuple[str, Any]  # dataset and id of an example


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """The part of a row that a comparison needs; of several answers to one example, their mean."""

    id: str | int  # of the example
    dataset: str  # its tag
    value: float | None  # the score as means count it: 0 for a failed answer, None where there is none
    group: str | None = None  # the document or conversation that the example shares with others
    failed: bool = False  # whether the answer failed; of several, whether any did
    # a digest of the whole example, where it is known: equal ids with other contents are not a pair
    content: bytes | None = None
    dollars: float | None = None  # what the answer cost, where it is known
    is_estimate: bool = False  # whether that cost is an estimate


def average_answers(answers: Sequence[ScoredAnswer]) -> ScoredAnswer:
    """Average all answers to an example: asking again tells nothing about other examples."""
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
    """Read off a row what a comparison needs: the score, the id that it is paired by, and a digest of its example."""
    failed, estimate = row.error is not None, row.metadata.get("cost_is_estimate") is True
    key, value = row.example_id if id is None else id, 0.0 if failed else score
    return ScoredAnswer(key, row.dataset, value, read_group(row), failed, content, read_dollars(row), estimate)


def read_dollars(row: EvalRow) -> float | None:
    """Return what the answer cost; None where that is not known."""
    dollars = row.metadata.get("cost_usd")
    return dollars if isinstance(dollars, int | float) and not isinstance(dollars, bool) else None


def read_group(row: EvalRow) -> str | None:
    """Return the document or conversation that an example shares with others; repeats of one example are no group."""
    cluster = row.metadata.get("cluster")
    return str(cluster) if isinstance(cluster, str | int) else None


def is_unread_row(row: EvalRow) -> bool:
    """Whether a system returned a context that no model has read, so that there is no answer to score."""
    return row.metadata.get("output") == "context" and "answered" not in row.metadata


def read_value(metric: str, score_field: str, threshold: float) -> Callable[[EvalRow], float | None]:
    """Return a function that reads the compared number off a row: its score, whether it passed, or another score."""
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
    failed: PairSums = field(default_factory=PairSums)  # the others
    baseline_total: float = 0.0  # sum of the baseline's scores over the pairs
    both_failed: int = 0  # pairs of which neither side has a score of its own: two failures are no equal answers

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
        """Return the sums over all pairs, whatever they share."""
        sums = self.clean.join()
        sums.merge(self.failed.join())
        return sums

    def difference(self, *, without_errors: bool = False) -> Difference:
        """Compute the difference over the pairs, by clusters where there are any."""
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
        """Compute the headline: of one dataset its difference, of several their mean with equal weights."""
        parts = [each.difference(without_errors=without_errors) for each in self.datasets.values() if each.n]
        return parts[0] if len(parts) == 1 else average_differences(parts)

    def contrast(self, name: str = "", *, control: bool = False) -> Contrast:
        """Return the difference, with and without errors, as `judge_family` takes it."""
        return Contrast(name, self.difference(), self.difference(without_errors=True), control)


Answers = dict[Key, ScoredAnswer]  # all answers of one system that have a score, one for each example


def gather_answers(rows: Iterable[EvalRow], field: str) -> Answers:
    """Gather the answers in the rows of one system, the answers to one example averaged; `field` is the score."""
    found: dict[Key, list[ScoredAnswer]] = {}
    for row in rows:
        answer = read_answer(row, row.scores.get(field))
        if answer.value is not None:
            found.setdefault((row.dataset, row.example_id), []).append(answer)
    return {key: average_answers(answers) for key, answers in found.items()}


def compare_answers(one: Answers, two: Answers) -> Difference:
    """Compute the difference of two systems on the examples that both have."""
    pairs = Pairs()
    for key, answer in one.items():
        if key in two:
            pairs.add(answer, two[key])
    return pairs.difference()


class Pairing:
    """Matches the answers of systems with those of their baseline, example by example, as they come.

    `on_pair` gets the system, its answer and the baseline's for each example that both have answered; `on_example` gets
    every answer, paired or not. Repeated answers are averaged before they are paired.
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
        self._paired: dict[Key, int] = {}  # how many systems have answered an example that the baseline has answered
        self._waiting: dict[Key, dict[str, ScoredAnswer]] = {}

    @property
    def waiting(self) -> int:
        """How many examples are kept because an answer to them has not come."""
        return len(self._baseline_answers) + len(self._waiting)

    @property
    def is_open(self) -> bool:
        """Whether some of the repeated answers to an example have not come."""
        return bool(self._open)

    def count_unpaired(self) -> tuple[int, int]:
        """Count the examples without a partner: those of the systems, and those of the baseline."""
        return len(self._waiting), len(self._baseline_answers)

    def add(self, system: str, answer: ScoredAnswer) -> None:
        """Take one answer."""
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
        """Average the answers that have come where some of an example have not."""
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
            if self._paired[key] >= len(self._systems):  # all have come: nothing of the example has to be kept
                del self._paired[key], self._baseline_answers[key]
        else:
            self._waiting.setdefault(key, {})[system] = answer
