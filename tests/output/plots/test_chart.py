"""The chart model: where a value stands on a scale, round ticks, and how they are written."""

from __future__ import annotations

import pytest

from context_bench.numbers import tokens
from context_bench.output.plots.chart import Axis, Scale, make_cost_scale, make_score_scale


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (Scale(-0.03, 1.08), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (Scale(0, 2200), [0, 500, 1000, 1500, 2000]),
        (Scale(12, 600, log=True), [20, 50, 100, 200, 500]),
        (Scale(0.5, 2e6, log=True), [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]),
    ],
)
def test_ticks_are_round(scale: Scale, ticks: list[float]) -> None:
    assert scale.list_ticks() == pytest.approx(ticks)


def test_places_on_both_kinds_of_scale() -> None:
    assert Scale(0, 10).find_share(2.5) == 0.25
    assert Scale(1, 10_000, log=True).find_share(100) == pytest.approx(0.5)


def test_scores_are_drawn_from_0_to_1_and_further_where_they_go_further() -> None:
    usual, beyond = make_score_scale([0.4, 0.6]), make_score_scale([-1.0, 2.0])
    assert usual.low < 0 < 1 < usual.high
    assert beyond.low < -1 < 2 < beyond.high
    assert make_score_scale([0.5], [(0.4, 1.5), None]).high > 1.5  # an interval is not cut off


@pytest.mark.parametrize("most", [2, 4, 9])
def test_there_are_no_more_ticks_than_there_is_room_for(most: int) -> None:
    for scale in (Scale(0, 1), Scale(3, 8_000), Scale(1e-6, 1e6, log=True), Scale(12, 600, log=True)):
        assert 1 <= len(scale.list_ticks(most)) <= most + 1


def test_a_value_beyond_the_scale_stands_at_its_end() -> None:
    assert (Scale(0, 10).find_share(-5), Scale(0, 10).find_share(50)) == (0, 1)


def test_ticks_that_would_look_alike_have_more_digits() -> None:
    assert list(Axis("tokens", Scale(0, 1000), tokens).write_ticks().values()) == [
        "0",
        "200",
        "400",
        "600",
        "800",
        "1,000",
    ]
    assert list(Axis("tokens", Scale(0, 1), tokens).write_ticks().values()) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_the_title_says_that_an_axis_goes_by_powers_of_ten() -> None:
    assert Axis("cost", Scale(1, 100, log=True)).full_title == "cost (log scale)"
    assert Axis("cost", Scale(1, 100)).full_title == "cost"


def test_costs_begin_at_0_unless_they_differ_much() -> None:
    assert make_cost_scale([5, 10], wide=False).low == 0
    assert make_cost_scale([5, 10], wide=True).log
