"""Official numbers that are no mean of rows, worked out by hand."""

from __future__ import annotations

import pytest

from context_bench.metrics import OfficialScore
from context_bench.results import EvalRow
from rows import make_row as row


def rows(*given: tuple[str, float], tag: str = "d") -> list[EvalRow]:
    return [row(scores={"score": score}, metadata={"group": group}, dataset=tag) for group, score in given]


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
        row(scores={"score": 1.0, "share": 1.0}, metadata={**meta, "weight": 3}),
        row(scores={"score": 0.0, "share": 0.0}, metadata={**meta, "weight": 1}),
    ]
    assert OfficialScore().compute(given) == {"official_score": 0.75}


def test_an_error_counts_as_nothing_and_an_unscored_row_not_at_all() -> None:
    failed = row(scores={}, metadata={"group": "a"}, error="down")
    unscored = row(scores={}, metadata={"group": "b"})
    assert OfficialScore().compute([*rows(("a", 1), tag=""), failed, unscored]) == {"official_score": 0.5}


def test_several_datasets_have_a_number_each() -> None:
    got = OfficialScore().compute([*rows(("a", 1), tag="x"), *rows(("a", 0), ("b", 1), tag="y")])
    assert got == {"official:x": 1.0, "official:y": 0.5}


@pytest.mark.parametrize("given", [[], [row(scores={"score": 1.0})]])
def test_rows_that_are_simply_averaged_have_no_other_number(given: list[EvalRow]) -> None:
    assert OfficialScore().compute(given) == {}
