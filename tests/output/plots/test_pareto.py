"""Quality against cost as data: which cost, which systems, and the front by hand."""

from __future__ import annotations

import math

import pytest

from context_bench import EvalResult
from context_bench.compare.verdicts import Comparison
from context_bench.output.plots.pareto import (
    choose_cost,
    choose_quality,
    find_front,
    find_limits,
    read_quality_cost,
    title_pareto,
)
from context_bench.stats import TOO_FEW, Interval


def test_the_front_by_hand() -> None:
    # b costs more than a and is better; c costs more than b and is worse; d is as good as b and dearer; e is best.
    points = {"a": (1.0, 0.2), "b": (2.0, 0.6), "c": (3.0, 0.5), "d": (4.0, 0.6), "e": (9.0, 0.7)}
    assert find_front(points) == ["a", "b", "e"]
    assert find_front({"x": (1.0, 0.5), "y": (1.0, 0.7)}) == ["y"]
    assert find_front({}) == []
    same = {"x": (1.0, 0.5), "y": (1.0, 0.5), "z": (2.0, 0.5)}
    assert find_front(same) == ["x", "y"]  # neither beats the other


def test_the_front_is_the_one_of_the_table() -> None:
    """Steady and close cannot be told apart, so both are on it; the line goes through those that no point beats."""
    at = {"cheap": (0.7, 0.5, 1.0), "steady": (1.3, 0.9, 1.0), "close": (1.4, 0.88, 1.0), "lame": (2.0, 0.3, 0.0)}
    summary = {
        name: {"pareto_cost_usd": cost, "mean_score": quality, "pareto_front": front, "pareto_rank": 1.0}
        for name, (cost, quality, front) in at.items()
    } | {"direct": {"pareto_cost_usd": 1.5, "mean_score": 1.0}}
    data = read_quality_cost(EvalResult([], summary, config={"controls": ["direct"]}))
    assert data is not None
    assert data.front == ["cheap", "steady", "close"]
    assert data.trace_front(0, 3) == [(0.7, 0), (0.7, 0.5), (1.3, 0.5), (1.3, 0.9), (3, 0.9)]
    names = {name: name for name in summary}
    assert title_pareto(data, names) == "On the Pareto front of quality and cost: cheap, steady and close"


def test_a_baseline_that_puts_all_off_is_said_so() -> None:
    summary = {name: {"pareto_tokens_read": 5.0, "mean_score": 0.5, "pareto_front": 0.0} for name in "ab"}
    summary["direct"] = {"pareto_tokens_read": 4.0, "mean_score": 1.0}
    data = read_quality_cost(EvalResult([], summary, config={"controls": ["direct"]}))
    assert data is not None
    assert data.trace_front(0, 9) == []
    assert title_pareto(data, {name: name for name in summary}) == "The baseline dominates a and b"


def test_the_axis_says_that_failures_are_in_it() -> None:
    summary = {
        name: {"pareto_tokens_read": 5.0, "mean_score": 0.5, "num_errors": errors}
        for name, errors in (("a", 0.0), ("b", 3.0))
    }
    cost = choose_cost(EvalResult([], summary))
    assert cost is not None
    assert cost.title == "tokens that the model reads, for each example, failures included"


def test_dollars_come_first_then_what_the_model_reads_then_tokens_for_a_pass() -> None:
    both = {"cost_per_1k_usd": 2.0, "mean_upstream_tokens": 10.0, "cost_of_pass": 30.0}
    cost = choose_cost(EvalResult([], {"a": both, "b": both}))
    assert cost is not None
    assert (cost.unit, cost.values) == ("usd", {"a": 2.0, "b": 2.0})
    read = choose_cost(EvalResult([], {"a": {**both, "cost_per_1k_usd": math.nan}, "b": both}))
    assert read is not None
    assert (read.unit, read.values) == ("tokens", {"a": 10.0, "b": 10.0})  # dollars are known of one system only
    passed = choose_cost(EvalResult([], {"a": {"cost_of_pass": 30.0}, "b": {"cost_of_pass": math.inf}}))
    assert passed is not None
    assert passed.values == {"a": 30.0}
    assert choose_cost(EvalResult([], {"a": {"mean_score": 1.0}})) is None


def test_tokens_of_an_answer_are_not_what_the_model_reads() -> None:
    summary = {"proxy": {"mean_output_tokens": 5.0}, "compressor": {"mean_output_tokens": 50.0}}
    result = EvalResult([], summary, {}, {"returns": {"proxy": "response", "compressor": "context"}})
    cost = choose_cost(result)
    assert cost is not None
    assert cost.values == {"compressor": 50.0}


def test_controls_are_drawn_and_do_not_compete() -> None:
    summary = {
        "oracle": {"mean_score": 1.0, "cost_of_pass": 1.0},
        "good": {"mean_score": 0.9, "cost_of_pass": 5.0},
        "bad": {"mean_score": 0.1, "cost_of_pass": 6.0},
        "unknown": {"mean_score": math.nan, "cost_of_pass": 6.0},
    }
    data = read_quality_cost(EvalResult([], summary, {}, {"controls": ["oracle"]}))
    assert data is not None
    assert (data.front, data.controls, data.missing) == (["good"], ["oracle"], ["unknown"])
    assert data.points["bad"] == (6.0, 0.1)
    assert not data.is_wide


def test_quality_is_the_macro_score_where_there_is_one() -> None:
    assert choose_quality(EvalResult([], {"a": {"mean_score": 1.0}})) == "mean_score"
    assert choose_quality(EvalResult([], {"a": {"mean_score": 1.0, "macro_score": 0.5}})) == "macro_score"


@pytest.mark.parametrize(
    ("interval", "limits"),
    [
        (None, None),
        (Interval(0.5, 0.4, 0.6), (0.4, 0.6)),
        (Interval(0.5, math.nan, math.nan), None),
        (Interval(0.5, 0.0, 1.0, mark=TOO_FEW), None),
    ],
)
def test_too_few_examples_have_no_limits_to_draw(interval: Interval | None, limits: tuple[float, float] | None) -> None:
    assert find_limits(interval) == limits


def test_contexts_are_not_drawn_beside_answers() -> None:
    values = {name: {"mean_score": 1.0, "mean_output_tokens": 10.0} for name in ("whole", "half", "answers")}
    kinds = {"whole": "context", "half": "context", "answers": "context"}
    config = {"returns": kinds, "unread": ["whole", "half"], "baseline": "whole"}
    data = read_quality_cost(EvalResult([], values, config=config))
    assert data is not None
    assert (list(data.points), data.missing) == (["whole", "half"], [])


def test_examples_that_need_no_context_have_no_front() -> None:
    values = {name: {"mean_score": 1.0, "mean_output_tokens": float(cost)} for name, cost in (("a", 9), ("b", 3))}
    result = EvalResult([], values, config={"returns": {"a": "context", "b": "context"}})
    result.comparison = Comparison("a", "mean_score", 0.02, [], context_unneeded="these examples do not need it")
    data = read_quality_cost(result)
    assert data is not None
    assert (data.front, data.trace_front(0.0, 10.0)) == ([], [])
    assert title_pareto(data, {"a": "a", "b": "b"}) == "Quality against cost: examples need no context"
