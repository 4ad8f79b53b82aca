"""What a row costs: by its bills, by its usage, by an estimate; and what its judge costs."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.pricing import Price, Prices, Tier, price_row

PRICES = Prices({"m": Price(1.0, 10.0, tiers=(Tier(1_000, Price(2.0, 20.0)),)), "judge": Price(3.0, 30.0, 0.3)})
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


def cost(metadata: dict[str, Any], upstream: int | None = None, model: str | None = "m") -> dict[str, Any]:
    return price_row(PRICES, model, metadata, upstream)


def test_without_a_tap_the_usage_that_came_back() -> None:
    assert cost(USAGE) == {"cost_usd": pytest.approx(200e-6)}
    assert cost({}) == cost(USAGE, model="other") == cost(USAGE, model=None) == {}


def test_with_a_tap_the_bills_of_all_calls() -> None:
    """A proxy that summarises first tells the usage of its last call alone."""
    metadata = {**USAGE, "upstream_calls": 2, "billed_usage": [{"prompt_tokens": 900, "completion_tokens": 50}, USAGE]}
    assert cost(metadata, 1_000) == {"cost_usd": pytest.approx((900 + 500 + 200) / 1e6)}


def test_each_call_has_a_tier_of_its_own() -> None:
    bills = [{"prompt_tokens": 900, "completion_tokens": 0}, {"prompt_tokens": 1_001, "completion_tokens": 1}]
    # 900 x 1, then 1,001 x 2 + 1 x 20
    assert cost({"upstream_calls": 2, "billed_usage": bills}) == {"cost_usd": pytest.approx((900 + 2_022) / 1e6)}


def test_a_cached_answer_costs_nothing() -> None:
    assert cost({**USAGE, "upstream_calls": 0, "billed_usage": []}, 0) == {"cost_usd": 0.0}


def test_with_a_tap_and_no_bill_an_estimate_that_says_so() -> None:
    metadata = {**USAGE, "upstream_calls": 1, "written_tokens": 7}
    assert cost(metadata, 80) == {"cost_usd": pytest.approx((80 + 70) / 1e6), "cost_is_estimate": True}
    assert cost({**metadata, "lost_upstream_tokens": 20}, 80)["cost_usd"] == pytest.approx((100 + 70) / 1e6)
    assert cost(metadata) == {}  # what reached the model is not known, and the proxy's word is not a bill
    assert cost({"upstream_calls": 1}, 80) == {}
    # a bill that tells no completion is not one
    partly = {**metadata, "billed_usage": [{"prompt_tokens": 95}]}
    assert cost(partly, 80) == cost(metadata, 80)


def test_an_estimate_of_two_calls_takes_each_for_half() -> None:
    metadata = {"upstream_calls": 2, "written_tokens": 4}
    # 2 x (600 x 1 + 2 x 10): neither call is likely to be above 1,000
    assert cost(metadata, 1_200)["cost_usd"] == pytest.approx(1_240e-6)


def test_a_reader_without_usage_is_estimated_too() -> None:
    found = cost({"response_tokens": 3}, 50)
    assert found == {"cost_usd": pytest.approx(80e-6), "cost_is_estimate": True}


def test_the_judge_stands_apart() -> None:
    judged = {"model": "judge", "rating": 4, "prompt_tokens": 200, "completion_tokens": 5, "cached_tokens": 100}
    # 100 x 3 + 100 x 0.3 + 5 x 30
    assert cost({**USAGE, "llm-judge": judged}) == {
        "cost_usd": pytest.approx(200e-6),
        "judge_cost_usd": pytest.approx(480e-6),
    }
    assert "judge_cost_usd" not in cost({**USAGE, "llm-judge": {**judged, "model": "other"}})
    assert "judge_cost_usd" not in cost({**USAGE, "llm-judge": {"model": "judge"}})
    assert "judge_cost_usd" not in cost({**USAGE, "llm-judge": "5"})
