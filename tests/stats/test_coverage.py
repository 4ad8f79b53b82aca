"""Coverage, false alarms and power: the cells of the benchmark, exact where they can be enumerated, else fewer runs.

`python -m benchmarks.stats_coverage` has the full sizes.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from pages import ROOT

pytest.importorskip("numpy")
RUNS = 1500


@pytest.fixture(scope="module")
def bench() -> Any:
    spec = spec_from_file_location("stats_coverage", ROOT / "benchmarks" / "stats_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("n", [30, 100, 1000])
@pytest.mark.parametrize("p", [0.5, 0.7, 0.9, 0.97, 0.99])
def test_pass_rates_exactly(bench: Any, p: float, n: int) -> None:
    least = 0.915 if (p, n) == (0.99, 100) else 0.93
    assert least <= bench.cover_pass_rate(p, n) <= 0.98


@pytest.mark.parametrize("n", [30, 100, 1000])
def test_means(bench: Any, n: int) -> None:
    found = {name: bench.cover_mean(name, n, RUNS) for name in bench.SCORES}
    assert {name: share for name, share in found.items() if not 0.93 <= share <= 0.98} == {}


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


@pytest.mark.parametrize("tail", [0.3, 0.7])
def test_savings_and_costs(bench: Any, tail: float) -> None:
    assert 0.92 <= bench.cover_savings(tail, 100, RUNS) <= 0.97
    assert 0.92 <= bench.cover_cost(0.5, tail, 100, RUNS) <= 0.98


def test_the_mean_of_datasets_and_unpaired_runs(bench: Any) -> None:
    assert 0.93 <= bench.cover_macro(RUNS) <= 0.98
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
    assert bench.alarm_looks(100, planned=300)[0] <= 0.065
    assert bench.alarm_clustered_looks(40) <= 0.065


def test_a_planted_difference_is_found(bench: Any) -> None:
    assert bench.find_planted(RUNS) > 0.9


def test_looks_save_examples_and_keep_the_power(bench: Any) -> None:
    found, used = bench.power_of_looks(60, 0.05)
    assert found > 0.95
    assert used < 0.65
