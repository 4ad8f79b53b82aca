"""Means of scores, shares that pass, official numbers, repeats and retention."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.metrics import (
    MeanScore,
    OfficialScore,
    PassRate,
    PerDatasetBreakdown,
    Repeats,
    Retention,
    default_metrics,
)
from context_bench.reporters import TableReporter
from context_bench.results import EvalRow
from context_bench.summary import summarize
from rows import failed_row, make_row

# -- quality


def test_mean_is_the_sum_over_the_count() -> None:
    rows = [make_row(1.0), make_row(0.5), make_row(0.0)]
    assert MeanScore().compute(rows) == {"mean_score": 0.5}


def test_mean_reads_the_field_it_was_given() -> None:
    row = make_row(scores={"f1": 0.25, "score": 1.0})
    assert MeanScore(score_field="f1").compute([row]) == {"mean_score": 0.25}
    assert MeanScore("f1").compute([row]) == {"mean_score": 0.25}


def test_default_fields_are_those_of_the_specification() -> None:
    assert MeanScore().score_field == "score"
    assert (PassRate().threshold, PassRate().score_field) == (0.7, "score")


def test_an_errored_row_counts_as_zero_in_the_mean() -> None:
    assert MeanScore().compute([make_row(1.0), failed_row()]) == {"mean_score": 0.5}


def test_an_errored_row_counts_as_zero_even_with_a_score_left_on_it() -> None:
    assert MeanScore().compute([make_row(1.0), make_row(1.0, error="X: y")]) == {"mean_score": 0.5}


def test_an_unscored_row_is_left_out_of_the_mean() -> None:
    assert MeanScore().compute([make_row(1.0), make_row(None), make_row(0.0)]) == {"mean_score": 0.5}


def test_no_rows_give_zero() -> None:
    assert MeanScore().compute([]) == {"mean_score": 0.0}
    assert PassRate().compute([]) == {"pass_rate": 0.0}


def test_only_unscored_rows_give_zero() -> None:
    assert MeanScore().compute([make_row(None)]) == {"mean_score": 0.0}
    assert PassRate().compute([make_row(None)]) == {"pass_rate": 0.0}


def test_pass_rate_is_a_share_of_the_scored_rows() -> None:
    rows = [make_row(0.9), make_row(0.8), make_row(0.1), make_row(None), failed_row()]
    assert PassRate().compute(rows) == {"pass_rate": 2 / 4}


def test_a_score_equal_to_the_threshold_passes() -> None:
    assert PassRate(threshold=0.7).compute([make_row(0.7)]) == {"pass_rate": 1.0}
    assert PassRate(threshold=0.7).compute([make_row(0.6999999)]) == {"pass_rate": 0.0}


def test_an_errored_row_passes_no_threshold_above_zero() -> None:
    assert PassRate(threshold=0.0001).compute([failed_row()]) == {"pass_rate": 0.0}


def test_pass_rate_by_keyword_as_the_specification_writes_it() -> None:
    rows = [make_row(0.7, field="f1"), make_row(0.2, field="f1")]
    assert PassRate(score_field="f1", threshold=0.7).compute(rows) == {"pass_rate": 0.5}


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_thresholds_at_the_ends(threshold: float) -> None:
    rows = [make_row(0.0), make_row(1.0)]
    assert PassRate(threshold).compute(rows) == {"pass_rate": {0.0: 1.0, 1.0: 0.5}[threshold]}


# -- per dataset


def test_a_mean_for_each_tag() -> None:
    rows = [make_row(1.0, field="f1", dataset="a"), make_row(0.5, field="f1", dataset="a")]
    rows += [make_row(0.25, field="f1", dataset="b")]
    # The two datasets weigh the same, whatever their size: (0.75 + 0.25) / 2.
    assert PerDatasetBreakdown().compute(rows) == {"dataset:a": 0.75, "dataset:b": 0.25, "macro_score": 0.5}


def test_keys_are_sorted_and_rows_without_a_tag_are_unknown() -> None:
    rows = [make_row(1.0, field="f1", dataset=tag) for tag in ("zoo", "", "hotpotqa", "gsm8k")]
    assert list(PerDatasetBreakdown().compute(rows)) == [
        "dataset:gsm8k",
        "dataset:hotpotqa",
        "dataset:unknown",
        "dataset:zoo",
        "macro_score",
    ]


def test_the_field_is_f1_unless_another_is_given() -> None:
    row = make_row(scores={"f1": 0.25, "mc_accuracy": 1.0}, dataset="d")
    assert PerDatasetBreakdown().compute([row]) == {"dataset:d": 0.25}
    assert PerDatasetBreakdown(score_field="mc_accuracy").compute([row]) == {"dataset:d": 1.0}


def test_errors_count_as_zero_and_unscored_rows_are_left_out() -> None:
    rows = [make_row(1.0, field="f1", dataset="d"), failed_row(dataset="d"), make_row(None, dataset="d")]
    assert PerDatasetBreakdown().compute(rows) == {"dataset:d": 0.5}


def test_no_rows_have_no_datasets() -> None:
    assert PerDatasetBreakdown().compute([]) == {}


def test_a_dataset_without_a_score_is_left_out_of_the_mean_of_means_and_named() -> None:
    rows = [make_row(1.0, field="f1", dataset="a"), make_row(0.5, field="f1", dataset="b"), make_row(dataset="c")]
    tally = PerDatasetBreakdown().start()
    for row in rows[:2]:
        tally.add(row)
    assert tally.notes() == {}
    tally.add(rows[2])
    assert tally.result()["macro_score"] == 0.75
    assert tally.notes() == {"macro_score": "only over a, b: no row of c has a score"}


# -- official score


def rows(*given: tuple[str, float], tag: str = "d") -> list[EvalRow]:
    return [make_row(scores={"score": score}, metadata={"group": group}, dataset=tag) for group, score in given]


def test_the_mean_of_groups_gives_small_groups_the_same_weight() -> None:
    # a: 1/4, b: 1/1; their mean is 0.625, the mean of rows 0.4
    got = OfficialScore().compute(rows(("a", 1), ("a", 0), ("a", 0), ("a", 0), ("b", 1)))
    assert got == {"official_score": 0.625}


def test_groups_within_groups_are_averaged_level_by_level() -> None:
    # live: (1 + 0) / 2 = 0.5 over its two groups; plain: 0.25; their mean 0.375
    given = [("live/x", 1), ("live/x", 1), ("live/y", 0), ("plain", 1), ("plain", 0), ("plain", 0), ("plain", 0)]
    assert OfficialScore().compute(rows(*given)) == {"official_score": 0.375}


def test_a_ratio_of_sums_counts_units() -> None:
    # 3 of 3 and 0 of 1 instructions: 3/4, where the mean of the two shares is 1/2
    meta = {"weight_field": "share"}
    given = [
        make_row(scores={"score": 1.0, "share": 1.0}, metadata={**meta, "weight": 3}),
        make_row(scores={"score": 0.0, "share": 0.0}, metadata={**meta, "weight": 1}),
    ]
    assert OfficialScore().compute(given) == {"official_score": 0.75}


def test_an_error_counts_as_nothing_and_an_unscored_row_not_at_all() -> None:
    failed = make_row(scores={}, metadata={"group": "a"}, error="down")
    unscored = make_row(scores={}, metadata={"group": "b"})
    assert OfficialScore().compute([*rows(("a", 1), tag=""), failed, unscored]) == {"official_score": 0.5}


def test_several_datasets_have_a_number_each() -> None:
    got = OfficialScore().compute([*rows(("a", 1), tag="x"), *rows(("a", 0), ("b", 1), tag="y")])
    assert got == {"official:x": 1.0, "official:y": 0.5}


@pytest.mark.parametrize("given", [[], [make_row(scores={"score": 1.0})]])
def test_rows_that_are_simply_averaged_have_no_other_number(given: list[EvalRow]) -> None:
    assert OfficialScore().compute(given) == {}


# -- repeats


def _rows(answers: list[list[float]]) -> list[EvalRow]:
    return [
        make_row(score, example_id=number, repeat=repeat)
        for number, scores in enumerate(answers)
        for repeat, score in enumerate(scores)
    ]


def test_each_number_by_hand() -> None:
    values = Repeats(repeats=3).compute(_rows([[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]]))
    assert values["pass_at_k"] == 0.75
    assert values["pass_all_k"] == 0.25
    # of three pairs of answers to one example two disagree, in two of four examples
    assert values["repeat_flips"] == pytest.approx((2 / 3 + 2 / 3) / 4)
    # within (2/3 + 2/3) / 8 = 1/6; between 3·(.25 + 1/36 + .25 + 1/36) / 3 = 5/9; (5/9 - 1/6)/3 = 7/54
    assert values["repeat_variance_share"] == pytest.approx((1 / 6) / (1 / 6 + 7 / 54))


def test_the_worked_example_has_its_intervals() -> None:
    baseline, system = [1, 1, 0, 1, 0, 1, 1, 0, 1, 1], [1, 0, 0, 1, 1, 1, 1, 0, 1, 0.5]
    tally = Repeats(repeats=2).start()
    for row in _rows([list(pair) for pair in zip(baseline, system)]):
        tally.add(row)
    intervals = tally.intervals()
    assert intervals["repeat_variance_share"].render() == "0.503 [0.16, 1.00]"  # docs/statistics.md
    assert (intervals["pass_at_k"].value, intervals["pass_all_k"].value) == (0.8, 0.5)
    assert intervals["pass_at_k"].n == 10


def test_errors_do_not_pass_and_rows_without_a_score_are_no_answer() -> None:
    rows = [make_row(1.0), failed_row(repeat=1), make_row(1.0, example_id=2), make_row(None, example_id=2, repeat=1)]
    values = Repeats(repeats=2).compute(rows)
    assert (values["pass_at_k"], values["pass_all_k"], values["repeat_flips"]) == (1.0, 0.0, 1.0)  # the first alone


def test_what_has_too_few_answers_says_so() -> None:
    tally = Repeats(repeats=3).start()
    for row in _rows([[1, 0], [0, 0]]):
        tally.add(row)
    assert tally.result()["pass_at_k"] == 0.0  # NaN in a summary, as it is not measured
    assert tally.result()["repeat_flips"] == 0.5
    assert tally.unmeasured()["pass_at_k"] == "no example has 3 answers with a score"
    assert "repeat_flips" not in tally.unmeasured()


def test_a_run_with_repeats_has_it_by_default() -> None:
    assert not any(isinstance(metric, Repeats) for metric in default_metrics())
    asked: dict[int, int] = {}

    def every_other(example: dict[str, object]) -> dict[str, object]:
        number = int(str(example["id"]))
        asked[number] = asked.get(number, 0) + 1
        return {"response": "red" if asked[number] % 2 else "blue"}

    given = [{"id": number, "context": "red", "answer": "red"} for number in range(20)]
    result = evaluate(every_other, given, repeats=2, progress=False)
    values = result.summary["every_other"]
    assert (values["pass_at_k"], values["pass_all_k"], values["repeat_flips"]) == (1.0, 0.0, 1.0)
    assert result.intervals["every_other"]["pass_all_k"].high < 0.2
    flat = evaluate(every_other, given, repeats=2, progress=False, keep_rows=False)
    assert flat.summary["every_other"]["pass_all_k"] == 0.0
    assert "| pass@k |" in re.sub(" +", " ", result._repr_markdown_())
    table = TableReporter(wide=True).render(result)
    assert all(title in table for title in ("pass@k", "pass^k", "flips", "repeat variance"))
    assert "pass@k: at least one of 2 answers" in table


# -- retention


def _compare(metric: Retention | None = None, **scores: Any) -> dict[str, dict[str, float]]:
    summary = {
        name: values if isinstance(values, dict) else {"mean_score": values, "num_examples": 4.0, "num_unscored": 0.0}
        for name, values in scores.items()
    }
    return (metric or Retention()).compare(summary)


def test_by_hand() -> None:
    found = _compare(floor=0.2, direct=0.7, half=0.45, same=0.7, worse=0.1, better=0.8, ceiling=0.9)
    assert {name: pytest.approx(values["retention"]) for name, values in found.items()} == {
        "half": 0.5,
        "same": 1.0,
        "worse": -0.2,
        "better": 1.2,
    }


@pytest.mark.parametrize(
    "scores",
    [
        {"a": 0.5},
        {"a": 0.5, "floor": 0.1},
        {"a": 0.5, "direct": 0.9},
        {"a": 0.5, "floor": 0.4, "direct": 0.4},
        {"a": 0.5, "floor": 0.6, "direct": 0.4},
        {"a": 0.5, "floor": math.nan, "direct": 0.4},
        {"a": 0.5, "floor": {}, "direct": 0.4},
        {"a": 0.5, "floor": {"mean_score": 0.0, "num_examples": 3.0, "num_unscored": 3.0}, "direct": 0.4},
        {},
    ],
)
def test_without_two_ends_there_is_none(scores: dict[str, Any]) -> None:
    assert _compare(**scores) == {}


def test_a_system_without_a_score_has_none() -> None:
    unscored = {"mean_score": 0.0, "num_examples": 3.0, "num_unscored": 3.0}
    assert _compare(floor=0.0, direct=1.0, a=unscored, b={}, c=math.nan, d=0.5) == {"d": {"retention": 0.5}}


def test_controls_under_other_names() -> None:
    assert _compare(Retention(floor="blind", direct="all"), blind=0.0, all=1.0, a=0.25) == {"a": {"retention": 0.25}}


def test_in_a_summary() -> None:
    scores = {"floor": (0.0, 0.5), "direct": (1.0, 1.0), "proxy": (1.0, 0.25)}
    rows = [make_row(score, system=name) for name, both in scores.items() for score in both]
    summary = summarize(rows, scores, [MeanScore(), Retention()]).numbers
    # (0.625 - 0.25) / (1 - 0.25)
    assert summary["proxy"]["retention"] == 0.5
    assert "retention" not in summary["floor"] | summary["direct"]
    assert Retention().compute(rows) == {}
