"""How often are "equivalent" and "not worse" wrong at a loss of exactly the margin, and how often right at none?

    python -m benchmarks.stats_verdicts [RUNS]

Pass/fail is enumerated over all counts of gains and losses; the rest is drawn and judged by `context_bench.stats`. The
last lines go through `evaluate()`. Each line has the bar that it must stay below; a simulated cell may exceed it by two
standard errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from context_bench import evaluate
from context_bench.stats import (
    ClusterSums,
    Difference,
    PairedSums,
    clustered_difference,
    look_boundary,
    paired_difference,
)
from context_bench.stats.distributions import binomial_cdf, normal_cdf
from context_bench.stats.planning import _enumerate, _find_most_losses

Array = Any
MARGIN = 0.02
FIXES = (0.0, 0.001, 0.005, 0.01, 0.03, 0.1, 0.3)
SIZES = (20, 29, 46, 59, 80, 93, 124, 149, 200, 236, 263, 313, 386, 473, 523, 700, 845, 1000, 1500, 2000)


def enumerate_words(n: int, fixes: float, losses: float, margin: float = MARGIN) -> tuple[float, float]:
    """The exact chances of "equivalent" and of "not worse" with these shares of fixed and lost examples."""
    words = []
    for both in (True, False):

        def succeed(changed: int, loss: float, both: bool = both) -> float:
            most = _find_most_losses(n, changed, margin, 0.05)
            not_worse = binomial_cdf((changed + most) // 2, changed, loss)
            if not both:
                return not_worse
            return max(0.0, not_worse - binomial_cdf((changed - most) // 2 - 1, changed, loss)) if most >= 0 else 0.0

        words.append(_enumerate(n, fixes + losses, fixes - losses, succeed))
    return words[0], words[1]


def judge(difference: Difference, tail: float = 0.05) -> tuple[bool, bool]:
    """Whether a difference is shown equivalent, and whether it is shown not worse."""
    low, high = difference.limits(tail)
    return low > -MARGIN and high < MARGIN, low > -MARGIN


def sum_changes(changes: Array) -> list[PairedSums]:
    """Paired sums of each line of a matrix of differences."""
    sides = ((changes > 0).sum(1), (changes < 0).sum(1))
    columns = (changes.sum(1), (changes**2).sum(1), *sides, np.abs(changes).max(1), (changes**3).sum(1))
    return [PairedSums(changes.shape[1], *line) for line in zip(*(column.tolist() for column in columns))]


def simulate(draw: Callable[[np.random.Generator, tuple[int, int]], Array], n: int, runs: int) -> tuple[float, float]:
    """Shares of runs with graded scores that are called equivalent and not worse."""
    source, found = np.random.default_rng(n), np.zeros(2)
    for start in range(0, runs, 500):
        many = min(500, runs - start)
        found += np.sum([judge(paired_difference(each)) for each in sum_changes(draw(source, (many, n)))], axis=0)
    return found[0] / runs, found[1] / runs


def graded(noise: float, breaks: float, gain: float = 0.0) -> Callable[[np.random.Generator, tuple[int, int]], Array]:
    """Differences with noise and a gain on all examples but those that break altogether; none exceeds a point."""

    def draw(source: np.random.Generator, shape: tuple[int, int]) -> Array:
        kept = np.clip(gain + (source.normal(0, noise, shape) if noise else np.zeros(shape)), -1, 1)
        return np.where(source.random(shape) < breaks, -1.0, kept)

    return draw


def simulate_looks(planned: int, fixes: float, losses: float, runs: int) -> tuple[float, float]:
    """Shares of runs called equivalent at any of five looks, and not worse at the last: each at its own level."""
    source, found = np.random.default_rng(planned), [0, 0]
    sizes = [math.ceil(planned * look / 5) for look in range(1, 6)]
    for _ in range(runs):
        chance = source.random(planned)
        up, down = np.cumsum(chance < fixes), np.cumsum(chance > 1 - losses)
        for look, n in enumerate(sizes, 1):
            gains, lost = int(up[n - 1]), int(down[n - 1])
            sums = PairedSums(n, gains - lost, gains + lost, gains, lost, 1.0, gains - lost)
            words = judge(paired_difference(sums), normal_cdf(-look_boundary(look, 5, 0.1)))
            if words[0]:
                break
        found[0] += words[0]
        found[1] += words[1]
    return found[0] / runs, found[1] / runs


def draw_clusters(source: np.random.Generator, groups: int, size: int, share: float, loss: float) -> ClusterSums:
    """Conversations, a share of which loses that part of its questions."""
    lost = np.where(source.random(groups) < share, source.binomial(size, loss, groups), 0).tolist()
    return ClusterSums(
        groups * size, {str(k): [-float(each), float(size)] for k, each in enumerate(lost)}, least=-1.0, most=0.0
    )


def simulate_clusters(groups: int, size: int, share: float, loss: float, runs: int) -> tuple[float, float]:
    """Shares of runs over conversations that are called equivalent and not worse."""
    source = np.random.default_rng(groups)
    words = [judge(clustered_difference(draw_clusters(source, groups, size, share, loss))) for _ in range(runs)]
    return sum(each[0] for each in words) / runs, sum(each[1] for each in words) / runs


def simulate_fixed(groups: int, size: int, runs: int, loss: float = MARGIN) -> tuple[float, float]:
    """The same by question, where one conversation of all has every loss, and these are all that matter."""
    source, found = np.random.default_rng(groups), [0, 0]
    for lost in source.binomial(size, min(1.0, loss * groups), runs).tolist():
        words = judge(paired_difference(PairedSums(groups * size, -lost, lost, 0, lost, 1.0, -lost)))
        found = [found[0] + words[0], found[1] + words[1]]
    return found[0] / runs, found[1] / runs


def alarm_named_groups(runs: int, groups: int = 20, size: int = 10) -> float:
    """Share of A/A runs with a difference, where each conversation bears the id of one of its questions."""
    from context_bench.compare.against_baseline import Comparer
    from context_bench.compare.pairing import read_value
    from context_bench.results import EvalRow

    source, alarmed = np.random.default_rng(0), 0
    for _ in range(runs):
        rates = np.clip(source.beta(8, 3, groups) + source.normal(0, 0.1, (2, groups)), 0.01, 0.99)
        comparer = Comparer(("a", "b"), "a", read_value("score", "score", 0.7))
        for name, own in zip("ab", source.random((2, groups, size)) < rates[:, :, None]):
            comparer.add(
                EvalRow(name, g * size + q, {"score": float(own[g, q])}, 1, 1, metadata={"cluster": g * size})
                for g in range(groups)
                for q in range(size)
            )
        found = comparer.compare()
        alarmed += found is not None and found.verdicts[0].word in ("better", "worse")
    return alarmed / runs


def run_evaluate(
    runs: int,
    draw: Callable[[np.random.Generator, float], list[float]],
    *,
    baseline: float = 1.0,
    groups: int | None = None,
    **options: Any,
) -> tuple[float, float]:
    """Shares of whole runs called equivalent, at a loss of the margin and at none.

    Args:
        runs: How many.
        draw: Draws what the system scores on each example, at a loss.
        baseline: What the baseline scores on all.
        groups: Conversations that the examples belong to in turn.
        options: More for `evaluate`.
    """

    def read_score(_: Any, processed: dict[str, Any]) -> float:
        return float(processed["response"])

    def keep(_: dict[str, Any]) -> dict[str, Any]:
        return {"response": str(baseline)}

    source, shares = np.random.default_rng(1), []
    for loss in (MARGIN, 0.0):
        found = 0
        for _ in range(runs):
            scores = draw(source, loss)

            def lossy(example: dict[str, Any], scores: list[float] = scores) -> dict[str, Any]:
                return {"response": str(scores[example["id"]])}

            examples = [
                {"id": k, "question": "q", "context": "c", "answer": "a"}
                | ({"meta": {"group": f"c{k % groups}"}} if groups else {})
                for k in range(len(scores))
            ]
            settings = {"evaluators": [read_score], "baseline": "keep", "progress": False, **options}
            result = evaluate([keep, lossy], examples, **settings)
            assert result.comparison is not None
            found += result.comparison.verdicts[0].word == "equivalent"
        shares.append(found / runs)
    return shares[0], shares[1]


def print_whole_runs(runs: int) -> None:
    """Print a cell of each kind, as a user would get it."""
    print(f"\nthrough evaluate(), {runs:,} runs: bar, equivalent at a loss of 0.02, at no difference")

    def lose(n: int) -> Callable[[np.random.Generator, float], list[float]]:
        return lambda source, loss: (source.random(n) >= loss).astype(float).tolist()

    def lose_groups(source: np.random.Generator, loss: float) -> list[float]:
        return np.tile((source.random(149) >= loss).astype(float), 2).tolist()

    def gain_and_break(source: np.random.Generator, loss: float) -> list[float]:
        return (source.random(1000) >= 0.02 + loss).astype(float).tolist()

    def lose_in_one_group(source: np.random.Generator, loss: float) -> list[float]:
        return [float(k % 10 > 0 or chance >= 10 * loss) for k, chance in enumerate(source.random(500))]

    _print("pass/fail, 149 examples", 0.055, *run_evaluate(runs, lose(149)))
    _print(
        "graded: +0.02 on the rest, 4% break, 1,000 examples", 0.06, *run_evaluate(runs, gain_and_break, baseline=0.98)
    )
    _print("149 conversations of 2", 0.055, *run_evaluate(runs, lose_groups, groups=149))
    looked = run_evaluate(runs, lose(1000), stop_when_decided=True)
    _print("five looks, 1,000 examples", 0.06, *looked)
    alone = run_evaluate(runs, lose_in_one_group, groups=10, fixed_groups=True)
    _print("these 10 conversations of 50 alone", 0.055, *alone)


def _print(what: str, bar: float | None, *values: float) -> None:
    shown = "       " if bar is None else f"{bar:6.1%} "
    print(f"{what:<66}{shown}", *(f"{value:8.1%}" for value in values), flush=True)


def print_enumerated() -> None:
    """Print the pass/fail cells: exact."""
    print("pass/fail, enumerated: bar, equivalent, not worse at a loss of the margin; equivalent at none, n = 500")
    worst = max(enumerate_words(n, 0.0, MARGIN)[0] for n in range(20, 2001, 3))
    _print("losses only, margin 0.02, n 20 to 2,000", 0.055, worst, worst, enumerate_words(500, 0, 0)[0])
    for margin in (0.01, 0.02, 0.05, 0.1):
        for fixes in FIXES:
            cells = [enumerate_words(n, fixes, fixes + margin, margin) for n in SIZES]
            power = enumerate_words(500, fixes, fixes, margin)[0]
            worst_cells = (max(cell[0] for cell in cells), max(cell[1] for cell in cells))
            _print(f"margin {margin}, {fixes:.1%} fixed, worst of n 20 to 2,000", 0.056, *worst_cells, power)


def print_simulated(runs: int) -> None:
    """Print the other cells."""
    print(f"\n{runs:,} runs a cell: bar, equivalent, not worse at a loss of 0.02; equivalent at no difference")
    for name, lossy, equal in (
        ("noise 0.05, 2% break", graded(0.05, 0.02), graded(0.05, 0.0)),
        ("noise 0.2, 2% break", graded(0.2, 0.02), graded(0.2, 0.0)),
        ("+0.02 on the rest, 4% break", graded(0.0, 0.04 / 1.02, 0.02), graded(0.0, 0.02 / 1.02, 0.02)),
    ):
        for n in (149, 400, 1500):
            _print(f"graded: {name}, n = {n}", 0.06, *simulate(lossy, n, runs), simulate(equal, n, runs)[0])
    for planned in (500, 1000, 4000):
        for fixes in (0.0, 0.02):
            power = simulate_looks(planned, fixes, fixes, runs)[0]
            found = simulate_looks(planned, fixes, fixes + MARGIN, runs)
            _print(f"five looks, {fixes:.0%} fixed, N = {planned}", 0.06, *found, power)
    cells = ((10, 198, 0.05, 0.4), (10, 198, 0.1, 0.2), (30, 37, 0.05, 0.4), (50, 10, 0.1, 0.2), (120, 2, 0.04, 0.5))
    more = ((149, 10, 0.02, 1), (200, 5, 0.02, 1), (300, 3, 0.02, 1), (500, 2, 0.02, 1), (500, 4, 0.1, 0.2))
    for groups, size, share, loss in (*cells, *more):
        found = simulate_clusters(groups, size, share, loss, runs)
        power = simulate_clusters(groups, size, 0.0, loss, 10)[0]
        _print(f"{groups} conversations of {size}, {share:.0%} lose {loss:.0%}", 0.055, *found, power)
    for groups, size in ((10, 198), (10, 50), (35, 7)):
        found, power = simulate_fixed(groups, size, runs), simulate_fixed(groups, size, 10, 0.0)[0]
        _print(f"these {groups} conversations of {size} alone", 0.055, *found, power)


def main() -> None:
    """Print every table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 10_000
    print_enumerated()
    print_simulated(runs)
    few = max(20, runs // 50)
    print(f"\nA/A, {few * 5:,} runs: bar, alarms")
    _print("20 conversations of 10, each named after a question", 0.065, alarm_named_groups(few * 5))
    print_whole_runs(few)


if __name__ == "__main__":
    main()
