"""Two runs side by side."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest

from context_bench.stats import (
    ClusterSums,
    Moments,
    PairedSums,
    ScoredRow,
    average_differences,
    clustered_difference,
    compare_rows,
    paired_difference,
    unpaired_difference,
)


def _rows(scores: list[float | None], dataset: str = "d", **more: object) -> list[ScoredRow]:
    return [ScoredRow(f"{dataset}{place}", dataset, score, **more) for place, score in enumerate(scores)]  # type: ignore[arg-type]


FIRST, SECOND = [1.0, 0.0, 1.0, 0.5, None, 1.0], [1.0, 1.0, 0.0, 0.5, 1.0, None]


def test_pairs_are_found_in_any_order() -> None:
    first, second = _rows(FIRST), _rows(SECOND)
    expected = compare_rows(first, second)
    assert expected.pairs == 4
    assert expected.difference() == paired_difference(PairedSums(4, 0.0, 2.0, 1, 1, 1.0, 0.0))
    for seed in range(5):
        random.Random(seed).shuffle(first)
        found = compare_rows(first, second)
        assert found.difference() == expected.difference()
        assert (found.fixed, found.broken) == (expected.fixed, expected.broken)


def test_fixed_and_broken() -> None:
    found = compare_rows(_rows(FIRST), _rows(SECOND))
    assert (found.fixed, found.broken) == ([("d", "d2")], [("d", "d1")])
    assert (found.fixed_count, found.broken_count) == (1, 1)
    many = compare_rows(_rows([1.0] * 50), _rows([0.0] * 50), kept=3)
    assert (len(many.fixed), many.fixed_count) == (3, 50)


def test_rows_without_a_partner_are_counted() -> None:
    found = compare_rows(_rows([1.0, 0.0, 1.0]), _rows([1.0]))
    assert (found.pairs, found.only_first, found.only_second) == (1, 2, 0)
    other = compare_rows(_rows([1.0, 0.0], "a"), _rows([1.0, 0.0], "b"))
    assert (other.pairs, other.only_first, other.only_second) == (0, 2, 2)
    assert not other.difference().known


def test_the_same_id_with_another_content_is_not_a_pair() -> None:
    first = [ScoredRow("1", "d", 1.0, content=b"a"), ScoredRow("2", "d", 1.0, content=b"b"), ScoredRow("3", "d", 0.0)]
    second = [ScoredRow("1", "d", 0.0, content=b"a"), ScoredRow("2", "d", 0.0, content=b"c"), ScoredRow("3", "d", 0.0)]
    found = compare_rows(first, second)
    assert (found.pairs, found.known_content, found.changed_content) == (2, 1, 1)
    assert (found.only_first, found.only_second, found.fixed) == (0, 0, [("d", "1")])
    assert found.datasets["d"].first.n == 3  # they still count where nothing is paired


def test_repeats_are_paired_with_repeats() -> None:
    first = [ScoredRow("1", "d", 1.0, repeat=0), ScoredRow("1", "d", 0.0, repeat=1)]
    second = [ScoredRow("1", "d", 1.0, repeat=1), ScoredRow("1", "d", 1.0, repeat=0)]
    found = compare_rows(first, second)
    assert (found.pairs, found.fixed_count, found.broken_count) == (2, 0, 1)
    assert found.datasets["d"].baseline_total == 2.0


def test_an_errored_row_counts_as_nothing_and_can_be_left_out() -> None:
    first = [ScoredRow("1", "d", None, error=True), *_rows([1.0, 0.0])]
    second = [ScoredRow("1", "d", 1.0), *_rows([1.0, 1.0])]
    found = compare_rows(first, second)
    assert found.difference() == paired_difference(PairedSums(3, -2.0, 2.0, 0, 2, 1.0, -2.0))
    assert found.difference(without_errors=True) == paired_difference(PairedSums(2, -1.0, 1.0, 0, 1, 1.0, -1.0))
    contrast = found.contrast("mine", control=True)
    assert (contrast.name, contrast.control) == ("mine", True)
    assert contrast.without_errors == found.difference(without_errors=True)


def test_several_datasets_have_equal_weights() -> None:
    first, second = _rows([1.0] * 30, "a") + _rows([0.0] * 5, "b"), _rows([0.0] * 30, "a") + _rows([0.0] * 5, "b")
    found = compare_rows(first, second)
    parts = found.differences()
    assert list(parts) == ["a", "b"]
    assert found.difference() == average_differences(list(parts.values()))
    assert found.difference().value == pytest.approx(0.5)


def test_groups_make_clusters() -> None:
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    first = [ScoredRow(str(place), "d", score, group=f"c{place // 2}") for place, score in enumerate(scores)]
    second = [ScoredRow(str(place), "d", 0.0) for place in range(6)]
    sums = ClusterSums()
    for place, score in enumerate(scores):
        sums.add(f"c{place // 2}", score)
    found = compare_rows(first, second).difference()
    assert replace(found, rows=None) == clustered_difference(sums)
    assert found.rows == paired_difference(PairedSums(6, 4.0, 4.0, 4, 0, 1.0, 4.0))
    alone = [ScoredRow(str(place), "d", score, group=str(place)) for place, score in enumerate(scores)]
    assert compare_rows(alone, second).difference().method == "paired t"


def test_one_row_without_a_group_does_not_switch_clusters_off() -> None:
    scores = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    groups = [f"c{place // 2}" for place in range(6)]
    first = [ScoredRow(str(place), "d", score, group=group) for place, (score, group) in enumerate(zip(scores, groups))]
    first.append(ScoredRow("6", "d", 0.0))
    second = [ScoredRow(str(place), "d", 0.0) for place in range(7)]
    sums = ClusterSums()
    for score, group in zip(scores, [*groups, "its own"]):
        sums.add(group, score)
    found, expected = compare_rows(first, second).difference(), clustered_difference(sums)
    assert (found.method, found.groups, found.n) == ("clusters", 4, 7)
    assert (found.variance, found.centre) == pytest.approx((expected.variance, expected.centre))


def test_answers_to_one_example_are_averaged() -> None:
    scores = {0: [1.0, 0.0, 1.0], 1: [1.0, 1.0, 0.0]}
    first = [ScoredRow(f"e{n}", "d", score, repeat=k) for k, line in scores.items() for n, score in enumerate(line)]
    second = [ScoredRow(f"e{n}", "d", 0.0, repeat=k) for n in range(3) for k in (1, 0)]
    found = compare_rows(first, second, repeats=(2, 2))
    assert found.pairs == 3
    assert found.difference() == paired_difference(PairedSums(3, 2.0, 1.5, 3, 0, 1.0, 1.25))  # means 1, 0.5 and 0.5
    assert (found.fixed, found.fixed_count) == ([("d", "e0")], 1)  # once, not for each answer
    once = [ScoredRow(f"e{n}", "d", 0.0) for n in range(3)]
    assert compare_rows(first, once, repeats=(2, 1)).difference() == found.difference()


def test_answers_that_did_not_come_are_left_out_of_their_examples_mean() -> None:
    first = [
        ScoredRow("e", "d", 1.0, repeat=0),
        ScoredRow("f", "d", None, repeat=0),
        ScoredRow("f", "d", 0.5, repeat=1),
    ]
    first.append(ScoredRow("g", "d", None, error=True, repeat=0))
    first.append(ScoredRow("g", "d", 1.0, repeat=1))
    second = [ScoredRow(name, "d", 0.0) for name in "efg"]
    found = compare_rows(first, second, repeats=(2, 1))
    assert found.difference() == paired_difference(PairedSums(3, 2.0, 1.5, 3, 0, 1.0, 1.25))
    assert found.difference(without_errors=True) == paired_difference(PairedSums(2, 1.5, 1.25, 2, 0, 1.0, 1.125))


def test_unpaired() -> None:
    found = compare_rows(_rows([1.0, 0.0, 1.0], "a"), [ScoredRow(f"x{n}", "a", n % 2) for n in range(8)])
    first, second = Moments(), Moments()
    first.extend([1.0, 0.0, 1.0])
    second.extend([n % 2 for n in range(8)])
    assert found.unpaired() == unpaired_difference(first, second)


def test_unpaired_runs_go_by_cluster_too() -> None:
    """Ten documents of five on each side, right or wrong together: as wide as twenty documents allow."""
    first = [ScoredRow(f"a{n}", "d", float(n // 5 < 5), group=f"g{n // 5}") for n in range(50)]
    second = [ScoredRow(f"b{n}", "d", float(n // 5 < 4), group=f"h{n // 5}") for n in range(50)]
    found = compare_rows(first, second).unpaired()
    assert (found.groups, found.n, found.value) == (20, 50, pytest.approx(0.1))
    # by document 0.25/9 and 0.24/9; a 0 and a 1 weigh as 0.4 of a document on each side
    shrunk = 10 / 10.4
    expected = (0.25 + 0.24) / 9 * shrunk**2 + 0.4 * (0.25 + 0.26) / 10.4**2
    assert found.variance == pytest.approx(expected)
    assert found.degrees == pytest.approx(18, abs=0.1)
    alone = [ScoredRow(each.id, "d", each.score) for each in first]
    mixed = compare_rows(alone, second).unpaired()
    assert (mixed.groups, mixed.variance < found.variance) == (60, True)


def test_two_long_runs_in_order_are_never_held() -> None:
    """Both are read by turns, and neither runs ahead: what waits is at most one row."""
    ahead, most = [0, 0], 0

    def stream(side: int) -> Iterator[ScoredRow]:
        nonlocal most
        for place in range(5000):
            ahead[side] += 1
            most = max(most, abs(ahead[0] - ahead[1]))
            yield ScoredRow(str(place), "d", float(place % 3 == 0))

    assert compare_rows(stream(0), stream(1)).pairs == 5000
    assert most <= 1


def test_contents_are_counted_for_the_pairs_that_have_a_score() -> None:
    found = compare_rows(_rows(FIRST, content=b"a"), _rows(SECOND, content=b"a"))
    assert (found.pairs, found.known_content) == (4, 4)
