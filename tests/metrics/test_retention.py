"""Retention: where a system stands between a model without the context and one with all of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench.metrics import MeanScore, Retention
from context_bench.summary import summarize
from rows import make_row


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
