"""Which examples are used: the first, a random choice by seed, as many of each category."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from context_bench.datasets.joined import name_sample, sample
from context_bench.errors import DataError, UsageError


def examples(**sizes: int) -> list[dict[str, Any]]:
    names = [name for name, size in sizes.items() for _ in range(size)]
    return [{"id": place, "context": "", "meta": {"category": name}} for place, name in enumerate(names)]


def ids(n: int | None, how: str, seed: int = 0, **sizes: int) -> list[int]:
    return [example["id"] for example in sample(examples(**sizes), n, how, seed)]


def test_the_first_read_no_more_than_they_need() -> None:
    endless = iter(examples(a=10))
    assert [example["id"] for example in sample(endless, 3)] == [0, 1, 2]
    assert next(endless)["id"] == 3


@pytest.mark.parametrize("how", ["first", "random", "stratified"])
def test_without_a_number_all_are_used_in_order(how: str) -> None:
    assert ids(None, how, a=5, b=5) == list(range(10))
    assert ids(99, how, a=5, b=5) == list(range(10))
    assert ids(0, how, a=5, b=5) == []


def test_a_random_choice_depends_on_the_seed_and_keeps_the_order() -> None:
    assert ids(20, "random", 1, a=100) == ids(20, "random", 1, a=100) == sorted(ids(20, "random", 1, a=100))
    assert ids(20, "random", 1, a=100) != ids(20, "random", 2, a=100)
    assert ids(20, "random", 1, a=100) != list(range(20))


def test_a_larger_sample_holds_the_smaller_one() -> None:
    assert set(ids(5, "random", a=100)) < set(ids(20, "random", a=100))


def test_a_random_choice_does_not_depend_on_the_order_of_the_source() -> None:
    rows = examples(a=50)
    there, back = sample(rows, 9, "random"), sample(rows[::-1], 9, "random")
    assert {example["id"] for example in there} == {example["id"] for example in back}


def test_every_example_has_the_same_chance() -> None:
    # 400 draws of 5 out of 20: each should come up 100 times; 4.5 deviations of sqrt(400 * .25 * .75) are 39.
    counts = Counter(each for seed in range(400) for each in ids(5, "random", seed, a=20))
    assert all(abs(counts[each] - 100) < 40 for each in range(20))


def test_as_many_of_each_category_and_what_a_small_one_lacks_from_the_others() -> None:
    def categories(n: int) -> Counter[str]:
        return Counter(each["meta"]["category"] for each in sample(examples(a=90, b=9, c=1), n, "stratified"))

    assert categories(3) == {"a": 1, "b": 1, "c": 1}
    assert categories(11) == {"a": 5, "b": 5, "c": 1}
    assert categories(21) == {"a": 11, "b": 9, "c": 1}


def test_nothing_to_stratify_by_is_said() -> None:
    with pytest.raises(DataError, match="example 7 has no category"):
        list(sample([{"id": 7, "context": ""}], 1, "stratified"))


def test_an_unknown_way() -> None:
    with pytest.raises(UsageError, match="first, random, stratified"):
        sample([], 1, "best")


@pytest.mark.parametrize("how", ["random", "stratified"])
def test_a_source_that_can_be_read_again_gives_the_same_sample(how: str) -> None:
    rows = examples(a=40, b=7)
    kept = [row["id"] for row in sample(rows, 9, how, 3)]
    assert [row["id"] for row in sample(rows, 9, how, 3, reread=True)] == kept


def test_a_draw_from_what_can_be_read_again_holds_no_examples() -> None:
    alive = max_alive = 0

    class Row(dict[str, Any]):
        def __init__(self, place: int) -> None:
            nonlocal alive, max_alive
            super().__init__(id=place)
            alive += 1
            max_alive = max(max_alive, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Rows:
        def __iter__(self) -> Any:
            return map(Row, range(1000))

    assert sum(1 for _ in sample(Rows(), 500, "random", reread=True)) == 500
    assert max_alive <= 3


@pytest.mark.parametrize(
    ("count", "limit", "name"), [(10, None, "all"), (9, 10, "all"), (10, 10, "random"), (0, 10, "all")]
)
def test_what_a_sample_is_called(count: int, limit: int | None, name: str) -> None:
    assert name_sample("random", count, limit) == name
