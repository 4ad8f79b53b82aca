"""What a request costs by its usage, worked out by hand from prices that providers publish; and what a row costs."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.pricing import Price, Prices, Tier, price_row
from context_bench.wire.anthropic_messages import read_anthropic_usage
from context_bench.wire.openai_chat import read_openai_usage

SONNET = Price(input=3.0, output=15.0, cached_input=0.3, cache_write_5m=3.75, cache_write_1h=6.0)
GPT_4O = Price(input=2.5, output=10.0, cached_input=1.25)
GEMINI = Price(1.25, 10.0, 0.125, tiers=(Tier(200_000, Price(2.5, 15.0, 0.25)),))
GPT_5_4 = Price(2.5, 15.0, 0.25, tiers=(Tier(272_000, Price(5.0, 22.5, 0.5)),))


def test_anthropic_writes_to_its_cache_at_two_prices() -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 100},
        "cache_read_input_tokens": 3_000,
        "output_tokens": 7,
    }
    # 10 x 3 + 200 x 3.75 + 100 x 6 + 3,000 x 0.3 + 7 x 15 = 30 + 750 + 600 + 900 + 105
    assert SONNET.cost(read_anthropic_usage(usage)) == pytest.approx(2_385e-6)
    del usage["cache_creation"]  # without it all 300 are for five minutes, the default: 1,125 instead of 1,350
    assert SONNET.cost(read_anthropic_usage(usage)) == pytest.approx(2_160e-6)


def test_openai_counts_cached_tokens_within_the_prompt() -> None:
    usage = {"prompt_tokens": 1_000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": 600}}
    # 400 x 2.5 + 600 x 1.25 + 200 x 10
    assert GPT_4O.cost(read_openai_usage(usage)) == pytest.approx(3_750e-6)


def test_a_gateway_tells_cache_writes_in_the_form_of_openai() -> None:
    details = {"cached_tokens": 3_000, "cache_creation_tokens": 200}
    usage = {"prompt_tokens": 3_210, "completion_tokens": 7, "prompt_tokens_details": details}
    # 10 x 3 + 200 x 3.75 + 3,000 x 0.3 + 7 x 15
    assert SONNET.cost(read_openai_usage(usage)) == pytest.approx(1_785e-6)


@pytest.mark.parametrize(
    ("price", "prompt", "cached", "completion", "dollars"),
    [
        (GEMINI, 200_000, 0, 1_000, 0.26),  # 200,000 x 1.25 + 1,000 x 10: the limit itself is below it
        (GEMINI, 200_001, 0, 1_000, 0.5150025),  # 200,001 x 2.5 + 1,000 x 15: all tokens, not those above it
        (GPT_5_4, 272_000, 0, 10, 0.68015),  # 272,000 x 2.5 + 10 x 15
        (GPT_5_4, 272_001, 100_000, 10, 0.91023),  # 172,001 x 5 + 100,000 x 0.5 + 10 x 22.5: cached tokens count too
    ],
)
def test_a_long_prompt_has_other_prices(
    price: Price, prompt: int, cached: int, completion: int, dollars: float
) -> None:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached}
    assert price.cost(usage) == pytest.approx(dollars)


def test_the_highest_tier_that_is_reached_counts() -> None:
    price = Price(1.0, 0.0, tiers=(Tier(272_000, Price(3.0, 0.0)), Tier(200_000, Price(2.0, 0.0))))
    assert [price.dollars(tokens, 0) for tokens in (100_000, 250_000, 300_000)] == pytest.approx([0.1, 0.5, 0.9])


def test_each_turn_of_a_conversation_is_a_request_of_its_own() -> None:
    turn = {"prompt_tokens": 150_000, "completion_tokens": 100}
    usage = {"prompt_tokens": 300_000, "completion_tokens": 200, "turn_usage": [turn, turn]}
    # 2 x (150,000 x 1.25 + 100 x 10): neither prompt is above 200,000
    assert GEMINI.cost(usage) == pytest.approx(0.377)
    assert GEMINI.cost({**usage, "turn_usage": [turn, {}]}) is None
    assert GEMINI.cost({**turn, "turn_usage": "many"}) == pytest.approx(0.1885)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        # what cannot be is cut: no more is written than was not read, and for an hour no more than was written
        ({"cached_tokens": 90, "cache_creation_tokens": 90}, 90 * 0.3 + 10 * 3.75),
        ({"cache_creation_tokens": 40, "cache_creation_1h_tokens": 90}, 60 * 3.0 + 40 * 6.0),
        ({"cache_creation_tokens": -5, "cached_tokens": "all"}, 100 * 3.0),
    ],
)
def test_counts_that_do_not_add_up(usage: dict[str, Any], dollars: float) -> None:
    assert SONNET.cost({"prompt_tokens": 100, "completion_tokens": 0, **usage}) == pytest.approx(dollars / 1e6)


def test_prices_that_are_not_given() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 0, "cached_tokens": 10}
    usage |= {"cache_creation_tokens": 50, "cache_creation_1h_tokens": 20}
    assert Price(2.0, 1.0).cost(usage) == pytest.approx(100 * 2.0 / 1e6)
    # an hour costs what five minutes do
    assert Price(2.0, 1.0, cache_write_5m=3.0).cost(usage) == pytest.approx((50 * 2.0 + 50 * 3.0) / 1e6)


CACHED_USAGE = {"prompt_tokens": 1_000, "completion_tokens": 200, "cached_tokens": 600}


def test_cached_input_has_a_price_of_its_own() -> None:
    # 400 x 2 + 600 x 0.5 + 200 x 10 = 3,100 dollars for a million such requests' tokens
    assert Price(2.0, 10.0, 0.5).cost(CACHED_USAGE) == pytest.approx(3_100 / 1e6)
    assert Price(2.0, 10.0).cost(CACHED_USAGE) == pytest.approx((1_000 * 2 + 200 * 10) / 1e6)
    assert Price(2.0, 10.0, 0.0).cost(CACHED_USAGE) == pytest.approx((400 * 2 + 200 * 10) / 1e6)


def test_a_conversation_reads_from_the_cache_what_it_repeats() -> None:
    # The third request changes the history at its 1,500th token.
    turns = [(2_000, 0, 10), (3_000, 2_000, 10), (4_000, 1_500, 10), (5_000, 4_000, 10)]
    # Breakpoints stand at the ends of requests: 0, 2,000, 0 and 4,000 are read, all else is written.
    assert SONNET.adjust(turns) == pytest.approx((6_000 * 0.3 + 8_000 * 3.75 + 40 * 15) / 1e6)
    # In steps of 128: 0, 1,920, 1,408 and 3,968 are read.
    assert GPT_4O.adjust(turns) == pytest.approx((7_296 * 1.25 + 6_704 * 2.5 + 40 * 10) / 1e6)
    assert Price(2.5, 10.0, 1.25, cache_minimum=2_048).adjust(turns) == pytest.approx(
        (3_968 * 1.25 + 10_032 * 2.5 + 40 * 10) / 1e6
    )


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({}, None),
        ({"prompt_tokens": 10}, None),
        ({"prompt_tokens": None, "completion_tokens": 1}, None),
        ({"prompt_tokens": "10", "completion_tokens": 1}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, 0.0),
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": None}, 11e-6),
        # More cached than sent cannot be: no more than all of it is cached.
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": 99}, 6e-6),
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": "many"}, 11e-6),
        ({"prompt_tokens": 10, "completion_tokens": 1, "cached_tokens": -5}, 11e-6),
    ],
)
def test_what_servers_report(usage: dict[str, Any], cost: float | None) -> None:
    found = Price(1.0, 1.0, 0.5).cost(usage)
    assert found == (None if cost is None else pytest.approx(cost))


PRICES = Prices({"m": Price(1.0, 10.0, tiers=(Tier(1_000, Price(2.0, 20.0)),)), "judge": Price(3.0, 30.0, 0.3)})
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}


def cost(metadata: dict[str, Any], upstream: int | None = None, model: str | None = "m") -> dict[str, Any]:
    return price_row(PRICES, PRICES.of(model), metadata, upstream)


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


def test_embeddings_have_the_price_of_their_own_model() -> None:
    used = [{"model": "judge", "prompt_tokens": 100}, {"model": "m", "prompt_tokens": 2_000}]
    # 100 x 3, and 2,000 x 2 in the tier above 1,000
    assert cost({"embedding_usage": used}) == {"embedding_cost_usd": pytest.approx(4_300e-6)}
    for unknown in ({"model": "other", "prompt_tokens": 1}, {"model": "m", "prompt_tokens": None}):
        assert cost({"embedding_usage": [*used, unknown]}) == {}
