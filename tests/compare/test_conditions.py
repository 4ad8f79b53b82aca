"""Conditions of a gate."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from banks import each_case
from context_bench.compare.conditions import Condition, parse_condition
from context_bench.errors import UsageError
from context_bench.stats import Difference, Interval, Verdict, decide_verdict

SAID = {"holds": "Passed", "fails": "Failed", "too few": "Too few examples"}


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("score drops 0.02", Condition("score drops 0.02", "drops", "score", 0.02)),
        ("  score  drops by 0.02 ", Condition("score drops by 0.02", "drops", "score", 0.02)),
        ("latency_p95 rises 0.5", Condition("latency_p95 rises 0.5", "rises", "latency_p95", 0.5)),
        ("prompt_savings < 0.3", Condition("prompt_savings < 0.3", "<", "prompt_savings", 0.3)),
        ("prompt_savings@needle<0.3", Condition("prompt_savings@needle<0.3", "<", "prompt_savings@needle", 0.3)),
        ("error_rate > 0.01", Condition("error_rate > 0.01", ">", "error_rate", 0.01)),
        ("pass_rate <= 1e-1", Condition("pass_rate <= 1e-1", "<=", "pass_rate", 0.1)),
        ("cost_of_pass >= 900", Condition("cost_of_pass >= 900", ">=", "cost_of_pass", 900.0)),
        ("verdict is worse", Condition("verdict is worse", "verdict", word="worse")),
        ("verdict is not better", Condition("verdict is not better", "verdict", word="better", negated=True)),
        ("verdict is undecided", Condition("verdict is undecided", "verdict", word="undecided")),
    ],
)
def test_reading(text: str, condition: Condition) -> None:
    found = parse_condition(text)
    assert str(found) == str(condition)
    assert found.needs_baseline == (condition.kind in ("drops", "rises", "verdict"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write one like"),
        ("score", "write one like"),
        ("score = 1", "write one like"),
        ("score drops", "write one like"),
        ("score drops a lot", "write one like"),
        ("score drops much", "'much' must be a number"),
        ("score < nan", "'nan' must be a number"),
        ("score drops -0.02", "must not be below 0"),
        ("verdict is bad", "write one like"),
        ("a b < 3", "write one like"),
        ("verdict is not worse", 'a gate names what makes it fail; write "verdict is worse"'),
    ],
)
def test_what_is_not_a_condition_is_told_in_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        parse_condition(text)
    assert "\n" not in str(caught.value)
    assert "is not a condition" in str(caught.value)


def _interval(low: float, high: float) -> Interval:
    return Interval((low + high) / 2, low, high, 0.9, 500)


@each_case(
    ("text", "low", "high", "outcome"),
    [
        ("score drops 0.02", -0.05, -0.03, "fails"),
        ("score drops 0.02", -0.05, -0.01, "too few"),
        ("score drops 0.02", -0.01, 0.03, "holds"),
        ("score drops 0.02", -0.02, 0.03, "holds"),
        ("latency_p95 rises 0.5", 0.6, 0.9, "fails"),
        ("latency_p95 rises 0.5", 0.4, 0.9, "too few"),
        ("latency_p95 rises 0.5", -0.1, 0.5, "holds"),
        ("prompt_savings < 0.3", 0.1, 0.2, "fails"),
        ("prompt_savings < 0.3", 0.3, 0.4, "holds"),
        ("prompt_savings < 0.3", 0.2, 0.4, "too few"),
        ("prompt_savings <= 0.3", 0.3, 0.3, "fails"),
        ("prompt_savings <= 0.3", 0.3, 0.4, "too few"),
        ("prompt_savings <= 0.3", 0.31, 0.4, "holds"),
        ("error_rate > 0.01", 0.02, 0.05, "fails"),
        ("error_rate > 0.01", 0.0, 0.01, "holds"),
        ("error_rate > 0.01", 0.0, 0.02, "too few"),
        ("error_rate >= 0.01", 0.01, 0.02, "fails"),
        ("error_rate >= 0.01", 0.0, 0.009, "holds"),
        ("error_rate >= 0.01", 0.0, 0.01, "too few"),
    ],
)
def test_judging_by_an_interval(text: str, low: float, high: float, outcome: str) -> None:
    judgement = parse_condition(text).judge(_interval(low, high))
    assert judgement.outcome == outcome
    assert judgement.sentence.startswith(f"{SAID[outcome]}: ")
    assert "500 examples" in judgement.sentence


@pytest.mark.parametrize(
    ("text", "interval", "sentence"),
    [
        (
            "score drops 0.02",
            Interval(-0.04, -0.051, -0.029, 0.9, 1500),
            "Failed: the score dropped by 0.040 (limit 0.02; 90% interval [0.029, 0.051]; 1,500 examples).",
        ),
        (
            "score drops 0.02",
            Interval(0.0, 0.0, 0.0, 0.9, 150),
            "Passed: the score dropped by 0.000 (limit 0.02; 90% interval [0.00, 0.00]; 150 examples).",
        ),
        (
            "score drops 0.02",
            Interval(0.01, -0.03, 0.05, 0.9, 150),
            "Too few examples: the score rose by 0.010 (limit: a drop of 0.02; 90% interval [-0.03, 0.05]; "
            "150 examples).",
        ),
        (
            "latency_p95 rises 0.5",
            Interval(-0.1, -0.2, 0.0, 0.95, 30),
            "Passed: latency_p95 dropped by 0.100 (limit: a rise of 0.5; 95% interval [0.00, 0.20]; 30 examples).",
        ),
        (
            "prompt_savings <= 0.3",
            Interval(0.2, 0.1, 0.3, 0.95, 30, mark="first"),
            "Failed: prompt_savings is 0.200 (required: above 0.3; 95% interval [0.10, 0.30]; 30 examples, "
            "the first ones and not a random sample).",
        ),
    ],
)
def test_the_sentence(text: str, interval: Interval, sentence: str) -> None:
    assert parse_condition(text).judge(interval).sentence == sentence


def test_a_value_without_an_interval_counts_alone() -> None:
    limit, rise = parse_condition("cost_of_pass > 900"), parse_condition("cost_usd rises 3")
    alone = "no interval, so only the value counts)."
    assert limit.judge_value(math.inf).sentence == f"Failed: cost_of_pass is inf (required: at most 900; {alone}"
    assert rise.judge_value(-2.5).sentence == f"Passed: cost_usd dropped by 2.5 (limit: a rise of 3; {alone}"


def test_what_was_not_measured_cannot_be_told() -> None:
    gate = parse_condition("prompt_savings < 0.3")
    nothing = gate.judge(Interval(math.nan, math.nan, math.nan))
    said = 'Undecided ("prompt_savings < 0.3"): it was not measured.'
    assert (nothing.outcome, nothing.sentence) == ("too few", said)
    few = gate.judge(Interval(0.2, math.nan, math.nan, n=3))
    assert few.sentence == 'Undecided ("prompt_savings < 0.3"): 3 examples give no interval.'
    one = gate.judge(Interval(0.2, math.nan, math.nan, n=1))
    assert one.sentence == 'Undecided ("prompt_savings < 0.3"): 1 example gives no interval.'
    alike = gate.judge(Interval(0.2, math.nan, math.nan, n=9, groups=1))
    assert alike.sentence.endswith("): 9 examples of one document or conversation give no interval.")


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("evidence_survival < 1", Interval(1.0, 0.88, 1.0, n=30)),
        ("error_rate > 0", Interval(0.0, 0.0, 0.1, n=30)),
        ("score drops 0", Interval(0.0, -0.01, 0.01, 0.9, n=30)),
    ],
)
def test_what_no_number_of_examples_can_tell(text: str, interval: Interval) -> None:
    judged = parse_condition(text).judge(interval)
    assert judged.outcome == "too few"
    assert judged.sentence.startswith(f'Undecided ("{text}"): ')
    assert judged.sentence.endswith("30 examples). No number of examples can show this: choose a less strict limit.")


def test_a_verdict_that_is_withheld_says_why_there_is_no_interval() -> None:
    unknown = Interval(0.0, math.nan, math.nan, n=150)
    verdict = replace(_verdict(0.0, 0.005), word="undecided", reason="f1 says little", narrow=unknown)
    judged = parse_condition("score drops 0.02").judge(verdict)
    said = 'Undecided ("score drops 0.02"): f1 says little.'
    assert (judged.outcome, judged.sentence) == ("too few", said)


def _verdict(value: float, error: float) -> Verdict:
    return decide_verdict(Difference(value, value, error * error, 499, 500, "paired t"))


@pytest.mark.parametrize(
    ("text", "value", "error", "outcome"),
    [
        ("verdict is worse", -0.05, 0.01, "fails"),
        ("verdict is worse", 0.05, 0.01, "holds"),
        ("verdict is worse", 0.0, 0.005, "holds"),
        ("verdict is worse", -0.015, 0.02, "too few"),
        ("verdict is not better", 0.05, 0.01, "holds"),
        ("verdict is not better", 0.0, 0.005, "fails"),
        ("verdict is not better", -0.015, 0.02, "too few"),
        ("verdict is undecided", -0.015, 0.02, "fails"),
        ("verdict is undecided", 0.05, 0.01, "holds"),
    ],
)
def test_judging_by_a_verdict(text: str, value: float, error: float, outcome: str) -> None:
    judgement = parse_condition(text).judge(_verdict(value, error))
    assert judgement.outcome == outcome
    assert judgement.sentence.startswith(f"{SAID[outcome]}: the verdict is ")


def test_a_verdict_that_errors_decide_says_so() -> None:
    verdict, gate = replace(_verdict(-0.1, 0.01), word_without_errors="undecided"), parse_condition("verdict is worse")
    assert "the verdict is worse (undecided without errors): " in gate.judge(verdict).sentence
    same = replace(verdict, word_without_errors="worse")
    assert "without errors" not in gate.judge(same).sentence


def test_a_sentence_over_the_first_examples_says_so() -> None:
    interval = Interval(0.5, 0.4, 0.6, n=100, mark="first")
    sentence = parse_condition("prompt_savings < 0.3").judge(interval).sentence
    assert sentence.endswith("[0.40, 0.60]; 100 examples, the first ones and not a random sample).")


def test_a_verdict_brings_its_90_percent_interval() -> None:
    verdict = _verdict(-0.03803, 0.01)  # 1.803 standard errors below: between 1.648 and 1.965
    assert verdict.narrow == Difference(-0.03803, -0.03803, 0.0001, 499, 500, "paired t").interval(0.9)
    assert verdict.interval.high > -0.02 > verdict.narrow.high
    assert parse_condition("score drops 0.02").judge(verdict).outcome == "fails"


def test_a_verdict_is_not_judged_by_an_interval() -> None:
    with pytest.raises(TypeError, match="must be judged by a Verdict"):
        parse_condition("verdict is worse").judge(_interval(0, 1))
