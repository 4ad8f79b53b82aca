"""Cost against quality: the Pareto front by significant differences, and the dollars that systems save.

A dominates B if one axis is better by a paired 95% interval and the other is not shown to be worse. "Not significantly
different" is not transitive, so there are no ranks, only membership of the front. A failure counts on both axes: it
scores 0 and costs as much as the most expensive system for that example, because another system has to answer it. Only
sums are kept; an example waits until all systems have answered it. Dollar savings are claimed only for systems that are
not worse.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, Any, NamedTuple

from context_bench.compare.pairing import Pairs, ScoredAnswer, average_answers, read_answer
from context_bench.compare.verdicts import DollarSaving
from context_bench.numbers import PARETO_COSTS
from context_bench.stats import TOO_FEW, Interval, PairSums, Verdict

if TYPE_CHECKING:
    from context_bench.results import EvalRow


class _PricedAnswer(NamedTuple):
    """The score and costs of one row; the costs of a failed row are unknown."""

    scored: ScoredAnswer
    costs: tuple[float | None, ...]


class _Cost:
    """The total cost of one system and the number of examples in it."""

    __slots__ = ("n", "total")

    def __init__(self) -> None:
        self.n, self.total = 0, 0.0


@dataclass
class _Pair:
    """Sums over the examples that two systems both answered."""

    quality: Pairs = field(default_factory=Pairs)
    costs: tuple[PairSums, ...] = field(default_factory=lambda: tuple(PairSums() for _ in PARETO_COSTS))

    def compare(self, axis: int) -> tuple[int, int]:
        """Compare the first system with the second in quality and cost: 1 shown better, -1 shown worse, 0 neither."""
        quality = _read_sign(self.quality.difference().interval()) if self.quality.n else 0
        costs = self.costs[axis]
        return quality, -_read_sign(costs.difference(scores=False).interval()) if costs.n else 0


def _read_sign(interval: Interval) -> int:
    return 0 if not interval.known else (interval.low > 0) - (interval.high < 0)


@dataclass(frozen=True)
class Front:
    key: str  # the cost of the front's axis, one of `PARETO_COSTS`
    costs: dict[str, float]  # the cost of each system, failures included
    names: tuple[str, ...]  # the systems on the front
    reasons: dict[str, str]  # for each other system, which system dominates it and how


class FrontTally:
    """Pairs the rows of all systems by example; only systems in `paired` are compared with each other."""

    def __init__(
        self, systems: Iterable[str], paired: Collection[str], read: Callable[[EvalRow], float | None], repeats: int = 1
    ) -> None:
        self._systems, self._paired, self._read, self._repeats = set(systems), set(paired), read, repeats
        self._waiting: dict[tuple[str, Any], dict[str, list[_PricedAnswer]]] = {}
        self._due: dict[tuple[str, Any], int] = {}
        self._pairs: dict[tuple[str, str], _Pair] = {}
        self._costs: dict[str, tuple[_Cost, ...]] = {}
        self._outputs: set[str] = set()

    def add(self, rows: Iterable[EvalRow]) -> None:
        for row in rows:
            key = (row.dataset, row.example_id)
            self._waiting.setdefault(key, {}).setdefault(row.system, []).append(self._take(row))
            due = self._due[key] = self._due.get(key, len(self._systems) * self._repeats) - 1
            if not due:
                del self._due[key]
                self._fold(self._waiting.pop(key))

    def _take(self, row: EvalRow) -> _PricedAnswer:
        scored = read_answer(row, self._read(row))
        if scored.failed:
            return _PricedAnswer(scored, (None,) * len(PARETO_COSTS))
        output = row.metadata.get("output", "")
        self._outputs.add(output)
        read = row.output_tokens if row.upstream_tokens is None and output == "context" else row.upstream_tokens
        dollars = None if scored.dollars is None else scored.dollars * 1000
        return _PricedAnswer(scored, (dollars, read, row.output_tokens))

    def _fold(self, answers: Mapping[str, Sequence[_PricedAnswer]]) -> None:
        every = [answer.costs for own in answers.values() for answer in own]
        dearest = [max((cost for cost in costs if cost is not None), default=None) for costs in zip(*every)]
        costs = {
            name: [_average_cost(own, axis, most) for axis, most in enumerate(dearest)] for name, own in answers.items()
        }
        scored = {name: average_answers([answer.scored for answer in own]) for name, own in answers.items()}
        for name, own in costs.items():
            for sums, cost in zip(self._costs.setdefault(name, tuple(_Cost() for _ in PARETO_COSTS)), own):
                if cost is not None:
                    sums.n += 1
                    sums.total += cost
        names = sorted(self._paired & answers.keys())
        for place, one in enumerate(names):
            for two in names[place + 1 :]:
                pair = self._pairs.setdefault((one, two), _Pair())
                pair.quality.add(scored[one], scored[two])
                group = scored[one].group
                group = None if group is None else f"{scored[one].dataset} {group}"
                for pairs, first, second in zip(pair.costs, costs[one], costs[two]):
                    if first is not None and second is not None:
                        pairs.add(first, second, group)

    def result(self, competing: Collection[str], baseline: str | None = None) -> Front | None:
        """Find the front of the competing systems; a baseline that does not compete can dominate them too.

        None if no cost is known, or if the only cost is returned tokens and some systems return contexts, some answers.
        """
        if self._waiting:
            closed = copy.deepcopy(self)
            closed._waiting, closed._due = {}, {}
            for answers in self._waiting.values():
                closed._fold(answers)
            return closed.result(competing, baseline)
        others = [*competing, *([baseline] if baseline is not None and baseline not in competing else [])]
        axis = self._choose_axis(others)
        if axis is None:
            return None
        beaten_by: dict[str, dict[str, str]] = {name: {} for name in competing}
        for one, two in permutations(others, 2):
            if two in beaten_by and (how := self._explain(one, two, axis)):
                beaten_by[two][one] = how
        names = [name for name, ways in beaten_by.items() if not ways]
        if not names:  # all are dominated, in a circle
            names = [name for name, ways in beaten_by.items() if baseline not in ways]
        reasons = {}
        for name, ways in beaten_by.items():
            if name not in names:
                by = next((other for other in ways if other in names), next(iter(ways)))
                reasons[name] = f"{by} {ways[by]}"
        known = {name: costs[axis].total / costs[axis].n for name, costs in self._costs.items() if costs[axis].n}
        return Front(PARETO_COSTS[axis], known, tuple(names), reasons)

    def _choose_axis(self, names: Collection[str]) -> int | None:
        counts = [sum(self._costs[name][axis].total > 0 for name in names if name in self._costs) for axis in (0, 1, 2)]
        if len(self._outputs) > 1:
            counts[2] = 0
        return counts.index(max(counts)) if max(counts) > 1 else None

    def _explain(self, one: str, two: str, axis: int) -> str:
        """Say how one system dominates another; "" if it does not."""
        pair = self._pairs.get((one, two) if one < two else (two, one))
        quality, cost = (0, 0) if pair is None else pair.compare(axis)
        if one > two:
            quality, cost = -quality, -cost
        if quality > 0 and cost > 0:
            return "scores higher and costs less"
        if quality > 0 and not cost:
            return "scores higher and is not shown to cost more"
        return "costs less and is not shown to score lower" if cost > 0 and not quality else ""


def _average_cost(answers: Sequence[_PricedAnswer], axis: int, dearest: float | None) -> float | None:
    """Average the cost of an example; a failed answer costs as much as the most expensive one."""
    costs = [dearest if answer.scored.failed else answer.costs[axis] for answer in answers]
    known = [cost for cost in costs if cost is not None]
    return sum(known) / len(known) if known else None


# -- savings


class Dollars:
    """Costs of a system and of the baseline, on examples where both are known."""

    def __init__(self) -> None:
        self.pairs = PairSums()
        self.known = self.estimated = 0

    def add(self, own: ScoredAnswer, baseline: ScoredAnswer) -> None:
        if own.dollars is not None and baseline.dollars is not None:
            group = own.group if own.group is not None else baseline.group
            self.pairs.add(baseline.dollars, own.dollars, None if group is None else f"{own.dataset} {group}")
            self.estimated += own.is_estimate or baseline.is_estimate
        self.known += own.dollars is not None or baseline.dollars is not None

    def describe(self, verdict: Verdict | None) -> DollarSaving | None:
        """Return the savings, claimed only if the system is not worse; None if no cost is known."""
        if not self.known:
            return None
        n = self.pairs.n
        nothing = Interval(math.nan, math.nan, math.nan, n=n, method="paired t", mark=TOO_FEW)
        if not n:
            return DollarSaving(nothing, 0, "not priced: no example has a known cost for both systems")
        if reason := _explain_no_claim(verdict):
            return DollarSaving(nothing, n, f"not claimed: {reason}")
        notes = [f"estimated for {self.estimated:,} of {n:,} examples"] if self.estimated else []
        if n < self.known:
            notes.append(f"{self.known - n:,} examples are left out: the cost of one system is unknown")
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
