"""Dollars saved against a baseline: example by example, where both are known."""

from __future__ import annotations

import pytest

from context_bench.pricing import find_saving


def test_pairs_alone_count() -> None:
    baseline = {"a": 0.010, "b": 0.020, "c": 0.030, "d": None}
    saving = find_saving({"a": 0.004, "b": 0.021, "c": None, "e": 0.5}, baseline)
    # a saves 0.006, b costs 0.001 more: 0.005 of 0.030, over two of the five examples
    assert saving.dollars == pytest.approx(0.005)
    assert saving.per_1k == pytest.approx(2.5)
    assert saving.share == pytest.approx(1 / 6)
    assert (saving.pairs, saving.left_out) == (2, 3)


def test_nothing_to_compare() -> None:
    saving = find_saving({"a": None}, {"a": 1.0})
    assert (saving.dollars, saving.per_1k, saving.share) == (0.0, None, None)
    assert (saving.pairs, saving.left_out) == (0, 1)
    assert find_saving({"a": 0.0}, {"a": 0.0}).share is None  # a share of nothing
