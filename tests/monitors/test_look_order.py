"""The order of a run that may be stopped early: random by seed, whole clusters, the same part of each dataset."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import pytest

from context_bench.core.examples import Item, Wiring
from context_bench.datasets.catalog import catalog
from context_bench.errors import UsageError
from context_bench.monitors.looks import LookOrder, order_for_looks


def _examples(n: int, dataset: str = "d", size: int = 1) -> list[dict[str, Any]]:
    meta = {} if size == 1 else {"size": size}
    return [
        {"id": place, "context": "", "dataset": dataset, **({"meta": {"group": place // size}} if meta else {})}
        for place in range(n)
    ]


def _order(examples: list[dict[str, Any]], seed: int) -> LookOrder:
    return order_for_looks(map(Item, examples), seed)


def _read(order: LookOrder) -> list[dict[str, Any]]:
    return [item.example for item in order.items]


def test_it_depends_on_seed_and_ids_alone() -> None:
    examples = _examples(100)
    shuffled = random.Random(1).sample(examples, 100)
    one, two = _order(examples, 7), _order(shuffled, 7)
    assert _read(one) == _read(two)
    assert one.sizes == [20, 40, 60, 80, 100]
    assert _read(one) != _read(_order(examples, 8))
    assert [each["id"] for each in _read(one)] != list(range(100))


def test_the_draw_is_even() -> None:
    """Each example is as often in the first fifth as any other: 400 draws, mean 80, deviation 8."""
    counts = Counter(each["id"] for seed in range(400) for each in _read(_order(_examples(50), seed))[:10])
    assert set(counts) == set(range(50))
    assert 80 - 5 * 8 < min(counts.values()) <= max(counts.values()) < 80 + 5 * 8


def test_clusters_stay_together_and_looks_hold_whole_ones() -> None:
    order = _order(_examples(70, size=7), 0)
    groups = [each["meta"]["group"] for each in _read(order)]
    assert groups == [group for group in dict.fromkeys(groups) for _ in range(7)]
    assert order.sizes == [14, 28, 42, 56, 70]
    for size in order.sizes[:-1]:
        assert groups[size - 1] != groups[size]
    odd = _order(_examples(21, size=7), 0)  # three conversations: a look holds at least its part
    assert odd.sizes == [7, 14, 14, 21, 21]


def test_each_look_has_the_same_part_of_every_dataset() -> None:
    examples = [*_examples(100, "large"), *_examples(20, "small"), *_examples(40, "grouped", size=4)]
    order = _order(examples, 3)
    assert order.sizes == [32, 64, 96, 128, 160]
    for look, size in enumerate(order.sizes, 1):
        tags = Counter(each["dataset"] for each in _read(order)[:size])
        assert tags == {"large": 20 * look, "small": 4 * look, "grouped": 8 * look}


def test_an_example_without_a_group_is_one_by_itself() -> None:
    examples = _examples(20, size=5)
    del examples[3]["meta"]
    order = _order(examples, 0)
    groups = [each.get("meta", {}).get("group", "alone") for each in _read(order)]
    assert list(dict.fromkeys(groups)) == [
        group for place, group in enumerate(groups) if not place or groups[place - 1] != group
    ]


def test_the_card_names_the_field() -> None:
    examples = [{**each, "meta": {"book": each["id"] // 5}} for each in _examples(25)]
    wiring = Wiring([], dataclasses.replace(catalog()["needle"], cluster="book"))
    order = order_for_looks([Item(each, "needle", wiring) for each in examples], 0)
    books = [each["meta"]["book"] for each in _read(order)]
    assert books == [book for book in dict.fromkeys(books) for _ in range(5)]


def test_fewer_examples_than_looks() -> None:
    with pytest.raises(UsageError, match="needs at least 5 examples"):
        _order(_examples(4), 0)
