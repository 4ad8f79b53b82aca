"""Coverage and width of every interval that a rare row or a long example can spoil.

    python -m benchmarks.stats_intervals [RUNS]

`python -m benchmarks.stats_coverage` prints these cells too. Means of scores with a few zeros, savings that grow with
length, the cost of a pass with a heavy tail, and the mean of many datasets near the ceiling. A cell passes when at
least 92.5% of its runs hold the true value (less two standard errors of the simulation), or at least 70% are marked:
rough, or too few for an interval.
The last cells go through `evaluate()`, from rows to the numbers of a report.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from context_bench import evaluate
from context_bench.metrics import CompressionRatio, CostOfPass, MeanScore, PerDatasetBreakdown
from context_bench.stats import (
    ROUGH,
    Interval,
    Moments,
    RatioSums,
    average_means,
    effective_size,
    estimate_mean,
    mean_interval,
    ratio_interval,
    wilson_limits,
)
from context_bench.stats.distributions import t_quantile

Array = Any
Source = np.random.Generator
Draw = Callable[[Source, tuple[int, ...]], Array]

RUNS = 10_000
EVALUATED_RUNS = 2_000
LEAST_COVERED, LEAST_MARKED = 0.925, 0.70
MOST_GROWTH = 0.045
"""By so much may the interval of a mean of 100 scores be wider than the one that missed."""

TAILS = (0.3, 0.7, 1.2, 2.0)
"""Standard deviations of the logarithm of the length; our datasets have 0.16 to 0.69."""


@dataclass(frozen=True)
class Cell:
    """What the runs of one cell showed.

    Attributes:
        covered: Share of the runs whose interval holds the true value; one without an interval claims nothing.
        given: Share of the runs that have an interval.
        rough: Share of the runs that are marked rough.
        width: Median width; of a cost, the factor between the limits.
        grown: By how much the interval of a mean is wider than by the form that missed, in the run where most.
    """

    runs: int
    covered: float
    given: float
    rough: float
    width: float
    grown: float = math.nan

    @property
    def passes(self) -> bool:
        """Whether the cell covers often enough, or says that it may not."""
        error = math.sqrt(LEAST_COVERED * (1 - LEAST_COVERED) / self.runs)
        return self.covered >= LEAST_COVERED - 2 * error or self.rough + 1 - self.given >= LEAST_MARKED


def judge(intervals: Sequence[Interval], truth: float, *, ratio: bool = False) -> Cell:
    """Count how many of the intervals hold the true value; limits that meet it but for rounding do."""
    given, slack = [each for each in intervals if each.known], 1e-12 * abs(truth)
    missed = sum(not each.low - slack <= truth <= each.high + slack for each in given)
    widths = [each.high / each.low if ratio else each.high - each.low for each in given]
    rough, runs = sum(each.mark == ROUGH for each in intervals), len(intervals)
    middle = float(np.median(widths)) if widths else math.nan
    return Cell(runs, 1 - missed / runs, len(given) / runs, rough / runs, middle)


# Means of scores


def beta(a: float, b: float) -> tuple[Draw, float]:
    """Scores between 0 and 1 without either, and their mean."""
    return lambda source, shape: source.beta(a, b, shape), a / (a + b)


SCORES: dict[str, tuple[Draw, float]] = {
    "Beta(20, 2)": beta(20, 2),
    "Beta(50, 5)": beta(50, 5),
    "always 0.9": (lambda _, shape: np.full(shape, 0.9), 0.9),
    "Beta(8, 8)": beta(8, 8),
    "Beta(6, 14)": beta(6, 14),
}
ZEROS = (0.0, 0.01, 0.03, 0.05, 0.1, 0.15)
MEAN_SIZES = (10, 30, 100, 300)


def draw_scores(source: Source, name: str, zeros: float, shape: tuple[int, ...]) -> tuple[Array, float]:
    """Scores of which a share are zeros, and their true mean."""
    draw, mean = SCORES[name]
    scores = draw(source, shape)
    scores[source.random(shape) < zeros] = 0.0
    return scores, (1 - zeros) * mean


def sum_scores(scores: Array) -> list[Moments]:
    """Moments of each line of a matrix of scores."""
    columns = (scores.sum(1), (scores * scores).sum(1), scores.min(1), scores.max(1))
    return [Moments(scores.shape[1], *line) for line in zip(*(column.tolist() for column in columns))]


def cover_mean(name: str, zeros: float, n: int, runs: int, seed: int = 0) -> Cell:
    """A mean of scores with some zeros."""
    scores, truth = draw_scores(np.random.default_rng(seed), name, zeros, (runs, n))
    sums = sum_scores(scores)
    ends = ((scores == 0) | (scores == 1)).any(1).tolist()
    found = [mean_interval(each) for each in sums]
    grown = max(new.high - new.low - _width_before(*old) for new, old in zip(found, zip(sums, ends)))
    return replace(judge(found, truth), grown=grown)


def _width_before(sums: Moments, seen: bool) -> float:
    """The width where a score that was not seen weighs 1/4, and only if some score was exactly 0 or 1."""
    unseen = 0.25 if seen or sums.least == sums.most else 0.0
    size = effective_size(sums.deviations, sums.mean, sums.n, unseen=unseen)
    low, high = wilson_limits(sums.mean, size, t_quantile(0.975, sums.n - 1))
    return high - low


# Ratios of sums


def sum_ratios(above: Array, below: Array) -> list[RatioSums]:
    """Ratio sums of each line of two matrices."""
    lengths = np.maximum(above, below)
    powers = [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (2, 1), (1, 2), (0, 3), (4, 0), (3, 1), (2, 2), (1, 3), (0, 4)]
    parts = [above**up * below**down for up, down in powers] + [lengths, lengths**2]
    return [RatioSums(above.shape[1], *line) for line in zip(*(part.sum(1).tolist() for part in parts))]


def keep_less_of_long(lengths: Array) -> Array:
    """What a budget leaves: the longer the prompt, the more is saved."""
    return lengths / (1 + lengths / 400)


def draw_lengths(source: Source, tail: float, shape: tuple[int, ...]) -> Array:
    """Lengths in tokens, whole numbers."""
    return np.ceil(np.exp(source.normal(6, tail, shape)))


@cache
def find_share_kept(tail: float) -> float:
    """The true share kept, by adding up lengths."""
    steps = np.arange(1, 3_000_000) if tail > 1.5 else np.arange(1, 400_000)
    upper = np.array([0.5 * math.erfc(-(math.log(x) - 6) / (tail * math.sqrt(2))) for x in steps.tolist()])
    chances = np.diff(upper, prepend=0.0)
    return float((chances * keep_less_of_long(steps)).sum() / (chances * steps).sum())


def cover_savings(tail: float, n: int, runs: int, *, growing: bool = True, seed: int = 0) -> Cell:
    """The share of tokens kept, where less is kept of long prompts, or about half of each, whatever its length."""
    source = np.random.default_rng(seed)
    sent = draw_lengths(source, tail, (runs, n))
    kept = keep_less_of_long(sent) if growing else sent * source.beta(4, 4, (runs, n))
    return judge([ratio_interval(each) for each in sum_ratios(kept, sent)], find_share_kept(tail) if growing else 0.5)


def cover_cost(p: float, tail: float, n: int, runs: int, seed: int = 0) -> Cell:
    """The tokens for a pass; runs without any pass have no cost."""
    source = np.random.default_rng(seed)
    tokens, passed = np.exp(source.normal(7, tail, (runs, n))), (source.random((runs, n)) < p) * 1.0
    some = passed.any(1)
    found = [ratio_interval(each, positive=True) for each in sum_ratios(tokens[some], passed[some])]
    return judge(found, math.exp(7 + tail * tail / 2) / p, ratio=True)


# The mean of several datasets


def cover_macro(datasets: int, p: float, n: int, runs: int, seed: int = 0) -> Cell:
    """The mean over datasets of n pass/fail examples each."""
    counts = np.random.default_rng(seed).binomial(n, p, (runs, datasets)).tolist()
    each = [estimate_mean(Moments(n, c, c, 0.0 if c < n else 1.0, 1.0 if c else 0.0)) for c in range(n + 1)]
    return judge([average_means([each[count] for count in line]) for line in counts], p)


# From rows to the report


def evaluate_cells(runs: int, seed: int = 0) -> Iterator[tuple[str, Cell]]:
    """One cell of each kind, from examples to the intervals of the report."""
    n, tail, p = 30, 0.7, 0.9
    source = np.random.default_rng(seed)
    metrics = [MeanScore(), CompressionRatio(), CostOfPass(), PerDatasetBreakdown("score")]
    found: dict[str, list[Interval]] = {key: [] for key in ("mean_score", "compression_ratio", "cost_of_pass")}
    for _ in range(runs):
        scores, mean = draw_scores(source, "Beta(20, 2)", 0.03, (n,))
        lengths = draw_lengths(source, tail, (n,))
        kept = np.ceil(keep_less_of_long(lengths))
        lines = enumerate(zip(scores.tolist(), lengths.tolist(), kept.tolist()))
        rows = [_make_row(place, *line) for place, line in lines]
        result = evaluate(_answer, rows, [_score], metrics, progress=False, preflight=False, text_fields=["context"])
        for key, intervals in found.items():
            intervals.append(result.intervals["_answer"][key])
    some = draw_lengths(source, tail, (4_000_000,))
    kept = np.ceil(keep_less_of_long(some)).sum()
    right = np.mean(draw_scores(source, "Beta(20, 2)", 0.03, (4_000_000,))[0] >= 0.7)
    yield "mean, Beta(20, 2), 3% zeros, n = 30", judge(found["mean_score"], mean)
    yield "savings that grow, tail 0.7, n = 30", judge(found["compression_ratio"], 1 - kept / some.sum())
    yield "cost of a pass, tail 0.7, n = 30", judge(found["cost_of_pass"], kept / some.size / right, ratio=True)
    macros = []
    for _ in range(runs):
        passed = (source.random((8, 10)) < p) * 1.0
        sets = {
            f"set {tag}": [_make_row(place, each, 5, 3) for place, each in enumerate(line)]
            for tag, line in enumerate(passed.tolist())
        }
        result = evaluate(_answer, sets, [_score], metrics, progress=False, preflight=False, text_fields=["context"])
        macros.append(result.intervals["_answer"]["macro_score"])
    yield f"mean of 8 datasets of 10, pass rate {p}", judge(macros, p)


def _make_row(place: int, score: float, length: float, kept: float) -> dict[str, Any]:
    words = ["word"] * int(length)
    return {"id": str(place), "context": " ".join(words), "kept": " ".join(words[: int(kept)]), "wanted": score}


def _answer(example: dict[str, Any]) -> dict[str, Any]:
    return {"response": example["kept"]}


def _score(original: dict[str, Any], _: dict[str, Any]) -> dict[str, float]:
    return {"score": original["wanted"]}


def list_cells(runs: int) -> Iterator[tuple[str, str, Cell]]:
    """Run every cell: its kind, what it is, and what it showed."""
    for name, zeros, n in product(SCORES, ZEROS, MEAN_SIZES):
        yield "mean", f"{name}, {zeros:.0%} zeros, n = {n}", cover_mean(name, zeros, n, runs)
    for growing, tail, n in product((True, False), TAILS, (10, 30, 100)):
        kind = "savings that grow" if growing else "savings"
        yield kind, f"tail {tail}, n = {n}", cover_savings(tail, n, runs, growing=growing)
    for p, tail, n in product((0.2, 0.5, 0.9), TAILS, (10, 30, 100)):
        yield "cost of a pass", f"pass rate {p}, tail {tail}, n = {n}", cover_cost(p, tail, n, runs)
    for datasets, p, n in product((2, 8, 20), (0.5, 0.9, 0.97, 0.99), (10, 30, 100)):
        yield "mean of datasets", f"{datasets} sets of {n}, pass rate {p}", cover_macro(datasets, p, n, runs)


def print_cells(runs: int, evaluated: int) -> bool:
    """Print every cell, and whether all pass."""
    print(f"{'':<58} covered  given  rough   width   grown")
    right = True
    for kind, what, cell in list_cells(runs):
        right &= _print(f"{kind}, {what}", cell)
    print(f"through evaluate(), {evaluated:,} runs")
    for what, cell in evaluate_cells(evaluated):
        right &= _print(what, cell)
    return right


def _print(what: str, cell: Cell) -> bool:
    passes = cell.passes and not (what.endswith("n = 100") and cell.grown > MOST_GROWTH)
    grown = "" if math.isnan(cell.grown) else f"{cell.grown:8.3f}"
    shares = f"{cell.covered:7.1%} {cell.given:6.0%} {cell.rough:6.0%}"
    print(f"{what:<58} {shares} {cell.width:7.3f}{grown}{'' if passes else '  MISSES'}", flush=True)
    return passes


def main() -> None:
    """Print the cells; the exit code is 1 where one misses."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else RUNS
    sys.exit(0 if print_cells(runs, min(runs, EVALUATED_RUNS)) else 1)


if __name__ == "__main__":
    main()
