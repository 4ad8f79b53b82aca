"""A gate: which systems are judged, by what, and what the three outcomes are."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from context_bench.compare.conditions import parse_condition
from context_bench.compare.gates import (
    Candidate,
    GateOutcome,
    Numbers,
    check_conditions,
    find_exit_code,
    judge_gate,
    list_candidates,
    subtract_intervals,
)
from context_bench.compare.verdicts import Comparison
from context_bench.errors import UsageError
from context_bench.results import EvalResult
from context_bench.stats import Interval, Verdict
from report_pages import make_result
from rows import make_row


def _verdict(name: str, word: str, low: float, high: float) -> Verdict:
    middle = (low + high) / 2
    wide = Interval(middle, low - 0.01, high + 0.01, 0.95, 500)
    return Verdict(word, middle, wide, 0.5, 0.5, 0.02, 500, name=name, narrow=Interval(middle, low, high, 0.9, 500))


def _judge(text: str, **parts: Any) -> GateOutcome:
    values = parts.pop("values", {"mean_score": 0.8})
    numbers = Numbers(values, parts.pop("intervals", {}))
    (outcome,) = judge_gate([parse_condition(text)], [Candidate("mine", numbers, "mean_score", **parts)])
    return outcome


@pytest.mark.parametrize(
    ("text", "low", "high", "outcome"),
    [
        ("score drops 0.02", -0.05, -0.03, "fails"),
        ("score drops 0.02", -0.015, 0.01, "holds"),  # by the 90% interval; the 95% one reaches -0.025
        ("score drops 0.02", -0.03, 0.01, "too few"),
        ("mean_score rises 0.02", 0.03, 0.05, "fails"),
    ],
)
def test_the_score_is_judged_by_the_difference_from_the_baseline(
    text: str, low: float, high: float, outcome: str
) -> None:
    found = _judge(text, verdict=_verdict("mine", "worse", low, high))
    assert found.outcome == outcome
    said = {"holds": "Passed", "fails": "Failed", "too few": "Too few examples"}[outcome]
    name = "the score (mean_score)" if text.startswith("score") else "mean_score"
    assert re.match(rf"mine: {said}: {re.escape(name)} (dropped|rose) by 0\.", found.sentence)


@pytest.mark.parametrize(
    ("word", "outcome"), [("worse", "fails"), ("not worse", "holds"), ("equivalent", "holds"), ("undecided", "too few")]
)
def test_a_verdict(word: str, outcome: str) -> None:
    assert _judge("verdict is worse", verdict=_verdict("mine", word, -0.1, 0.1)).outcome == outcome


def test_without_a_pair_nothing_can_be_told() -> None:
    found = _judge("score drops 0.02")
    assert (found.outcome, found.sentence) == (
        "too few",
        'mine: Undecided ("score drops 0.02"): no example has a score on both sides.',
    )


@pytest.mark.parametrize(
    ("low", "high", "outcome"), [(0.0, 0.005, "holds"), (0.02, 0.1, "fails"), (0.0, 0.02, "too few")]
)
def test_a_number_is_judged_by_its_interval(low: float, high: float, outcome: str) -> None:
    interval = Interval(low, low, high, 0.95, 400)
    found = _judge("error_rate > 0.01", values={"error_rate": low}, intervals={"error_rate": interval})
    assert found.outcome == outcome
    assert "95% interval [" in found.sentence


@pytest.mark.parametrize(
    ("text", "value", "outcome"),
    [
        ("cost_of_pass > 900", 950.0, "fails"),
        ("cost_of_pass > 900", 850.0, "holds"),
        ("cost_of_pass > 900", math.inf, "fails"),
        ("cost_of_pass > 900", math.nan, "too few"),
    ],
)
def test_a_number_without_an_interval_is_judged_by_its_value_and_says_so(text: str, value: float, outcome: str) -> None:
    found = _judge(text, values={"cost_of_pass": value})
    assert found.outcome == outcome
    assert ("only the value counts" in found.sentence) == (not math.isnan(value))
    assert ("was not measured" in found.sentence) == math.isnan(value)


def test_the_interval_of_a_difference_follows_from_those_of_its_sides() -> None:
    # 3 and 4 below, 5 and 12 above: the sides join as the legs of a right triangle do.
    found = subtract_intervals(Interval(100, 97, 105, 0.95, 40), Interval(60, 48, 64, 0.95, 30))
    assert (found.value, found.low, found.high, found.n) == (40, 35, 53, 30)


def test_another_number_drops_or_rises_as_if_nothing_were_shared() -> None:
    ours = {"latency_median": Interval(2.0, 1.7, 2.5, 0.95, 50)}
    theirs = Numbers({"latency_median": 1.0}, {"latency_median": Interval(1.0, 0.9, 1.4, 0.95, 50)})
    parts: Any = {"values": {"latency_median": 2.0}, "intervals": ours, "baseline": theirs}
    # low: 1 - sqrt(.3² + .4²) = .5; high: 1 + sqrt(.5² + .1²) = 1.51
    assert _judge("latency_median rises 0.4", **parts).outcome == "fails"
    assert _judge("latency_median rises 0.6", **parts).outcome == "too few"
    assert _judge("latency_median rises 1.6", **parts).outcome == "holds"
    assert _judge("latency_median rises 0.4", **parts).sentence.endswith(
        "The two sides are treated as independent samples."
    )
    bare = {**parts, "intervals": {}}
    assert _judge("latency_median rises 0.4", **bare).outcome == "fails"
    assert "only the value counts" in _judge("latency_median rises 0.4", **bare).sentence
    few = {**parts, "intervals": {"latency_median": Interval(2.0, math.nan, math.nan, 0.95, 5, mark="too few")}}
    assert _judge("latency_median rises 0.4", **few).outcome == "too few"


def test_a_key_that_nobody_has_is_one_sentence_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"'prompt_saving' is not a number of this run: did you mean prompt_savings\?"):
        _judge("prompt_saving < 0.3", values={"prompt_savings": 0.5})
    with pytest.raises(UsageError, match="there are mean_score and more"):
        _judge("zzz < 0.3")


def test_the_exit_code_is_1_before_4_before_0() -> None:
    def code(*outcomes: str) -> int:
        return find_exit_code([GateOutcome("s", "c", each, "") for each in outcomes])

    assert (code(), code("holds"), code("holds", "too few"), code("too few", "fails", "holds")) == (0, 0, 4, 1)


def _result(systems: list[str], **config: Any) -> EvalResult:
    summary = {name: {"mean_score": 0.5} for name in systems}
    result = EvalResult([], summary, {}, config)
    result.comparison = Comparison("passthrough", "mean_score", 0.02, [_verdict("b", "worse", -0.2, -0.1)])
    return result


@pytest.mark.parametrize(
    ("systems", "config", "judged"),
    [
        (["passthrough", "a", "b"], {}, ["a", "b"]),
        (["a"], {}, ["a"]),
        (["passthrough", "a", "oracle"], {"controls": ["oracle"]}, ["a"]),
        (["a", "direct", "closed-book"], {"controls": ["direct", "closed-book"]}, ["a"]),
        (["a", "b"], {"baseline": "b"}, ["a"]),
        (["passthrough", "oracle"], {"controls": ["oracle"]}, ["passthrough"]),
    ],
)
def test_judged_is_what_is_under_test(systems: list[str], config: dict[str, Any], judged: list[str]) -> None:
    found = list_candidates(_result(systems, **config))
    assert [each.name for each in found] == judged
    assert {each.name: each.verdict is not None for each in found} == {name: name == "b" for name in judged}


def test_a_condition_on_a_difference_needs_something_to_differ_from() -> None:
    drops, limit = parse_condition("score drops 0.02"), parse_condition("error_rate > 0.1")
    check_conditions([drops, limit], ["passthrough", "a"], None, [])
    check_conditions([limit], ["a"], None, [])
    for systems, controls in ((["a"], []), (["passthrough", "oracle"], ["oracle"])):
        with pytest.raises(UsageError, match="needs a baseline in addition to the judged system"):
            check_conditions([limit, drops], systems, None, controls)


def test_the_second_run_of_the_baseline_is_not_judged() -> None:
    names = ("base", "base (again)", "mine")
    comparison = Comparison("base", "mean_score", 0.02, [_verdict("mine", "equivalent", -0.01, 0.01)])
    config = {"baseline": "base", "twin": "base (again)"}
    result = EvalResult([], {name: {"mean_score": 0.8} for name in names}, config=config, comparison=comparison)
    assert [each.name for each in list_candidates(result)] == ["mine"]
    assert find_exit_code(judge_gate([parse_condition("verdict is worse")], list_candidates(result))) == 0


def test_a_limit_on_the_score_is_on_all_datasets_of_the_system() -> None:
    values = {"mean_score": 0.9, "macro_score": 0.4}
    found = _judge("score < 0.5", values=values, intervals={"macro_score": Interval(0.4, 0.35, 0.45, n=99)})
    assert (found.outcome, "the score (macro_score) is 0.400" in found.sentence) == ("fails", True)


def test_a_gate_does_not_hold_where_every_score_is_0() -> None:
    rows = [make_row(0.0, system=name, example_id=n) for name in ("passthrough", "mine") for n in range(300)]
    candidates = list_candidates(make_result(rows))
    outcomes = judge_gate([parse_condition("score drops 0.02"), parse_condition("verdict is worse")], candidates)
    assert [each.outcome for each in outcomes] == ["too few", "too few"]
    assert "every score is 0 on both sides" in outcomes[0].sentence


def test_a_floor_as_good_as_the_baseline_leaves_quality_open_and_nothing_else() -> None:
    wrong = {"passthrough": 0, "mine": 0, "lossy": 150, "closed-book": 0}
    rows = [
        make_row(float(n >= count), system=name, example_id=n, input_tokens=100, output_tokens=10)
        for name, count in wrong.items()
        for n in range(300)
    ]
    candidates = list_candidates(make_result(rows, controls=["closed-book"], baseline="passthrough"))
    quality = ["score drops 0.02", "score < 0.5", "pass_rate < 0.5", "verdict is worse", "verdict is not equivalent"]
    others = ["error_rate > 0.05", "compression_ratio < 0.5"]
    outcomes = judge_gate([parse_condition(each) for each in (*quality, *others)], candidates)
    found = {(each.system, each.condition): each for each in outcomes}
    assert [found["mine", each].outcome for each in quality] == ["too few"] * 5
    assert all("do not need their context" in found["mine", each].sentence for each in quality)
    assert [found["mine", each].outcome for each in others] == ["holds", "holds"]
    assert find_exit_code([each for each in outcomes if each.system == "mine"]) == 4
    # a loss that was shown stands: 150 of 300 were lost
    assert found["lossy", "score drops 0.02"].outcome == "fails"


def test_a_context_beside_answers_leaves_the_difference_open() -> None:
    rows = [make_row(1.0, system="direct", example_id=n, metadata={"output": "response"}) for n in range(300)]
    rows += [make_row(1.0, system="mine", example_id=n, metadata={"output": "context"}) for n in range(300)]
    drop, limit = judge_gate(
        [parse_condition("score drops 0.02"), parse_condition("score < 0.5")], list_candidates(make_result(rows))
    )
    assert (drop.outcome, limit.outcome) == ("too few", "holds")
    assert "mine returns a context and direct an answer" in drop.sentence
