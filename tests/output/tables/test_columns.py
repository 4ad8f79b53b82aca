"""Numbers with their intervals in one cell, and the star at the best of a column."""

from __future__ import annotations

import math
from typing import Any

import pytest

from banks import each_case
from context_bench import EvalResult
from context_bench.metrics import default_metrics
from context_bench.numbers import dollars, percent, score, seconds, tokens
from context_bench.output.columns import BEST, find_best, write_cell, write_limits
from context_bench.reporters import TableReporter
from context_bench.results import EvalRow
from context_bench.stats import TOO_FEW, Interval
from context_bench.summary import describe_metric, summarize
from rows import failed_row, make_row


def _result(rows: list[EvalRow], **config: Any) -> EvalResult:
    names = list(dict.fromkeys(row.system for row in rows))
    metrics = default_metrics(systems=len(names))
    config = {"metrics": [describe_metric(metric) for metric in metrics], "score_field": "score", **config}
    return EvalResult.from_summary(rows, summarize(rows, names, metrics, config), config, metrics)


def _columns(text: str, row: int) -> dict[str, str]:
    lines = text.splitlines()
    titles, cells = ([cell.strip() for cell in lines[place].split("|")[1:-1]] for place in (0, 2 + row))
    return dict(zip(titles, cells))


def _rows(**passing: int) -> list[EvalRow]:
    """Make 60 rows for each system, of which so many pass."""
    return [
        make_row(float(number < count), system=name, example_id=number, input_tokens=1000, output_tokens=400)
        for name, count in passing.items()
        for number in range(60)
    ]


def test_an_interval_stands_beside_its_number() -> None:
    shown = _columns(TableReporter(wide=True).render(_result(_rows(first=60, second=48))), 1)
    # 48 of 60 by Wilson with t(59) = 2.001: c²/n = 0.06673, (0.8 + 0.03337)/1.06673 ± √(0.01068 + 0.00111)/1.06673
    assert shown["score"] == "0.800 [0.68, 0.88]"
    assert shown["pass rate"] == "80.0% [67.9, 88.3]"
    assert shown["n"] == "60"


@each_case(
    ("interval", "show", "text"),
    [
        (Interval(0.742, 0.70, 0.78), score, "[0.70, 0.78]"),
        (Interval(0.742, 0.7412, 0.7428), score, "[0.7412, 0.7428]"),
        (Interval(0.742, 0.702, 0.782, symmetric=True), score, "± 0.04"),
        (Interval(0.5, 0.411, 0.589), percent, "[41.1, 58.9]"),
        (Interval(0.5, 0.411, 0.589, symmetric=True), percent, "± 8.9"),
        (Interval(0.5, 0.49999, 0.50001, symmetric=True), percent, "[50.0, 50.0]"),
        (Interval(0.0013, 0.0010, 0.0017), seconds, "[1.0, 1.7]"),
        (Interval(0.0013, 0.0009, 0.0017), seconds, "[900 µs, 1.7 ms]"),
        (Interval(4041.0, 3370.0, 4845.0), tokens, "[3,370, 4,845]"),
        (Interval(1.5, 1.25, 1.75), dollars, "[$1.25, $1.75]"),
        (Interval(-0.3, -0.5, 0.1), dollars, "[-$0.50, $0.10]"),
        (Interval(-2000.0, -3000.0, -0.00005), dollars, "[-$3,000.00, -$0.000050]"),
        (Interval(0.5, 0.4, 0.6, mark="rough"), score, "[0.40, 0.60] rough"),
        (Interval(0.5, float("nan"), float("nan")), score, "(too few)"),
        (Interval(0.5, 0.0, 1.0, mark=TOO_FEW), percent, "(too few)"),
    ],
)
def test_how_limits_are_written(interval: Interval, show: Any, text: str) -> None:
    assert write_limits(interval, show) == text


def test_a_score_has_as_many_digits_as_its_limits() -> None:
    """0.742 would be outside [0.7424, 0.7426]."""
    close = Interval(0.74249, 0.74243, 0.74263)
    result = EvalResult([], {"a": {"mean_score": 0.74249}}, intervals={"a": {"mean_score": close}})
    assert write_cell(result, "a", "mean_score", score, limits=True) == "0.74249 [0.74243, 0.74263]"


def test_the_best_is_starred_and_ties_share_it() -> None:
    result = _result(_rows(a=60, b=48, c=60))
    text = TableReporter(wide=True).render(result)
    starred = [_columns(text, row)["score"].startswith(BEST) for row in range(3)]
    assert starred == [True, False, True]
    assert "★ = best in column. The verdict says whether the difference is significant." in text


def test_values_that_are_written_alike_tie() -> None:
    summary = {"a": {"mean_score": 0.74204}, "b": {"mean_score": 0.74199}, "c": {"mean_score": 0.5}}
    assert find_best(EvalResult([], summary), "mean_score", score) == {"a", "b"}


@pytest.mark.parametrize(
    ("key", "best"),
    [
        ("mean_score", {"high"}),
        ("cost_of_pass", {"low"}),
        ("latency_p95", {"low"}),
        ("compression_ratio@needle", {"high"}),
        ("dataset:needle", {"high"}),
        ("mean_score:judge_score", {"high"}),
        ("num_errors", set()),
        ("pareto_rank", set()),
        ("a_metric_of_somebody", set()),
    ],
)
def test_more_or_less_is_better(key: str, best: set[str]) -> None:
    assert find_best(EvalResult([], {"low": {key: 1.0}, "high": {key: 2.0}}), key, score) == best


def test_controls_never_win_and_equals_are_not_told_apart() -> None:
    summary = {"oracle": {"mean_score": 1.0}, "a": {"mean_score": 0.5}, "b": {"mean_score": 0.25}}
    assert find_best(EvalResult([], summary, {}, {"controls": ["oracle"]}), "mean_score", score) == {"a"}
    alone = EvalResult([], summary, {}, {"controls": ["oracle", "b"]})
    assert find_best(alone, "mean_score", score) == set()
    equal = {name: {"mean_score": 0.5} for name in "ab"}
    assert find_best(EvalResult([], equal), "mean_score", score) == set()
    unknown = {"a": {"cost_of_pass": float("inf")}, "b": {"cost_of_pass": float("nan")}, "c": {"cost_of_pass": 5.0}}
    assert find_best(EvalResult([], unknown), "cost_of_pass", tokens) == set()


def _star(key: str, cells: dict[str, tuple[float, Interval | None]], **more: dict[str, float]) -> set[str]:
    """Find who has the star of a column; `more` has other numbers of the systems."""
    summary = {name: {key: value, **more.get(name, {})} for name, (value, _) in cells.items()}
    intervals = {name: {key: each} for name, (_, each) in cells.items() if each is not None}
    return find_best(EvalResult([], summary, intervals=intervals), key, score)


def test_no_star_on_a_value_with_too_few_examples() -> None:
    few, known = Interval(0.9, math.nan, math.nan, mark=TOO_FEW), Interval(0.5, 0.4, 0.6)
    assert _star("prompt_savings", {"a": (0.9, few), "b": (0.5, known)}) == set()
    assert _star("prompt_savings", {"a": (0.3, few), "b": (0.5, known)}) == {"b"}
    assert _star("prompt_savings", {"a": (0.5, few), "b": (0.5, known), "c": (0.1, known)}) == {"b"}


def test_no_star_on_times_that_overlap() -> None:
    fast, near, slow = Interval(1.0, 0.9, 1.1), Interval(1.05, 1.1, 1.3), Interval(3.0, 2.5, 3.5)
    assert _star("latency_median", {"a": (1.0, fast), "b": (1.05, near), "c": (3.0, slow)}) == set()
    assert _star("latency_median", {"a": (1.0, fast), "c": (3.0, slow)}) == {"a"}


def test_no_star_for_a_system_whose_quality_was_not_measured() -> None:
    savings = Interval(0.9, 0.8, 1.0)
    both = {"a": (0.9, savings), "b": (0.5, savings), "c": (0.1, savings)}
    scores = {"a": {"mean_score": math.nan}, "b": {"mean_score": 0.5}, "c": {"mean_score": 0.5}}
    assert _star("prompt_savings", both, **scores) == {"b"}
    assert _star("prompt_savings", both, **{name: {"mean_score": math.nan} for name in "abc"}) == set()
    recall = {"mean_score": math.nan, "retrieval_recall": 0.5}  # what a memory found was measured
    assert _star("prompt_savings", both, **dict.fromkeys("abc", recall)) == {"a"}


def test_who_fails_more_has_no_star_for_what_leaves_failures_out() -> None:
    """31 of 100 failed, the long ones: what is left costs less, and compresses better."""
    rows = [
        make_row(1.0, system=name, example_id=place, input_tokens=1000, output_tokens=tokens - place)
        for name, tokens, answered in (("whole", 1000, 100), ("flaky", 900, 69), ("dear", 1300, 100))
        for place in range(answered)
    ]
    rows += [failed_row(system="flaky", example_id=place) for place in range(69, 100)]
    result = _result(rows)
    assert find_best(result, "cost_of_pass", tokens) == {"whole"}
    assert find_best(result, "compression_ratio", percent) == {"whole"}
    assert find_best(result, "mean_score", score) == {"whole", "dear"}
    once = [failed_row(system="flaky", example_id=99), *(row for row in rows if row.error is None)]
    once += [
        make_row(1.0, system="flaky", example_id=p, input_tokens=1000, output_tokens=900 - p) for p in range(69, 99)
    ]
    assert find_best(_result(once), "cost_of_pass", tokens) == {"flaky"}  # one of 100 may fail anywhere


@pytest.mark.parametrize(
    ("workers", "said"),
    [
        ({"a": 1, "b": 1}, "latency was measured with 1 worker."),
        ({"a": 8, "b": 8}, "latency was measured with 8 workers."),
        ({"a": 8, "b": 1}, "latency was measured with 8 workers (a), 1 worker (b)."),
    ],
)
def test_latency_says_at_how_many_workers_it_was_measured(workers: dict[str, int], said: str) -> None:
    assert said in TableReporter(wide=True).render(_result(_rows(a=60, b=48), workers=workers)).splitlines()


def test_intervals_give_way_before_numbers_do() -> None:
    result = _result(_rows(first=60, second=48))
    narrow = TableReporter(80, wide=True).render(result)
    assert _columns(narrow, 1)["score"] == "0.800 [0.68, 0.88]"
    assert _columns(narrow, 1)["saved"] == "60.0%"
    assert "other intervals" in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert "left out" not in TableReporter(wide=True).render(result)


@pytest.mark.parametrize("key", ["prompt_savings", "compression_ratio", "saved_per_1k_usd"])
def test_who_loses_least_has_not_saved_best(key: str) -> None:
    assert find_best(EvalResult([], {"a": {key: -0.1}, "b": {key: -0.4}}), key, score) == set()
    assert find_best(EvalResult([], {"a": {key: 0.1}, "b": {key: -0.4}}), key, score) == {"a"}
