"""How many examples are needed: enumerated apart with scipy, and closed forms where many examples change."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.stats import (
    ClusterSums,
    PairedSums,
    clustered_difference,
    decide_verdict,
    find_detectable,
    least_n,
    n_for_difference,
    n_for_equivalence,
    n_for_non_inferiority,
    paired_difference,
    pass_fail_spread,
    power_of_difference,
    power_of_equivalence,
    power_of_non_inferiority,
)
from later import Later

pytestmark = pytest.mark.long

numpy = Later("numpy")
scipy = Later("scipy.stats")

Z80, Z90 = 0.8416212335729143, 1.2815515655446004


def enumerate_power(n: int, discordant: float, difference: float = 0.0, margin: float = 0.02) -> tuple[float, float]:
    """The chances of "equivalent" and of "not worse", over all counts of gains and losses: scipy and the formulas."""
    rates = (discordant + difference) / 2, (discordant - difference) / 2
    most = [int(scipy.binom.isf(1e-11, n, rate)) + 1 for rate in rates]
    up, down = numpy.ogrid[: most[0] + 1, : most[1] + 1]
    chance = scipy.binom.pmf(up, n, rates[0]) * scipy.binom.pmf(down, n - up, rates[1] / (1 - rates[0]))
    low = find_low(n, up - down, up + down)
    high = -find_low(n, down - up, up + down)
    return chance[(low > -margin) & (high < margin)].sum(), chance[low > -margin].sum()


def find_low(n: int, net: Any, changed: Any) -> Any:
    """The lower 95% limit of pass/fail differences."""
    t, size = scipy.t.ppf(0.95, n - 1), n + 2
    mean = net / size
    spread = (changed + 2) / size - mean**2
    skew = (net / size - 3 * mean * spread - mean**3) / spread**1.5
    with_skew = mean - numpy.sqrt(spread / size) * (t - numpy.minimum(0, skew) * (2 * t * t + 1) / 6 / size**0.5)
    losses = numpy.maximum(0, -net)
    unseen = net / n - (scipy.beta.ppf(0.95, losses + 1, n - losses) - losses / n)
    return numpy.minimum(numpy.minimum(with_skew, unseen), net / n)


@pytest.mark.parametrize("discordant", [0.001, 0.005, 0.01, 0.03, 0.05])
def test_power_is_that_of_the_enumeration(discordant: float) -> None:
    spread = pass_fail_spread(discordant)
    for n in (100, 149, 215, 300, 521):
        equivalent, not_worse = enumerate_power(n, discordant)
        assert power_of_equivalence(n, spread, 0.02) == pytest.approx(equivalent, abs=1e-7)
        assert power_of_non_inferiority(n, spread, 0.02) == pytest.approx(not_worse, abs=1e-7)


def test_power_with_a_true_difference_is_that_of_the_enumeration() -> None:
    spread = pass_fail_spread(0.03, -0.01)
    equivalent, not_worse = enumerate_power(700, 0.03, -0.01)
    assert power_of_equivalence(700, spread, 0.02, difference=-0.01) == pytest.approx(equivalent, abs=1e-7)
    assert power_of_non_inferiority(700, spread, 0.02, difference=-0.01) == pytest.approx(not_worse, abs=1e-7)


@pytest.mark.parametrize(
    ("discordant", "eighty", "ninety"),
    [(0.001, 149, 236), (0.005, 313, 313), (0.01, 344, 412), (0.02, 521, 646), (0.03, 714, 889), (0.05, 1111, 1395)],
)
def test_from_so_many_examples_on_the_power_is_reached(discordant: float, eighty: int, ninety: int) -> None:
    for goal, n in ((0.8, eighty), (0.9, ninety)):
        assert n_for_equivalence(pass_fail_spread(discordant), 0.02, power=goal) == n
        assert enumerate_power(n - 1, discordant)[0] < goal
        assert all(enumerate_power(more, discordant)[0] >= goal for more in range(n, 2 * n, max(1, n // 25)))


def test_the_issues_cells() -> None:
    """215 examples were planned for 80% with 1% discordant."""
    assert enumerate_power(215, 0.01)[0] < 0.54
    assert power_of_equivalence(413, 0.1, 0.02) > 0.9
    assert power_of_equivalence(521, pass_fail_spread(0.02), 0.02) > 0.8


def test_ten_percent_discordant_follow_the_normal_form_and_two_percent() -> None:
    spread, n = pass_fail_spread(0.1), n_for_equivalence(pass_fail_spread(0.1), 0.02)
    assert n == pytest.approx(1.02 * 8.567 * 0.1 / 0.0004, rel=0.01)
    assert enumerate_power(n or 0, 0.1)[0] == pytest.approx(0.8, abs=0.03)
    fewer = n_for_non_inferiority(spread, 0.02)
    assert enumerate_power(fewer or 0, 0.1)[1] == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("margin", "numbers"),
    [(0.02, (149, 236, 313, 386)), (0.01, (299, 473, 628)), (0.05, (59, 93, 124)), (0.1, (29, 46, 61))],
)
def test_the_fewest_examples_by_net_losses(margin: float, numbers: tuple[int, ...]) -> None:
    assert tuple(least_n(margin, losses) for losses in range(len(numbers))) == numbers
    for losses, n in enumerate(numbers):
        assert scipy.beta.ppf(0.95, losses + 1, n - losses) < margin <= scipy.beta.ppf(0.95, losses + 1, n - losses - 1)
        sums = [PairedSums(size, -losses, losses, 0, losses, 1.0, -losses) for size in (n - 1, n)]
        assert [decide_verdict(paired_difference(each), margin=margin).word for each in sums] == [
            "undecided",
            "equivalent",
        ]


@pytest.mark.parametrize(("discordant", "difference"), [(0.03, 0.02), (0.1, 0.05), (0.06, 0.05)])
def test_a_difference_is_found_as_often_as_it_says(discordant: float, difference: float) -> None:
    n = n_for_difference(pass_fail_spread(discordant, difference), difference)
    assert n is not None
    source, found = numpy.random.default_rng(1), 0
    for changed in source.binomial(n, discordant, 3000).tolist():
        up = int(source.binomial(changed, (1 + difference / discordant) / 2))
        found += paired_difference(PairedSums(n, 2 * up - changed, changed)).p_value() <= 0.05
    assert 0.77 < found / 3000 < 0.87
    assert power_of_difference(n, pass_fail_spread(discordant, difference), difference) == pytest.approx(
        found / 3000, abs=0.03
    )
    assert n_for_difference(pass_fail_spread(discordant, difference), -difference) == n


def test_a_smaller_level_takes_more() -> None:
    spread = pass_fail_spread(0.1, 0.05)
    assert spread == pytest.approx(math.sqrt(0.0975))
    n = n_for_difference(spread, 0.05)
    assert n is not None
    assert find_detectable(spread, n) == pytest.approx(0.05, rel=0.01)
    assert (n_for_difference(spread, 0.05, alpha=0.05 / 9) or 0) > n


def test_what_is_not_so_cannot_be_shown() -> None:
    assert n_for_difference(0.3, 0.0) is None
    assert n_for_equivalence(0.3, 0.02, difference=0.02) is None
    assert n_for_non_inferiority(0.3, 0.02, difference=-0.03) is None
    assert power_of_equivalence(3, 0.5, 0.01) == 0


@pytest.mark.parametrize("size", [1, 100])
def test_on_other_scales_it_is_students_form(size: int) -> None:
    spread, margin = 0.6 * size, 0.05 * size
    for asked, share, reserve in (
        (n_for_difference(spread, margin, scores=False), 0.975, Z80),
        (n_for_non_inferiority(spread, margin, scores=False), 0.95, Z80),
        (n_for_equivalence(spread, margin, scores=False), 0.95, Z90),
    ):
        assert asked is not None
        needed = [(scipy.t.ppf(share, n - 1) + reserve) * spread / math.sqrt(n) for n in (asked - 1, asked)]
        assert needed[0] > margin >= needed[1] - 1e-6 * size
    assert find_detectable(spread, 1, scores=False) == math.inf  # one example finds nothing
    assert n_for_equivalence(0.0, 0.02, scores=False) == n_for_difference(0.0, 0.1, scores=False) == 2


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
    assert verdict.reason.startswith("8 examples in 2 clusters do not decide; it takes at least ")


def test_a_run_of_as_many_as_an_undecided_one_names_decides() -> None:
    """Pilots of 20 to 200, and then a fresh run of the number for no difference, whatever the truth is."""
    source, decided = numpy.random.default_rng(2), []
    for pilot in (20, 200):
        for truth in (0.0, -0.02, -0.05):
            rates = [0.02, 0.02 - truth, 0.96 + truth]
            found = []
            while len(found) < 20:
                first = _judge(source.multinomial(pilot, rates))
                if first.needed_n_if_equal is not None:
                    found.append(_judge(source.multinomial(first.needed_n_if_equal, rates)).word != "undecided")
            decided.append(sum(found) / len(found))
    assert min(decided) >= 0.8 - 2 * math.sqrt(0.8 * 0.2 / 20)
    assert sum(decided) / len(decided) > 0.85


def _judge(counts: Any) -> Any:
    up, down, rest = (int(each) for each in counts)
    return decide_verdict(
        paired_difference(PairedSums(up + down + rest, up - down, up + down, up, down, 1.0, up - down))
    )
