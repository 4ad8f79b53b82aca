"""MeanScore and PassRate, with values worked out by hand."""

from __future__ import annotations

import pytest

from context_bench.metrics import MeanScore, PassRate
from rows import failed_row, make_row


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
