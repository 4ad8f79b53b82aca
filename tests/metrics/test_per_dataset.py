"""PerDatasetBreakdown: one mean for each dataset tag."""

from __future__ import annotations

from context_bench.metrics import PerDatasetBreakdown
from rows import failed_row, make_row


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
    assert tally.notes() == {"macro_score": "over a, b alone: nothing of c was scored"}
