"""How an interval is written."""

from __future__ import annotations

import json
import math

import pytest

from context_bench.stats import ROUGH, TOO_FEW, Interval


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.7421, 0.701, 0.7812), "0.742 [0.70, 0.78]"),
        (Interval(0.7421, 0.7331, 0.7512), "0.742 [0.733, 0.751]"),  # two decimals would not tell the ends apart
        (Interval(0.5, 0.4, 0.6, symmetric=True), "0.500 ± 0.10"),
        (Interval(0.5, 0.4, 0.6, symmetric=True, mark=ROUGH), "0.500 ± 0.10 rough"),
        (Interval(0.5, 0.4, 0.6, mark=ROUGH), "0.500 [0.40, 0.60] rough"),
        (Interval(1.25, math.nan, math.nan, mark=TOO_FEW), "1.250 (too few)"),
        (Interval(math.nan, math.nan, math.nan), "not measured"),
        (Interval(1428.57, 893.2, 2285.1), "1428.6 [893, 2285]"),
        (Interval(142.857, 89.32, 228.51), "142.86 [89.3, 228.5]"),
        (Interval(-0.2, -0.2 - 3e-17, -0.2 + 3e-17), "-0.200 [-0.20, -0.20]"),  # no width but by rounding
        (Interval(1428.57, 1428.52, 1428.63), "1428.570 [1428.52, 1428.63]"),
    ],
)
def test_rendering(interval: Interval, text: str) -> None:
    assert interval.render() == text


@pytest.mark.parametrize(
    ("given", "held"),
    [
        ((-1.0, -0.994, -0.606), (-1.0, -1.0, -0.606)),
        ((0.97, 0.5, 0.9), (0.97, 0.5, 0.97)),
        ((0.5, 0.4, 0.6), (0.5, 0.4, 0.6)),
    ],
)
def test_the_estimate_is_never_outside(given: tuple[float, ...], held: tuple[float, ...]) -> None:
    interval = Interval(*given)
    assert (interval.value, interval.low, interval.high) == held
    turned = interval.subtract_from(1)
    assert turned.low <= turned.value <= turned.high


def test_no_limits_stay_none() -> None:
    interval = Interval(0.5, math.nan, math.nan)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert Interval(math.nan, 0.0, 1.0).low == 0


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.9374, 0.9374, 0.995), "0.937 [0.937, 0.995]"),  # not [0.94, 0.99]
        (Interval(0.9346, 0.85, 0.9346), "0.935 [0.850, 0.935]"),  # not [0.85, 0.93]
        (Interval(1428.6, 1428.6, 2285.1), "1428.60 [1428.6, 2285.1]"),
    ],
)
def test_it_is_not_outside_by_rounding(interval: Interval, text: str) -> None:
    assert interval.render() == text


def test_decimals_can_be_asked_for() -> None:
    assert Interval(1234.5, 1200.2, 1300.7).render(0) == "1234.5 [1200, 1301]"
    assert Interval(0.74213, 0.70111, 0.78122).render(4) == "0.7421 [0.7011, 0.7812]"


def test_savings_are_one_less_the_share_left() -> None:
    saved = Interval(0.3, 0.2, 0.45, n=7, method="jackknife").subtract_from(1)
    assert (saved.value, saved.low, saved.high) == pytest.approx((0.7, 0.55, 0.8))
    assert (saved.n, saved.method) == (7, "jackknife")


def test_another_unit() -> None:
    scaled = Interval(2.0, 1.0, 4.0).multiply(1000)
    assert (scaled.value, scaled.low, scaled.high) == (2000, 1000, 4000)


def test_json_has_null_for_what_is_not_a_number() -> None:
    data = json.loads(json.dumps(Interval(0.5, math.nan, math.inf, mark=TOO_FEW).to_dict(), allow_nan=False))
    assert (data["value"], data["low"], data["high"], data["mark"]) == (0.5, None, None, TOO_FEW)
