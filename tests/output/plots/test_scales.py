"""Scales: where a value stands, and round ticks."""

from __future__ import annotations

import pytest

from context_bench.output.plots.scales import Scale, make_cost_scale, make_score_scale


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


def test_costs_begin_at_0_unless_they_differ_much() -> None:
    assert make_cost_scale([5, 10], wide=False).low == 0
    assert make_cost_scale([5, 10], wide=True).log
