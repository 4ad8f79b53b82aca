"""Coverage, false alarms and power: the cells of the benchmark, exact where they can be enumerated, else fewer runs.

`python -m benchmarks.stats_coverage` has the full sizes.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from pages import ROOT

pytestmark = pytest.mark.long

pytest.importorskip("numpy")
RUNS = 1500


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return import_module("benchmarks.stats_coverage")


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return import_module("benchmarks.stats_intervals")


@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("p", [0.5, 0.7, 0.9, 0.97, 0.99])
def test_pass_rates_exactly(bench: Any, p: float, n: int) -> None:
    least = 0.915 if (p, n) == (0.99, 100) else 0.93
    assert least <= bench.cover_pass_rate(p, n) <= 0.98


@pytest.mark.parametrize("n", [30, 100, 1000])
def test_means(bench: Any, n: int) -> None:
    found = {name: bench.cover_mean(name, n, RUNS) for name in bench.SCORES}
    assert {name: share for name, share in found.items() if share < 0.93} == {}


@pytest.mark.parametrize("n", [20, 50, 100])
def test_paired_pass_and_fail_exactly(bench: Any, n: int) -> None:
    found = {cell: bench.cover_paired(*cell, n) for cell in bench.PAIRED_CELLS}
    assert {cell: share for cell, share in found.items() if share < 0.93} == {}


@pytest.mark.parametrize("n", [30, 100])
def test_paired_scores(bench: Any, n: int) -> None:
    found = {name: bench.cover_changes(name, n, RUNS) for name in bench.CHANGES}
    assert {name: share for name, share in found.items() if share < 0.93} == {}


@pytest.mark.parametrize(("groups", "size"), [(20, 10), (10, 20), (10, 150)])
def test_clusters(bench: Any, groups: int, size: int) -> None:
    found = {cell: bench.cover_clusters(groups, size, *cell, RUNS) for cell in bench.CLUSTER_CELLS}
    assert {cell: share for cell, share in found.items() if share < 0.89} == {}


@pytest.mark.parametrize(("groups", "size"), [(20, 10), (10, 20), (10, 150)])
def test_differences_over_clusters(bench: Any, groups: int, size: int) -> None:
    found = {cell: bench.cover_clustered_changes(groups, size, *cell, 400) for cell in bench.CHANGE_CELLS}
    assert {cell: share for cell, share in found.items() if share < 0.89} == {}


def test_differences_over_clusters_and_examples_without_one(bench: Any) -> None:
    assert bench.cover_clustered_changes(10, 20, 0.1, 0.05, 400, alone=100) >= 0.89


@pytest.mark.parametrize("n", [10, 30, 100])
def test_means_with_a_few_zeros(cells: Any, n: int) -> None:
    found = {(name, q): cells.cover_mean(name, q, n, RUNS) for name in cells.SCORES for q in cells.ZEROS}
    assert {cell: each for cell, each in found.items() if not each.passes} == {}
    assert n != 100 or max(each.grown for each in found.values()) <= cells.MOST_GROWTH


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("growing", [True, False])
def test_savings(cells: Any, n: int, growing: bool) -> None:
    found = {tail: cells.cover_savings(tail, n, RUNS, growing=growing) for tail in cells.TAILS}
    assert {tail: cell for tail, cell in found.items() if not cell.passes} == {}


@pytest.mark.parametrize("n", [10, 30, 100])
def test_costs(cells: Any, n: int) -> None:
    found = {(p, tail): cells.cover_cost(p, tail, n, RUNS) for p in (0.2, 0.5, 0.9) for tail in cells.TAILS}
    assert {cell: each for cell, each in found.items() if not each.passes} == {}


@pytest.mark.parametrize("datasets", [2, 8, 20])
def test_the_mean_of_datasets(cells: Any, datasets: int) -> None:
    found = {(p, n): cells.cover_macro(datasets, p, n, RUNS) for p in (0.5, 0.9, 0.97, 0.99) for n in (10, 30, 100)}
    assert {cell: each for cell, each in found.items() if not each.passes} == {}


def test_the_intervals_of_a_report(cells: Any) -> None:
    found = dict(cells.evaluate_cells(100))
    assert len(found) == 4
    assert {what: cell for what, cell in found.items() if not cell.passes} == {}


def test_unpaired_runs(bench: Any) -> None:
    assert bench.cover_unpaired(0.8, 0.8, 100, RUNS) >= 0.93
    assert bench.cover_unpaired(0.97, 0.9, 100, RUNS) >= 0.93


@pytest.mark.parametrize(("share", "n"), [(0.5, 30), (0.95, 100)])
def test_quantiles_are_as_exact(bench: Any, share: float, n: int) -> None:
    exact = bench.cover_quantile_exactly(share, n)
    assert exact >= 0.95
    assert bench.cover_quantile(share, n, RUNS) == pytest.approx(exact, abs=0.02)


def test_families_of_equal_systems_are_seldom_alarmed(bench: Any) -> None:
    assert bench.alarm_families(300) <= 0.065


def test_families_over_conversations_are_seldom_alarmed(bench: Any) -> None:
    by_conversation, by_question = bench.alarm_clustered_families(400)
    assert by_conversation <= 0.065
    assert by_question > 0.3  # what ignoring the clusters costs


def test_looking_early_does_not_alarm(bench: Any) -> None:
    assert bench.alarm_looks(100, systems=4, planned=300)[0] <= 0.065
    assert bench.alarm_clustered_looks(40, systems=3) <= 0.065


def test_a_planted_difference_is_found(bench: Any) -> None:
    assert bench.find_planted(RUNS) > 0.9


def test_looks_save_examples_and_keep_the_power(bench: Any) -> None:
    found, used = bench.power_of_looks(60, 0.05)
    assert found > 0.95
    assert used < 0.65
