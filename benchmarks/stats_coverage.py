"""Do the intervals cover, and do the tests alarm, as often as they say? Simulated with the functions of the reports.

    python -m benchmarks.stats_coverage [RUNS]

Scores are drawn as they occur: pass/fail near the ceiling, F1 with mass at 0 and 1, lengths with a heavy tail,
conversations as clusters. Pass/fail is not simulated but enumerated. Sums are made by numpy, many runs at once.
The exit code is 1 where an interval of `stats_intervals` misses too often.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from benchmarks.stats_intervals import EVALUATED_RUNS, RUNS, Array, Draw, print_cells, sum_scores
from context_bench.compare.looks import Looks
from context_bench.compare.pairing import ScoredAnswer
from context_bench.stats import (
    ClusterSums,
    Contrast,
    Difference,
    Interval,
    PairedSums,
    Values,
    Verdict,
    clustered_difference,
    clustered_mean,
    decide_verdict,
    find_ranks,
    judge_family,
    mean_interval,
    paired_difference,
    quantile_interval,
    share_interval,
    unpaired_difference,
)
from context_bench.stats.distributions import binomial_pmf

SIZES = (30, 100, 1000)
PASS_RATES = (0.5, 0.7, 0.9, 0.97, 0.99)


def f1_scores(zeros: float, ones: float, a: float, b: float) -> tuple[Draw, float]:
    """F1-like scores with mass at 0 and at 1, and their true mean."""

    def draw(source: np.random.Generator, shape: tuple[int, ...]) -> Array:
        scores, ends = source.beta(a, b, shape), source.random(shape)
        scores[ends < zeros] = 0.0
        scores[ends > 1 - ones] = 1.0
        return scores

    return draw, ones + (1 - zeros - ones) * a / (a + b)


SCORES: dict[str, tuple[Draw, float]] = {
    "f1, middling": f1_scores(0.1, 0.3, 2, 2),
    "f1, spread": f1_scores(0.3, 0.3, 2, 2),
    "f1, good": f1_scores(0.05, 0.8, 3, 2),
    "f1, near the ceiling": f1_scores(0.02, 0.9, 2, 2),
    "f1, at the ceiling": f1_scores(0.01, 0.95, 2, 2),
    "f1, poor": f1_scores(0.5, 0.1, 2, 3),
    "rouge, no ends": f1_scores(0.0, 0.0, 2, 5),
}


def sum_changes(changes: Array) -> list[PairedSums]:
    """Paired sums of each line of a matrix of differences."""
    columns = (changes.sum(1), (changes * changes).sum(1), (changes > 0).sum(1), (changes < 0).sum(1))
    return [PairedSums(changes.shape[1], *line) for line in zip(*(column.tolist() for column in columns))]


def share_covered(intervals: Iterable[Interval], truth: float) -> float:
    """The share of the intervals that hold the true value."""
    hits = [interval.low <= truth <= interval.high for interval in intervals]
    return sum(hits) / len(hits)


# Means


def cover_pass_rate(p: float, n: int) -> float:
    """Exact coverage of the pass rate: every count with its chance."""
    held = [share_interval(count, n) for count in range(n + 1)]
    return math.fsum(binomial_pmf(c, n, p) for c, each in enumerate(held) if each.low <= p <= each.high)


def cover_mean(name: str, n: int, runs: int, seed: int = 0) -> float:
    """Coverage of the mean of scores."""
    draw, truth = SCORES[name]
    return share_covered(map(mean_interval, sum_scores(draw(np.random.default_rng(seed), (runs, n)))), truth)


def cover_unpaired(p: float, q: float, n: int, runs: int, seed: int = 0) -> float:
    """Coverage of the difference of two pass rates over different examples."""
    source = np.random.default_rng(seed)
    first, second = (sum_scores((source.random((runs, size)) < share) * 1.0) for share, size in ((p, n), (q, 2 * n)))
    found = (unpaired_difference(one, two).interval() for one, two in zip(first, second))
    return share_covered(found, p - q)


# Differences


def cover_paired(up: float, down: float, n: int) -> float:
    """Exact coverage of the paired difference of pass/fail: every pair of counts with its chance."""
    covered = 0.0
    for changed in range(n + 1):
        chance = binomial_pmf(changed, n, up + down)
        if chance < 1e-12:
            continue
        for better in range(changed + 1):
            sums = PairedSums(n, 2 * better - changed, changed, better, changed - better)
            interval = paired_difference(sums).interval()
            if interval.low <= up - down <= interval.high:
                covered += chance * binomial_pmf(better, changed, up / (up + down))
    return covered


CHANGES: dict[str, tuple[Draw, float]] = {
    "f1, half of them ties": (
        lambda source, shape: (source.beta(2, 2, shape) - source.beta(2, 2, shape)) * (source.random(shape) < 0.5),
        0.0,
    ),
    "rouge, small": (lambda source, shape: source.normal(0.01, 0.05, shape), 0.01),
    "rouge, with total failures": (
        lambda source, shape: np.where(
            source.random(shape) < 0.03, -source.beta(5, 2, shape), source.normal(0.01, 0.03, shape)
        ),
        0.97 * 0.01 - 0.03 * 5 / 7,
    ),
}


def cover_changes(name: str, n: int, runs: int, seed: int = 0) -> float:
    """Coverage of the paired difference of scores."""
    draw, truth = CHANGES[name]
    sums = sum_changes(draw(np.random.default_rng(seed), (runs, n)))
    return share_covered((paired_difference(each).interval() for each in sums), truth)


# Clusters


def draw_clusters(source: np.random.Generator, groups: int, size: int, p: float, within: float) -> ClusterSums:
    """Pass/fail in clusters of unlike sizes; `within` is the correlation inside one."""
    sizes = source.integers(max(1, size // 2), size * 3 // 2 + 1, groups)
    rest = 1 / within - 1
    passed = source.binomial(sizes, source.beta(p * rest, (1 - p) * rest, groups))
    sums = {str(place): [float(each), float(n)] for place, (each, n) in enumerate(zip(passed, sizes))}
    n, hits = int(sizes.sum()), int(passed.sum())
    return ClusterSums(n, sums, 0.0 if hits < n else 1.0, 1.0 if hits else 0.0)


def cover_clusters(groups: int, size: int, p: float, within: float, runs: int, seed: int = 0) -> float:
    """Coverage of the mean over clusters."""
    source = np.random.default_rng(seed)
    drawn = (draw_clusters(source, groups, size, p, within) for _ in range(runs))
    return share_covered((clustered_mean(each).interval() for each in drawn), p)


CHANGE_CELLS = ((0.0, 0.05), (0.1, 0.05), (0.0, 0.0), (0.3, 0.02))
"""Share of the baseline's passes that a system loses, and how far the pass rates of both sway with each cluster."""


def cover_clustered_changes(
    groups: int, size: int, lost: float, sway: float, runs: int, alone: int = 0, seed: int = 0
) -> float:
    """Coverage of the difference of two systems over clusters, with so many examples that are in none."""
    source, found = np.random.default_rng(seed), []
    for _ in range(runs):
        sizes = source.integers(max(1, size // 2), size * 3 // 2 + 1, groups)
        rates = source.beta(8, 3, groups) + source.normal(0, sway, (2, groups))
        # reflected at the ends, so that swaying does not move the mean of one side more than that of the other
        rates = np.clip(np.where(rates > 1, 2 - rates, np.abs(rates)), 0, 1)
        passed = source.binomial(sizes, rates)
        kept = source.binomial(passed[1], 1 - lost)
        sums = {str(g): [float(a - b), float(n)] for g, (a, b, n) in enumerate(zip(kept, passed[0], sizes))}
        clusters = ClusterSums(int(sizes.sum()), sums, -1.0, 1.0)
        found.append((clustered_difference(clusters, _draw_alone(source, alone, lost)), rates[0]))
    # both sides have the same pass rates but for what is lost
    truth = -lost * float(np.mean([rate for _, own in found for rate in own]))
    return share_covered((difference.interval() for difference, _ in found), truth)


def _draw_alone(source: np.random.Generator, n: int, lost: float) -> PairedSums:
    """Pairs of examples that are in no cluster, with the same difference on average."""
    rates = source.beta(8, 3, n)
    first, second = source.random(n) < rates * (1 - lost), source.random(n) < rates
    up, down = int((first & ~second).sum()), int((second & ~first).sum())
    return PairedSums(n, up - down, up + down, up, down, 1.0 if up + down else 0.0)


# Quantiles


def cover_quantile(share: float, n: int, runs: int, seed: int = 0) -> float:
    """Coverage of a quantile of latencies."""
    source = np.random.default_rng(seed)
    lines = source.exponential(1.0, (runs, n))
    found = []
    for line in lines:
        values = Values()
        values.extend(line.tolist())
        found.append(quantile_interval(values, share))
    return share_covered(found, -math.log(1 - share))


def cover_quantile_exactly(share: float, n: int) -> float:
    """The exact coverage of those ranks, whatever the distribution."""
    ranks = find_ranks(n, share)
    return math.nan if ranks is None else math.fsum(binomial_pmf(k, n, share) for k in range(ranks[0], ranks[1]))


# False alarms and power


def draw_arms(source: np.random.Generator, arms: int, shape: tuple[int, ...], p: float, alike: float) -> Array:
    """Pass/fail of several equal systems on the same examples, of which a share `alike` goes the same way for all."""
    common = source.random(shape) < p
    own = source.random((arms, *shape)) < p
    return np.where(source.random((arms, *shape)) < alike, common, own) * 1.0


def _alarms(differences: list[Difference]) -> bool:
    verdicts = judge_family([Contrast(str(place), each) for place, each in enumerate(differences)], margin=0.0)
    return any(verdict.word in ("better", "worse") for verdict in verdicts)


def _most_extreme(differences: list[Difference]) -> Difference:
    return max(differences, key=lambda each: abs(each.centre) / math.sqrt(each.variance))


def alarm_families(families: int, n: int = 200, p: float = 0.8, alike: float = 0.7, seed: int = 0) -> float:
    """Share of A/A families, 9 systems by 3 datasets with Holm, in which any difference is found."""
    source, alarmed = np.random.default_rng(seed), 0
    for _ in range(families):
        arms = draw_arms(source, 10, (3, n), p, alike)
        changes = (arms[1:] - arms[0]).reshape(27, n)
        differences = [paired_difference(sums) for sums in sum_changes(changes)]
        # All have the same degrees: the most extreme one has the smallest p, which alone decides whether any is found.
        alarmed += _most_extreme(differences).p_value() * 27 <= 0.05
    return alarmed / families


def alarm_clustered_families(
    families: int, groups: int = 10, size: int = 150, sway: float = 0.05, seed: int = 0
) -> tuple[float, float]:
    """The same with conversations as clusters: by clusters, and for comparison by question.

    Each system has good and bad days with each conversation: its pass rate there is off by `sway`.
    """
    source, by_group, by_question = np.random.default_rng(seed), 0, 0
    for _ in range(families):
        sizes = source.integers(size // 2, size * 3 // 2 + 1, (3, groups))
        rates = source.beta(8, 3, (3, groups))
        arms = np.clip(rates + source.normal(0, sway, (10, 3, groups)), 0.01, 0.99)
        passed = source.binomial(sizes, arms)
        clustered, plain = [], []
        for arm, dataset in product(range(1, 10), range(3)):
            change, counts = passed[arm, dataset] - passed[0, dataset], sizes[dataset]
            sums = {str(g): [float(c), float(m)] for g, (c, m) in enumerate(zip(change, counts))}
            n = int(counts.sum())
            clustered.append(clustered_difference(ClusterSums(n, sums, -1.0, 1.0)))
            share = (arms[arm, dataset] * (1 - arms[0, dataset]) + arms[0, dataset] * (1 - arms[arm, dataset])) @ counts
            plain.append(paired_difference(PairedSums(n, float(change.sum()), float(share))))
        by_group += _alarms([_most_extreme(clustered), *[QUIET] * 26])
        by_question += _most_extreme(plain).p_value() * 27 <= 0.05
    return by_group / families, by_question / families


QUIET = Difference(0.0, 0.0, 1.0, 9, 1500, "clusters", 10)


def alarm_looks(families: int, systems: int = 9, planned: int = 500, seed: int = 0) -> tuple[float, float]:
    """Share of A/A families alarmed when each system stops once it is settled, and the share of examples used."""
    source, alarmed, used = np.random.default_rng(seed), 0, 0
    for _ in range(families):
        arms = draw_arms(source, systems + 1, (planned,), 0.8, 0.7)
        words = []
        for arm in arms[1:]:
            looks = run_looks(arm, arms[0], comparisons=systems)
            used += looks.verdict.n if looks.verdict else planned
            words.append(looks.verdict.word if looks.verdict else "")
        alarmed += any(word in ("better", "worse") for word in words)
    return alarmed / families, used / (families * systems * planned)


def alarm_clustered_looks(families: int, systems: int = 9, groups: int = 20, size: int = 10, seed: int = 0) -> float:
    """The same over conversations, each whole at a look: the pass rate of a system is off by 0.05 in each of them."""
    source, alarmed = np.random.default_rng(seed), 0
    for _ in range(families):
        rates = np.clip(source.beta(8, 3, groups) + source.normal(0, 0.05, (systems + 1, groups)), 0.01, 0.99)
        arms = (source.random((systems + 1, groups * size)) < np.repeat(rates, size, axis=1)) * 1.0
        words = []
        for arm in arms[1:]:
            looks = Looks(groups * size, margin=0.0, comparisons=systems)
            for place, (one, two) in enumerate(zip(arm.tolist(), arms[0].tolist())):
                if add_pair(looks, place, one, two, str(place // size)):
                    break
            words.append(looks.verdict.word if looks.verdict else "")
        alarmed += any(word in ("better", "worse") for word in words)
    return alarmed / families


def add_pair(looks: Looks, place: int, first: float, second: float, group: str | None = None) -> Verdict | None:
    """Hand over the scores of a system and of the baseline on one example."""
    return looks.add(place, ScoredAnswer(place, "", first, group), ScoredAnswer(place, "", second, group))


def run_looks(first: Array, second: Array, **options: Any) -> Looks:
    """Hand a whole run over, in order, until it is settled."""
    looks = Looks(len(first), margin=0.0, **options)
    for place, (one, two) in enumerate(zip(first.tolist(), second.tolist())):
        if add_pair(looks, place, one, two):
            break
    return looks


def find_planted(runs: int, n: int = 500, difference: float = 0.05, discordant: float = 0.1, seed: int = 0) -> float:
    """Share of runs in which a planted difference of pass/fail is found."""
    source = np.random.default_rng(seed)
    chance = source.random((runs, n))
    up = (discordant + difference) / 2
    changes = (chance < up) * 1.0 - (chance > 1 - (discordant - up)) * 1.0
    verdicts = [decide_verdict(paired_difference(sums)) for sums in sum_changes(changes)]
    return sum(verdict.word == "better" for verdict in verdicts) / runs


def power_of_looks(runs: int, difference: float, planned: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Share of runs that find a difference with looks, and the share of examples they use; 10% discordant."""
    source, found, used = np.random.default_rng(seed), 0, 0
    up = (0.1 + difference) / 2
    for _ in range(runs):
        chance = source.random(planned)
        looks = run_looks((chance < up) * 1.0, (chance > 1 - (0.1 - up)) * 1.0)
        assert looks.verdict is not None
        found += looks.verdict.word == "better"
        used += looks.verdict.n
    return found / runs, used / (runs * planned)


PAIRED_CELLS = ((0.05, 0.05), (0.1, 0.1), (0.1, 0.05), (0.2, 0.2), (0.15, 0.02), (0.08, 0.001), (0.3, 0.01))
CLUSTER_CELLS = ((0.5, 0.1), (0.7, 0.3), (0.9, 0.1), (0.9, 0.5), (0.97, 0.1), (0.97, 0.5))


def _print(what: str, *values: float) -> None:
    print(f"{what:<58}", *(f"{value:8.1%}" for value in values), flush=True)


def main() -> None:
    """Print every cell."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else RUNS
    _print_intervals(runs)
    print("\n95% intervals that a rare row or a long example can spoil (at least 92.5% covered, or 70% marked)")
    right = print_cells(runs, min(runs, EVALUATED_RUNS))
    print("\nfalse alarms (at most 6.5% of 1,000) and power")
    _print("9 systems by 3 datasets, Holm", alarm_families(1000))
    _print("the same, 10 conversations; taken as single questions", *alarm_clustered_families(1000))
    _print("9 systems, five looks; examples used", *alarm_looks(1000))
    _print("the same, 20 conversations of 10", alarm_clustered_looks(1000))
    _print("planted: 5 points, n = 500, 10% discordant (over 90%)", find_planted(runs))
    for difference in (0.05, 0.03):
        _print(f"five looks, true difference {difference}: found, used", *power_of_looks(500, difference))
    sys.exit(0 if right else 1)


def _print_intervals(runs: int) -> None:
    print("95% intervals, n =", *SIZES)
    for p in PASS_RATES:
        _print(f"pass rate {p} (exact)", *(cover_pass_rate(p, n) for n in SIZES))
    for name in SCORES:
        _print(f"mean, {name}", *(cover_mean(name, n, runs) for n in SIZES))
    for up, down in PAIRED_CELLS:
        _print(f"paired, {up} up, {down} down (exact; n = 30, 100)", *(cover_paired(up, down, n) for n in (30, 100)))
    for name in CHANGES:
        _print(f"paired, {name}", *(cover_changes(name, n, runs) for n in SIZES))
    for p, q in ((0.8, 0.8), (0.97, 0.9), (0.99, 0.99)):
        _print(f"unpaired, {p} against {q}", *(cover_unpaired(p, q, n, runs) for n in SIZES))
    print("\nclusters: 20 of 10, 10 of 20, 10 of 150")
    for p, within in CLUSTER_CELLS:
        cells = ((20, 10), (10, 20), (10, 150))
        _print(f"pass rate {p}, correlation {within}", *(cover_clusters(*cell, p, within, runs) for cell in cells))
    for lost, sway in CHANGE_CELLS:
        found = [cover_clustered_changes(*cell, lost, sway, runs) for cell in ((20, 10), (10, 20), (10, 150))]
        _print(f"difference, {lost:.0%} lost, sway {sway}", *found)
    _print("the same, 10 of 20 and 100 alone", cover_clustered_changes(10, 20, 0.1, 0.05, runs, alone=100))
    print("\nquantiles: simulated, exact")
    for share, n in ((0.5, 30), (0.5, 100), (0.95, 100), (0.99, 500)):
        _print(f"quantile {share}, n = {n}", cover_quantile(share, n, runs), cover_quantile_exactly(share, n))


if __name__ == "__main__":
    main()
