"""How many examples are needed: closed forms, and the powers that they are the inverse of."""

from __future__ import annotations

import math

import pytest

from context_bench.stats import (
    ClusterSums,
    PairedSums,
    clustered_difference,
    decide_verdict,
    find_detectable,
    n_for_difference,
    n_for_equivalence,
    n_for_non_inferiority,
    paired_difference,
    pass_fail_spread,
    power_of_difference,
    power_of_equivalence,
    power_of_non_inferiority,
)

numpy = pytest.importorskip("numpy")
scipy = pytest.importorskip("scipy.stats")

Z95, Z975, Z80, Z90 = 1.6448536269514722, 1.959963984540054, 0.8416212335729143, 1.2815515655446004


@pytest.mark.parametrize(("spread", "equivalent", "not_worse"), [(0.2, 857, 619), (math.sqrt(0.1), 2141, 1546)])
def test_within_two_points(spread: float, equivalent: int, not_worse: int) -> None:
    assert math.ceil(((Z95 + Z90) * spread / 0.02) ** 2) == equivalent  # 8.56 σ²/δ²
    assert math.ceil(((Z95 + Z80) * spread / 0.02) ** 2) == not_worse  # 6.18 σ²/δ²
    assert n_for_equivalence(spread, 0.02) == equivalent
    assert n_for_non_inferiority(spread, 0.02) == not_worse


def test_a_difference() -> None:
    spread = pass_fail_spread(0.1, 0.05)
    assert spread == pytest.approx(math.sqrt(0.0975))
    n = n_for_difference(spread, 0.05)
    assert n == math.ceil(0.0975 * ((Z975 + Z80) / 0.05) ** 2) == 307
    assert power_of_difference(n, spread, 0.05) == pytest.approx(0.8, abs=0.002)
    assert find_detectable(spread, n) == pytest.approx(0.05, rel=0.002)
    assert n_for_difference(spread, -0.05) == n
    assert n_for_difference(spread, 0.05, alpha=0.05 / 9) > n


def test_five_points_with_500_examples() -> None:
    assert power_of_difference(500, pass_fail_spread(0.1, 0.05), 0.05) == pytest.approx(0.947, abs=0.001)


@pytest.mark.parametrize("difference", [-0.01, 0.0, 0.005, 0.015])
def test_needed_numbers_have_the_power_that_was_asked_for(difference: float) -> None:
    for power in (0.5, 0.8, 0.95):
        n = n_for_equivalence(0.3, 0.02, difference=difference, power=power)
        assert power_of_equivalence(n, 0.3, 0.02, difference=difference) >= power - 1e-6
        assert power_of_equivalence(n - 2, 0.3, 0.02, difference=difference) < power
        n = n_for_non_inferiority(0.3, 0.02, difference=difference, power=power)
        assert power_of_non_inferiority(n, 0.3, 0.02, difference=difference) >= power - 1e-6
        assert power_of_non_inferiority(n - 2, 0.3, 0.02, difference=difference) < power


def test_what_is_not_so_cannot_be_shown() -> None:
    assert n_for_difference(0.3, 0.0) is None
    assert n_for_equivalence(0.3, 0.02, difference=0.02) is None
    assert n_for_non_inferiority(0.3, 0.02, difference=-0.03) is None
    assert power_of_equivalence(3, 0.5, 0.01) == 0


def test_without_any_spread_two_examples_tell() -> None:
    assert n_for_equivalence(0.0, 0.02) == n_for_difference(0.0, 0.1) == n_for_non_inferiority(0.0, 0.02) == 2
    assert power_of_difference(5, 0.0, 0.1) == power_of_equivalence(5, 0.0, 0.02) == 1
    assert power_of_non_inferiority(5, 0.0, 0.02, difference=-0.03) == 0


def test_where_nothing_changed_the_pairs_that_were_not_seen_decide() -> None:
    # 1.644854 · √2 / n ≤ 0.02: with σ² = 2/n in the spread it would be 6.18 · 0.0196 / 0.0004 = 303 from a pilot of 100
    assert n_for_non_inferiority(0.0, 0.02, unseen=2) == n_for_equivalence(0.0, 0.02, unseen=2) == 117
    verdicts = [decide_verdict(paired_difference(PairedSums(n))) for n in (100, 117)]
    assert [(each.word, each.needed_n) for each in verdicts] == [("undecided", 117), ("equivalent", None)]


@pytest.mark.parametrize(("discordant", "difference"), [(0.02, 0.0), (0.1, 0.0), (0.1, 0.05), (0.06, 0.05)])
def test_the_number_of_examples_gives_the_power_that_it_says(discordant: float, difference: float) -> None:
    spread = pass_fail_spread(discordant, difference)
    unseen = 2 - 4 * spread**2 + 2 * difference**2  # the limit of what is added, for many pairs
    source = numpy.random.default_rng(1)

    def simulate(n: int | None) -> tuple[float, float, float]:
        assert n is not None
        found = [0, 0, 0]
        for changed in source.binomial(n, discordant, 1500).tolist():
            up = int(source.binomial(changed, (1 + difference / discordant) / 2))
            pairs = PairedSums(n, 2 * up - changed, changed, up, changed - up, 1.0)
            verdict = decide_verdict(paired_difference(pairs))
            assert verdict.narrow is not None
            found[0] += verdict.word == "equivalent"
            found[1] += verdict.narrow.low > -0.02
            found[2] += verdict.p <= 0.05
        return found[0] / 1500, found[1] / 1500, found[2] / 1500

    # an error of 0.01 is that of 1,500 runs; the normal approximation errs by some points with few changes
    assert simulate(n_for_non_inferiority(spread, 0.02, difference=difference, unseen=unseen))[1] > 0.76
    if difference:
        assert 0.76 < simulate(n_for_difference(spread, difference, unseen=unseen))[2] < 0.87
    else:
        assert 0.75 < simulate(n_for_equivalence(spread, 0.02, unseen=unseen))[0] < 0.85


@pytest.mark.parametrize("size", [2, 10, 150])
def test_with_clusters_t_has_a_degree_fewer_than_there_are(size: int) -> None:
    spread, groups = 0.6, 1 / size
    for asked, share, reserve in (
        (n_for_difference(spread, 0.05, groups=groups), 0.975, Z80),
        (n_for_non_inferiority(spread, 0.05, groups=groups), 0.95, Z80),
        (n_for_equivalence(spread, 0.05, groups=groups), 0.95, Z90),
    ):
        assert asked is not None
        needed = [(scipy.t.ppf(share, n / size - 1) + reserve) * spread / math.sqrt(n) for n in (asked - 1, asked)]
        assert needed[0] > 0.05 >= needed[1] - 1e-9
    assert find_detectable(spread, size, groups=groups) == math.inf  # one cluster finds nothing


def test_two_clusters_ask_for_more_of_them() -> None:
    sums = ClusterSums()
    for group, changes in {"a": (-1, -1, -1, 0), "b": (-1, 0, 0, 0)}.items():
        for change in changes:
            sums.add(group, change)
    verdict = decide_verdict(clustered_difference(sums))
    assert (verdict.word, verdict.groups) == ("undecided", 2)
    # -0.5 each way: √0.0625 from cluster to cluster, so that 1.96 would be met with 9 examples; t asks for 3 clusters
    assert verdict.needed_n is not None
    assert verdict.needed_n > 12
    assert verdict.reason.startswith("8 examples in 2 clusters do not decide; about ")
