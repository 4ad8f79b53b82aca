"""Answers of two arms, paired by example."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from context_bench.compare.contest import MAX_LISTED, Changes, Contest
from context_bench.compare.pairing import Pairing, Pairs, ScoredAnswer
from context_bench.compare.run_inputs import RunInput
from context_bench.compare.runs import _read_all
from context_bench.stats import (
    ClusterSums,
    Moments,
    PairedSums,
    average_differences,
    clustered_difference,
    compare_means,
    paired_difference,
    unpaired_difference,
)


def _rows(scores: list[float | None], dataset: str = "d", content: bytes | None = None) -> list[ScoredAnswer]:
    return [ScoredAnswer(f"{dataset}{place}", dataset, score, content=content) for place, score in enumerate(scores)]


def _compare(
    first: Iterable[ScoredAnswer], second: Iterable[ScoredAnswer], repeats: tuple[int, int] = (1, 1)
) -> Contest:
    one, two = (
        RunInput("run", ("x",), {"repeats": times}, lambda rows=rows: (("x", row) for row in rows))  # type: ignore[misc]
        for rows, times in zip((first, second), repeats)
    )
    contest = Contest("x", one, "x", two, "x")
    _read_all([contest], 0.7)
    return contest


FIRST, SECOND = [1.0, 0.0, 1.0, 0.5, None, 1.0], [1.0, 1.0, 0.0, 0.5, 1.0, None]


def test_pairs_are_found_in_any_order() -> None:
    first, second = _rows(FIRST), _rows(SECOND)
    expected = _compare(first, second)
    assert expected.pairs.n == 4
    assert expected.pairs.difference() == paired_difference(PairedSums(4, 0.0, 2.0, 1, 1, 1.0, 0.0))
    for seed in range(5):
        random.Random(seed).shuffle(first)
        found = _compare(first, second)
        assert found.pairs.difference() == expected.pairs.difference()
        assert (found.fixed, found.broken) == (expected.fixed, expected.broken)


def test_fixed_and_broken() -> None:
    found = _compare(_rows(FIRST), _rows(SECOND))
    assert (found.fixed, found.broken) == (Changes(1, [("d", "d2")]), Changes(1, [("d", "d1")]))
    many = _compare(_rows([1.0] * 1050), _rows([0.0] * 1050))
    assert (len(many.fixed.examples), many.fixed.count) == (MAX_LISTED, 1050)


def test_rows_without_a_partner_are_counted() -> None:
    found = _compare(_rows([1.0, 0.0, 1.0]), _rows([1.0]))
    assert (found.pairs.n, found.only_here, found.only_in_baseline) == (1, 2, 0)
    other = _compare(_rows([1.0, 0.0], "a"), _rows([1.0, 0.0], "b"))
    assert (other.pairs.n, other.only_here, other.only_in_baseline) == (0, 2, 2)
    assert not other.pairs.difference().known


def test_the_same_id_with_another_content_is_not_a_pair() -> None:
    first = [
        ScoredAnswer("1", "d", 1.0, content=b"a"),
        ScoredAnswer("2", "d", 1.0, content=b"b"),
        ScoredAnswer("3", "d", 0.0),
    ]
    second = [
        ScoredAnswer("1", "d", 0.0, content=b"a"),
        ScoredAnswer("2", "d", 0.0, content=b"c"),
        ScoredAnswer("3", "d", 0.0),
    ]
    found = _compare(first, second)
    assert (found.pairs.n, found.same_content, found.other_content) == (2, 1, 1)
    assert (found.only_here, found.only_in_baseline, found.fixed.examples) == (0, 0, [("d", "1")])
    assert found.scores["d"].n == 3  # they still count where nothing is paired


def test_repeats_are_paired_with_repeats() -> None:
    first = [ScoredAnswer("1", "d", 1.0), ScoredAnswer("1", "d", 0.0)]
    second = [ScoredAnswer("1", "d", 1.0), ScoredAnswer("1", "d", 1.0)]
    found = _compare(first, second)
    assert (found.pairs.n, found.fixed.count, found.broken.count) == (2, 0, 1)
    assert found.pairs.datasets["d"].baseline_total == 2.0


def test_an_errored_row_counts_as_nothing_and_can_be_left_out() -> None:
    first = [ScoredAnswer("1", "d", 0.0, failed=True), *_rows([1.0, 0.0])]
    second = [ScoredAnswer("1", "d", 1.0), *_rows([1.0, 1.0])]
    found = _compare(first, second)
    assert found.pairs.difference() == paired_difference(PairedSums(3, -2.0, 2.0, 0, 2, 1.0, -2.0))
    assert found.pairs.difference(without_errors=True) == paired_difference(PairedSums(2, -1.0, 1.0, 0, 1, 1.0, -1.0))
    contrast = found.pairs.contrast("mine", control=True)
    assert (contrast.name, contrast.control) == ("mine", True)
    assert contrast.without_errors == found.pairs.difference(without_errors=True)


def test_several_datasets_have_equal_weights() -> None:
    first, second = _rows([1.0] * 30, "a") + _rows([0.0] * 5, "b"), _rows([0.0] * 30, "a") + _rows([0.0] * 5, "b")
    found = _compare(first, second)
    assert list(found.pairs.datasets) == ["a", "b"]
    parts = [each.difference() for each in found.pairs.datasets.values()]
    assert found.pairs.difference() == average_differences(parts)
    assert found.pairs.difference().value == pytest.approx(0.5)


def test_groups_make_clusters() -> None:
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    first = [ScoredAnswer(str(place), "d", score, group=f"c{place // 2}") for place, score in enumerate(scores)]
    second = [ScoredAnswer(str(place), "d", 0.0) for place in range(6)]
    sums = ClusterSums()
    for place, score in enumerate(scores):
        sums.add(f"c{place // 2}", score)
    found = _compare(first, second).pairs.difference()
    assert replace(found, rows=None) == clustered_difference(sums)
    assert found.rows == paired_difference(PairedSums(6, 4.0, 4.0, 4, 0, 1.0, 4.0))
    alone = [ScoredAnswer(str(place), "d", score, group=str(place)) for place, score in enumerate(scores)]
    assert _compare(alone, second).pairs.difference().method == "paired t"


def test_one_row_without_a_group_does_not_switch_clusters_off() -> None:
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    groups = [f"c{place // 2}" for place in range(6)]
    first = [
        ScoredAnswer(str(place), "d", score, group=group) for place, (score, group) in enumerate(zip(scores, groups))
    ]
    first.append(ScoredAnswer("6", "d", 0.0))
    second = [ScoredAnswer(str(place), "d", 0.0) for place in range(7)]
    sums = ClusterSums()
    for score, group in zip(scores, [*groups, "its own"]):
        sums.add(group, score)
    found, expected = _compare(first, second).pairs.difference(), clustered_difference(sums)
    assert (found.method, found.groups, found.n) == ("clusters", 4, 7)
    assert (found.variance, found.centre) == pytest.approx((expected.variance, expected.centre))


def test_answers_to_one_example_are_averaged() -> None:
    scores = {0: [1.0, 0.0, 1.0], 1: [1.0, 1.0, 0.0]}
    first = [ScoredAnswer(f"e{n}", "d", score) for k, line in scores.items() for n, score in enumerate(line)]
    second = [ScoredAnswer(f"e{n}", "d", 0.0) for n in range(3) for k in (1, 0)]
    found = _compare(first, second, (2, 2))
    assert found.pairs.n == 3
    assert found.pairs.difference() == paired_difference(
        PairedSums(3, 2.0, 1.5, 3, 0, 1.0, 1.25)
    )  # means 1, 0.5 and 0.5
    assert found.fixed == Changes(1, [("d", "e0")])  # once, not for each answer
    once = [ScoredAnswer(f"e{n}", "d", 0.0) for n in range(3)]
    assert _compare(first, once, (2, 1)).pairs.difference() == found.pairs.difference()


def test_answers_that_did_not_come_are_left_out_of_their_examples_mean() -> None:
    first = [
        ScoredAnswer("e", "d", 1.0),
        ScoredAnswer("f", "d", None),
        ScoredAnswer("f", "d", 0.5),
    ]
    first.append(ScoredAnswer("g", "d", 0.0, failed=True))
    first.append(ScoredAnswer("g", "d", 1.0))
    second = [ScoredAnswer(name, "d", 0.0) for name in "efg"]
    found = _compare(first, second, (2, 1))
    assert found.pairs.difference() == paired_difference(PairedSums(3, 2.0, 1.5, 3, 0, 1.0, 1.25))
    assert found.pairs.difference(without_errors=True) == paired_difference(PairedSums(2, 1.5, 1.25, 2, 0, 1.0, 1.125))


def test_unpaired() -> None:
    found = _compare(_rows([1.0, 0.0, 1.0], "a"), [ScoredAnswer(f"x{n}", "a", n % 2) for n in range(8)])
    first, second = Moments(), Moments()
    first.extend([1.0, 0.0, 1.0])
    second.extend([n % 2 for n in range(8)])
    assert compare_means(found.scores["a"], found.baseline_scores["a"]) == unpaired_difference(first, second)


def test_unpaired_runs_go_by_cluster_too() -> None:
    """Ten documents of five on each side, right or wrong together: as wide as twenty documents allow."""
    first = [ScoredAnswer(f"a{n}", "d", float(n // 5 < 5), group=f"g{n // 5}") for n in range(50)]
    second = [ScoredAnswer(f"b{n}", "d", float(n // 5 < 4), group=f"h{n // 5}") for n in range(50)]
    both = _compare(first, second)
    found = compare_means(both.scores["d"], both.baseline_scores["d"])
    assert (found.groups, found.n, found.value) == (20, 50, pytest.approx(0.1))
    # by document 0.25/9 and 0.24/9; a 0 and a 1 weigh as 0.4 of a document on each side
    shrunk = 10 / 10.4
    expected = (0.25 + 0.24) / 9 * shrunk**2 + 0.4 * (0.25 + 0.26) / 10.4**2
    assert found.variance == pytest.approx(expected)
    assert found.degrees == pytest.approx(18, abs=0.1)
    alone = [ScoredAnswer(each.id, "d", each.value) for each in first]
    both = _compare(alone, second)
    mixed = compare_means(both.scores["d"], both.baseline_scores["d"])
    assert (mixed.groups, mixed.variance < found.variance) == (60, True)


def test_two_long_runs_in_order_are_never_held() -> None:
    """Both are read by turns, and neither runs ahead: what waits is at most one row."""
    ahead, most = [0, 0], 0

    def stream(side: int) -> Iterator[ScoredAnswer]:
        nonlocal most
        for place in range(5000):
            ahead[side] += 1
            most = max(most, abs(ahead[0] - ahead[1]))
            yield ScoredAnswer(str(place), "d", float(place % 3 == 0))

    assert _compare(stream(0), stream(1)).pairs.n == 5000
    assert most <= 1


def test_contents_are_counted_for_the_pairs_that_have_a_score() -> None:
    found = _compare(_rows(FIRST, content=b"a"), _rows(SECOND, content=b"a"))
    assert (found.pairs.n, found.same_content) == (4, 4)


def test_one_baseline_serves_several_systems_and_is_forgotten_when_all_have_answered() -> None:
    sums = {"x": Pairs(), "y": Pairs()}
    seen: list[tuple[str, object]] = []
    pairing = Pairing(
        sums,
        "base",
        lambda name, own, baseline: sums[name].add(own, baseline),
        on_example=lambda name, answer: seen.append((name, answer.id)),
    )
    for name, score in (("x", 1.0), ("base", 0.0)):
        pairing.add(name, ScoredAnswer(1, "d", score))
    assert (pairing.waiting, pairing.count_unpaired()) == (1, (0, 1))  # y may still come
    pairing.add("y", ScoredAnswer(1, "d", 0.5))
    assert (pairing.waiting, sums["x"].n, sums["y"].n) == (0, 1, 1)
    pairing.add("y", ScoredAnswer(2, "d", 0.5))
    assert (pairing.count_unpaired(), len(seen)) == ((1, 0), 4)
