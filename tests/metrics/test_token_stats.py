"""Tokens saved and spent, and the Pareto rank."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from context_bench.metrics import CostOfPass, PassRate
from context_bench.metrics.token_stats import CompressionRatio, ParetoRank
from rows import failed_row, make_row

# -- token stats


INF, NAN = math.inf, math.nan


def test_the_ratio_is_of_sums_not_a_mean_of_ratios() -> None:
    # ratios 0.9 and 0.0 have a mean of 0.45; of the 1,100 tokens 910 are left
    rows = [make_row(input_tokens=100, output_tokens=10), make_row(input_tokens=1000, output_tokens=900)]
    summary = CompressionRatio().compute(rows)
    assert math.isclose(summary["compression_ratio"], 190 / 1100)
    assert summary["mean_input_tokens"] == 550.0
    assert summary["mean_output_tokens"] == 455.0


def test_passing_through_is_zero_and_growing_is_negative() -> None:
    assert CompressionRatio().compute([make_row(input_tokens=8, output_tokens=8)])["compression_ratio"] == 0.0
    assert CompressionRatio().compute([make_row(input_tokens=8, output_tokens=12)])["compression_ratio"] == -0.5
    assert CompressionRatio().compute([make_row(input_tokens=8, output_tokens=0)])["compression_ratio"] == 1.0


def test_errored_rows_are_left_out_of_sums_and_counts() -> None:
    rows = [make_row(input_tokens=100, output_tokens=50), failed_row(input_tokens=900)]
    assert CompressionRatio().compute(rows) == {
        "compression_ratio": 0.5,
        "mean_input_tokens": 100.0,
        "mean_output_tokens": 50.0,
    }


def test_unscored_rows_are_compressed_like_any_other() -> None:
    assert CompressionRatio().compute([make_row(None, input_tokens=4, output_tokens=1)])["compression_ratio"] == 0.75


def test_no_tokens_and_no_rows_give_zeros() -> None:
    zeros = {"compression_ratio": 0.0, "mean_input_tokens": 0.0, "mean_output_tokens": 0.0}
    assert CompressionRatio().compute([]) == zeros
    assert CompressionRatio().compute([failed_row(input_tokens=5)]) == zeros
    assert CompressionRatio().compute([make_row()]) == zeros


def _summary(**points: tuple[float, float]) -> dict[str, dict[str, float]]:
    return {name: {"mean_score": quality, "cost_of_pass": cost} for name, (quality, cost) in points.items()}


def test_compute_alone_is_a_placeholder() -> None:
    assert ParetoRank().compute([make_row(1.0)]) == {"pareto_rank": 0.0}
    assert ParetoRank().compute([]) == {"pareto_rank": 0.0}


def test_default_fields() -> None:
    assert (ParetoRank().quality_field, ParetoRank().cost_field) == ("score", "cost_of_pass")


def test_better_and_cheaper_dominates() -> None:
    assert ParetoRank.rank_systems(_summary(kompact=(0.8, 100), baseline=(0.7, 200))) == {"kompact": 1, "baseline": 2}


def test_a_trade_off_has_two_winners() -> None:
    assert ParetoRank.rank_systems(_summary(good=(0.9, 200), cheap=(0.6, 50))) == {"good": 1, "cheap": 1}


def test_equal_on_one_count_and_better_on_the_other_dominates() -> None:
    assert ParetoRank.rank_systems(_summary(a=(0.8, 100), b=(0.8, 120))) == {"a": 1, "b": 2}
    assert ParetoRank.rank_systems(_summary(a=(0.8, 100), b=(0.7, 100))) == {"a": 1, "b": 2}


def test_equals_share_a_rank() -> None:
    assert ParetoRank.rank_systems(_summary(a=(0.8, 100), b=(0.8, 100), c=(0.1, 500))) == {"a": 1, "b": 1, "c": 2}


def test_fronts_are_peeled_one_after_the_other() -> None:
    points = _summary(a=(0.9, 100), b=(0.8, 50), c=(0.8, 120), d=(0.7, 60), e=(0.6, 130))
    assert ParetoRank.rank_systems(points) == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}


def test_infinite_cost_ranks_after_every_finite_one() -> None:
    # b has the best quality, but a pass costs it infinitely much; without the rule it would share rank 1
    points = _summary(a=(0.5, 100), b=(0.9, INF), c=(0.1, 900), d=(0.2, INF))
    assert ParetoRank.rank_systems(points) == {"a": 1, "b": 3, "c": 2, "d": 4}


def test_only_infinite_costs_are_ranked_by_quality() -> None:
    assert ParetoRank.rank_systems(_summary(a=(0.2, INF), b=(0.9, INF))) == {"a": 2, "b": 1}


def test_nan_and_missing_fields_have_no_rank_and_disturb_nobody() -> None:
    points = _summary(a=(0.5, 100), nan_quality=(NAN, 1), nan_cost=(1.0, NAN))
    points |= {"no_cost": {"mean_score": 1.0}, "no_quality": {"cost_of_pass": 1.0}, "nothing": {}}
    assert ParetoRank.rank_systems(points) == {"a": 1}


def test_ranks_are_whole_numbers_in_the_order_of_the_summary() -> None:
    ranks = ParetoRank.rank_systems(_summary(z=(0.1, 9), a=(0.9, 1)))
    assert list(ranks) == ["z", "a"]
    assert all(type(rank) is int for rank in ranks.values())


def test_no_systems_have_no_ranks() -> None:
    assert ParetoRank.rank_systems({}) == {}


def test_other_fields_can_be_compared() -> None:
    summary = {"a": {"pass_rate": 0.2, "latency_mean": 1.0}, "b": {"pass_rate": 0.9, "latency_mean": 0.5}}
    assert ParetoRank.rank_systems(summary, quality_field="pass_rate", cost_field="latency_mean") == {"a": 2, "b": 1}
    assert ParetoRank("pass_rate", "latency_mean").rank(summary) == {"a": 2, "b": 1}


def test_the_field_score_stands_for_the_mean_score_of_a_summary() -> None:
    assert ParetoRank().rank(_summary(a=(0.8, 100), b=(0.7, 200))) == {"a": 1, "b": 2}


def _fronts_by_definition(points: dict[str, tuple[float, float]]) -> dict[str, int]:
    """The rank of a system is 1 + the longest chain of systems that dominate one another above it."""

    def dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] >= b[0] and a[1] <= b[1] and (a[0] > b[0] or a[1] < b[1])

    def depth(name: str) -> int:
        above = [other for other in points if dominates(points[other], points[name])]
        return 1 + max((depth(other) for other in above), default=0)

    return {name: depth(name) for name in points}


def test_finite_ranks_agree_with_the_definition_on_random_systems() -> None:
    rng = random.Random(0)
    for _ in range(300):
        points = {f"s{index}": (rng.randint(0, 4) / 4, float(rng.randint(1, 5))) for index in range(rng.randint(1, 8))}
        ranks = ParetoRank.rank_systems(_summary(**points))
        assert ranks == _fronts_by_definition(points)


def test_the_order_of_systems_does_not_change_their_ranks() -> None:
    points = [("a", (0.9, INF)), ("b", (0.5, 10.0)), ("c", (0.6, 20.0)), ("d", (0.4, 15.0))]
    expected = {"a": 3, "b": 1, "c": 1, "d": 2}
    for order in itertools.permutations(points):
        assert ParetoRank.rank_systems(_summary(**dict(order))) == expected


# -- cost of pass


def test_tokens_of_failures_are_spent_too() -> None:
    rows = [make_row(1.0, output_tokens=100), make_row(0.0, output_tokens=50), make_row(0.8, output_tokens=30)]
    assert CostOfPass().compute(rows) == {"cost_of_pass": 90.0, "num_passing": 2.0}


def test_no_pass_costs_infinitely_much() -> None:
    assert CostOfPass().compute([make_row(0.1, output_tokens=10)]) == {"cost_of_pass": math.inf, "num_passing": 0.0}


def test_no_rows_cost_infinitely_much() -> None:
    assert CostOfPass().compute([]) == {"cost_of_pass": math.inf, "num_passing": 0.0}


def test_num_passing_is_a_float() -> None:
    assert type(CostOfPass().compute([make_row(1.0)])["num_passing"]) is float


def test_a_score_equal_to_the_threshold_passes() -> None:
    assert CostOfPass(threshold=0.7).compute([make_row(0.7, output_tokens=8)])["cost_of_pass"] == 8.0


def test_the_tokens_of_errored_and_unscored_rows_count_but_they_do_not_pass() -> None:
    rows = [make_row(1.0, output_tokens=10), failed_row(output_tokens=4), make_row(None, output_tokens=6)]
    assert CostOfPass().compute(rows) == {"cost_of_pass": 20.0, "num_passing": 1.0}


def test_an_errored_row_does_not_pass_whatever_score_is_on_it() -> None:
    assert CostOfPass().compute([make_row(1.0, error="X: y")])["num_passing"] == 0.0


def test_defaults_and_keywords_of_the_specification() -> None:
    assert (CostOfPass().threshold, CostOfPass().score_field) == (0.7, "score")
    metric = CostOfPass(score_field="f1", threshold=0.7)
    assert metric.compute([make_row(0.9, field="f1", output_tokens=12)]) == {"cost_of_pass": 12.0, "num_passing": 1.0}


@pytest.mark.parametrize("threshold", [0.1, 0.7, 1.0])
def test_the_passes_are_those_of_pass_rate(threshold: float) -> None:
    rows = [make_row(step / 20, output_tokens=1) for step in range(21)]
    passing = CostOfPass(threshold).compute(rows)["num_passing"]
    assert PassRate(threshold).compute(rows)["pass_rate"] == passing / len(rows)
