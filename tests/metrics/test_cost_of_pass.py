"""CostOfPass: all output tokens over the passes."""

from __future__ import annotations

import math

import pytest

from context_bench.metrics import CostOfPass, PassRate
from rows import failed_row, make_row


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
