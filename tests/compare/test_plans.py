"""How many examples a question needs. Expected: near (z + z)² · spread² / difference²."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.compare.plans import Target, assume_needs, find_needs
from context_bench.errors import UsageError
from context_bench.results import EvalResult, EvalRow
from context_bench.stats import n_for_difference, n_for_equivalence, n_for_non_inferiority
from rows import make_row

TARGET = Target(0.05, 0.02)


def test_an_assumed_spread() -> None:
    needs = assume_needs(TARGET, spread=0.2)
    # (1.96 + 0.8416)² · 0.04 / 0.0025 = 125.6, and some more for t and for the two pairs that are added
    assert needs.to_find == n_for_difference(0.2, 0.05)
    assert 126 < (needs.to_find or 0) < 157
    # as enumerated for 4% discordant: 856 and 618 by the normal form, which is short of a few percent
    assert (needs.to_equate, needs.to_clear) == (n_for_equivalence(0.2, 0.02), n_for_non_inferiority(0.2, 0.02))
    assert 857 < (needs.to_equate or 0) < 1.07 * 857
    assert needs.detectable is None


def test_discordant_examples_of_pass_and_fail() -> None:
    needs = assume_needs(TARGET, discordant=0.1)
    # variance 0.1 for equal systems, 0.1 - 0.05² for those that differ
    assert needs.to_clear == pytest.approx(1.02 * 2.486475**2 * 0.1 / 0.0004, rel=0.01)
    assert needs.to_find == pytest.approx(2.801585**2 * 0.0975 / 0.0025, rel=0.05)


def test_a_number_of_examples_and_the_difference_that_they_find() -> None:
    found = assume_needs(Target(0.05, 0.02, n=400), spread=0.2).detectable
    # t with 399 degrees on √(0.04/400 + 2 · (1 - 2 · 0.04)/400²)
    assert found == pytest.approx(1.965927 * math.sqrt(0.0001 + 1.84 / 160000) + 0.841621 * 0.01, abs=1e-6)


def test_other_comparisons_make_a_difference_dearer_and_a_margin_not() -> None:
    one, five = (assume_needs(TARGET, spread=0.2, comparisons=count) for count in (1, 5))
    assert five.to_find == n_for_difference(0.2, 0.05, alpha=0.01)
    assert (five.to_find or 0) > (one.to_find or 0)
    assert one.to_clear == five.to_clear


@pytest.mark.parametrize("given", [{}, {"spread": 0.1, "discordant": 0.1}, {"discordant": 0.01}, {"discordant": 1.2}])
def test_an_assumption_that_cannot_be(given: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        assume_needs(TARGET, **given)


def pilot(n: int = 100, **config: Any) -> EvalResult:
    """A pilot in which one example of ten is lost by `mine`."""

    def row(system: str, place: int, score: float) -> EvalRow:
        facts: dict[str, Any] = {"latency": 2.0, "upstream_tokens": 50 if system == "mine" else 100}
        priced = {"cost_usd": 0.01} if system == "mine" else {}
        return make_row(score, system=system, example_id=place, metadata=priced, **facts)

    rows = [row("direct", place, 1.0) for place in range(n)]
    rows += [row("mine", place, float(place % 10 > 0)) for place in range(n)]
    config = {"max_workers": 4, "sends_elsewhere": ["mine", "direct"], **config}
    return EvalResult(rows, {"direct": {}, "mine": {}}, config=config)


def test_a_pilot() -> None:
    baseline, mine = find_needs(pilot(), "direct", TARGET)
    # 10 of 100 lost: a variance of 0.1 - 0.1² is seen; the pairs that are added weigh 2 · (1 - 2 · 0.09)
    assert mine.spread == pytest.approx(0.3)
    added = 1.64
    # 1.02 times the least n with t · √(0.09/n + added/n²) + 0.841621 · 0.3/√n ≤ 0.02, t near 1.6459
    least = next(n for n in range(1000, 2000) if _error(n, added, 1.6459) + 0.841621 * 0.3 / math.sqrt(n) <= 0.02)
    assert mine.to_clear == pytest.approx(1.02 * least, abs=2)
    assert mine.n == 100
    assert mine.detectable == pytest.approx(_error(100, added, 1.984217) + 0.841621 * 0.03, abs=1e-5)
    assert (mine.dollars, mine.tokens, mine.seconds) == (pytest.approx(0.01), 50, 0.5)
    assert (baseline.system, baseline.to_clear, baseline.dollars, baseline.tokens) == ("direct", None, None, 100)


def _error(n: int, added: float, critical: float) -> float:
    return critical * math.sqrt(0.09 / n + added / n**2)


def test_a_pilot_in_which_nothing_changed_asks_for_few_examples() -> None:
    for n in (20, 100, 500):
        same = pilot(n)
        for row in same.rows:
            row.scores["score"] = 1.0
        (_, mine) = find_needs(same, "direct", TARGET)
        # 1 - 0.05^(1/149) is the first below 0.02, whatever the size of the pilot
        assert (mine.spread, mine.to_clear, mine.to_equate) == (0.0, 149, 149)


def test_workers_that_the_pilot_does_not_name() -> None:
    assert [each.seconds for each in find_needs(pilot(max_workers=None), "direct", TARGET)] == [0.25, 0.25]
    here = find_needs(pilot(max_workers=None, sends_elsewhere=[]), "direct", TARGET)
    assert [each.seconds for each in here] == [2.0, 2.0]


def test_a_pilot_that_is_too_small() -> None:
    with pytest.raises(UsageError, match="too few examples of the pilot have a score for both mine and direct"):
        find_needs(pilot(1), "direct", TARGET)
