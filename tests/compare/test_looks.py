"""Stopping as soon as it is settled."""

from __future__ import annotations

import random

import pytest

from context_bench.compare.looks import Looks
from context_bench.compare.pairing import ScoredAnswer
from context_bench.errors import UsageError
from context_bench.stats import PairedSums, Verdict, look_boundary, paired_difference
from later import Later

scipy = Later("scipy.stats")


def _add(
    looks: Looks,
    place: int,
    first: float,
    second: float,
    group: str | None = None,
    dataset: str = "",
    failed: bool = False,
) -> Verdict | None:
    own = ScoredAnswer(place, dataset, first, group, failed)
    return looks.add(place, own, ScoredAnswer(place, dataset, second, group))


def _run(looks: Looks, pairs: list[tuple[float, float]], order: list[int] | None = None) -> Looks:
    for place in order or range(len(pairs)):
        _add(looks, place, *pairs[place])
    return looks


def _draw(n: int, up: float, down: float, seed: int = 0) -> list[tuple[float, float]]:
    source = random.Random(seed)
    kinds = source.choices([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)], [up, down, 1 - up - down], k=n)
    return list(kinds)


def test_a_plain_difference_stops_early() -> None:
    looks = _run(Looks(1000), _draw(1000, 0.12, 0.02))
    assert looks.verdict is not None
    assert looks.verdict.word == "better"
    assert (looks.look, looks.verdict.n) == (2, 400)
    assert "settled at look 2 of 5, after 400 of 1,000 examples" in looks.verdict.reason
    assert "overstates the difference" in looks.verdict.reason


def test_the_order_of_arrival_changes_nothing() -> None:
    pairs = _draw(1000, 0.08, 0.04, 3)
    order = list(range(1000))
    random.Random(1).shuffle(order)
    assert _run(Looks(1000), pairs, order).verdict == _run(Looks(1000), pairs).verdict


def test_a_look_waits_for_every_example_before_it() -> None:
    looks, pairs = Looks(100), _draw(100, 0.9, 0.0)
    for place in range(1, 100):
        assert _add(looks, place, *pairs[place]) is None
    assert looks.look == 0
    assert _add(looks, 0, *pairs[0]) is not None
    assert looks.look == 1


def test_a_skipped_example_holds_its_place() -> None:
    looks = Looks(10, looks=2)
    for place in range(5):
        looks.skip(place)
    assert looks.look == 1
    for place in range(5, 10):
        _add(looks, place, 1.0, 0.0)
    assert looks.verdict is not None
    assert looks.verdict.n == 5


def test_what_comes_after_the_verdict_or_twice_is_ignored() -> None:
    looks = _run(Looks(100), _draw(100, 0.9, 0.0))
    before = looks.verdict
    assert _add(looks, 99, 0.0, 1.0) is before
    late = Looks(100)
    _add(late, 0, 1.0, 0.0)
    _add(late, 0, 0.0, 1.0)
    _add(late, 1, 1.0, 1.0)
    assert late.difference == paired_difference(PairedSums(2, 1.0, 1.0, 1, 0, 1.0, 1.0))


def test_equal_systems_are_equivalent_early_only_within_a_stricter_interval() -> None:
    looks = _run(Looks(4000, margin=0.02), [(1.0, 1.0)] * 4000)
    assert looks.verdict is not None
    assert (looks.verdict.word, looks.look) == ("equivalent", 1)
    close = _run(Looks(4000, margin=0.02), _draw(4000, 0.05, 0.05, 2))
    assert close.verdict is not None
    assert close.verdict.word == "equivalent"
    difference = close.difference
    boundary = look_boundary(close.look, 5, 0.1)
    low, high = difference.limits(scipy.norm.sf(boundary))
    assert -0.02 < low <= high < 0.02
    assert close.verdict.narrow is not None
    assert (close.verdict.narrow.low, close.verdict.narrow.high) == pytest.approx((low, high))


def test_not_worse_and_undecided_wait_for_the_last_look() -> None:
    words = {}
    for up, down, seed in ((0.16, 0.14, 1), (0.1, 0.12, 4), (0.15, 0.15, 5), (0.12, 0.1, 7), (0.1, 0.1, 8)):
        verdict = _run(Looks(1000, margin=0.03), _draw(1000, up, down, seed)).verdict
        assert verdict is not None
        words[verdict.word] = verdict
        if verdict.word in ("not worse", "undecided"):
            assert verdict.n == 1000
    assert {"not worse", "undecided"} <= set(words)
    assert words["undecided"].needed_n is not None


def test_at_the_last_look_the_boundary_is_that_of_the_level() -> None:
    """Just beyond 2.04 standard errors is p = 0.05 over all looks; the interval then just excludes 0."""
    for up in range(55, 90):
        pairs = [(1.0, 1.0)] * 800 + [(1.0, 0.0)] * up + [(0.0, 1.0)] * 50
        pairs += [(1.0, 1.0)] * (1000 - len(pairs))
        looks = _run(Looks(1000, margin=0.0), pairs)
        assert looks.verdict is not None
        t = scipy.norm.isf(looks.difference.p_value() / 2)
        assert (looks.verdict.word == "better") == (t >= look_boundary(5, 5)) == (looks.verdict.interval.low >= 0)
        assert looks.verdict.narrow is not None
        assert looks.verdict.narrow.low > looks.verdict.interval.low


def test_a_family_stops_later() -> None:
    pairs = _draw(1000, 0.09, 0.04, 2)
    alone, one_of_nine = _run(Looks(1000), pairs), _run(Looks(1000, comparisons=9), pairs)
    assert alone.verdict is not None
    assert one_of_nine.verdict is not None
    assert alone.verdict.word == one_of_nine.verdict.word == "better"
    assert alone.verdict.n < one_of_nine.verdict.n


def test_conversations_are_judged_by_conversation() -> None:
    pairs = _draw(200, 0.4, 0.1, 1)
    looks = Looks(200)
    for place, pair in enumerate(pairs):
        _add(looks, place, *pair, group=f"c{place // 10}")
    assert looks.verdict is not None
    assert looks.verdict.word == "better"
    assert (looks.difference.method, looks.verdict.groups) == ("clusters", looks.verdict.n // 10)


def test_a_run_that_ends_before_its_plan_is_judged_by_the_next_boundary() -> None:
    pairs = [(1.0, 0.0)] * 20 + [(0.0, 1.0)] * 4 + [(1.0, 1.0)] * 76
    short = _run(Looks(400, margin=0.0), pairs)
    assert (short.verdict, short.look) == (None, 1)  # 80 of the 100 were a look
    verdict = short.finish()
    z = scipy.norm.isf(short.difference.p_value() / 2)
    assert 2.04 < z < look_boundary(2, 5)  # enough to be better at the last look, not at the second
    assert (verdict.word, verdict.n) == ("not worse", 100)
    assert short.finish() is verdict
    whole = _run(Looks(100, margin=0.0), pairs)
    assert whole.verdict is not None
    assert whole.verdict.word == "better"


def test_fewer_examples_than_looks_are_refused() -> None:
    with pytest.raises(UsageError, match="at least as many planned examples as looks"):
        Looks(4)


def test_looks_may_be_of_other_sizes_and_several_may_fall_together() -> None:
    looks = Looks(100, sizes=[60, 60, 60, 80, 100], margin=0.0)
    for place in range(60):
        _add(looks, place, 1.0, 0.0 if place < 15 else 1.0)
    # 15 of 60 got better: z is about 4, beyond the boundary of the second look and not that of the first
    assert look_boundary(2, 5) < scipy.norm.isf(looks.difference.p_value() / 2) < look_boundary(1, 5)
    assert (looks.look, looks.verdict and looks.verdict.word) == (2, "better")
    for wrong in ([60, 100], [60, 50, 70, 80, 100], [20, 40, 60, 80, 99]):
        with pytest.raises(UsageError, match="one size for each look"):
            Looks(100, sizes=wrong)


def test_datasets_weigh_the_same_and_errors_are_told() -> None:
    looks = Looks(40, margin=0.1)
    for place in range(40):
        small = place % 4 == 0
        _add(looks, place, 0.0 if small else 1.0, 1.0, dataset="small" if small else "large", failed=small)
    verdict = looks.verdict
    assert verdict is not None
    assert verdict.difference == -0.5
    assert (verdict.word, verdict.word_without_errors) == ("worse", "undecided")
