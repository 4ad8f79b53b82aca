"""Dollars, and billed tokens for each counted one."""

from __future__ import annotations

import math

import pytest

from context_bench.metrics import BilledRatio, DollarCost
from context_bench.metrics.dollar_cost import DollarTally
from context_bench.results import EvalRow
from rows import failed_row, make_row, tapped_row

# -- dollar cost


EXACT = {"model": "m", "entry": "m", "how": "exact"}


def priced(cost: float, score: float = 1.0, **metadata: object) -> EvalRow:
    return make_row(score, metadata={"cost_usd": cost, **metadata})


def tally(*rows: EvalRow, priced_by: object = None) -> DollarTally:
    counted = DollarCost().start()
    for row in rows:
        counted.add(row)
    counted.bound({"priced_by": priced_by})
    return counted


def test_failures_are_on_the_bill() -> None:
    rows = [priced(0.01), priced(0.02, 0.1), failed_row(metadata={"cost_usd": 0.03}), priced(0.04, 0.7)]
    # 10 cents over four examples, two of which pass
    assert DollarCost().compute(rows) == {
        "cost_usd": pytest.approx(0.1),
        "cost_per_1k_usd": pytest.approx(25.0),
        "cost_of_pass_usd": pytest.approx(0.05),
    }
    assert DollarCost(threshold=0.9).compute(rows)["cost_of_pass_usd"] == pytest.approx(0.1)
    assert DollarCost().compute(rows[1:3])["cost_of_pass_usd"] == math.inf


def test_rows_without_a_cost_are_left_out_and_told() -> None:
    rows = [priced(0.02), make_row(1.0), failed_row()]
    assert DollarCost().compute(rows)["cost_per_1k_usd"] == pytest.approx(20.0)
    assert DollarCost().compute(rows)["cost_of_pass_usd"] == pytest.approx(0.02)
    told = "2 rows whose cost is not known are left out (1 of them failed)"  # a failed request may be billed too
    assert set(tally(*rows, priced_by=EXACT).notes().values()) == {told}
    assert set(tally(*rows[:2]).notes().values()) == {"1 row whose cost is not known is left out"}


def test_a_system_that_asks_nobody_has_no_cost() -> None:
    assert DollarCost().compute([make_row(1.0)]) == DollarCost().compute([]) == {}
    assert tally(make_row(1.0)).notes() == {}


def test_a_model_without_a_price_is_not_priced() -> None:
    unpriced = {"model": "mine", "entry": None}
    counted = tally(make_row(1.0))
    values = counted.result() | counted.bound({"priced_by": unpriced})
    assert set(values) == {"cost_usd", "cost_per_1k_usd", "cost_of_pass_usd"}
    assert all(map(math.isnan, values.values()))
    assert all(note.startswith("not priced: no price for 'mine'") for note in counted.notes().values())
    without_usage = tally(make_row(1.0), priced_by=EXACT).notes()
    assert without_usage["cost_usd"] == "not measured: the token usage of no row is known"


def test_the_entry_is_named_unless_it_is_the_very_model() -> None:
    assert tally(priced(0.01), priced_by=EXACT).notes() == {}
    other = {"model": "openai/m-2099-01-01", "entry": "m", "how": "without its provider and its date"}
    said = "openai/m-2099-01-01 priced as m (without its provider and its date)"
    assert tally(priced(0.01), priced_by=other).notes()["cost_of_pass_usd"] == said


def test_an_estimate_is_marked_as_one() -> None:
    notes = tally(priced(0.01), priced(0.01, cost_is_estimate=True), priced_by=EXACT).notes()
    assert notes["cost_usd"] == "an estimate: 1 of 2 rows by tokens that we counted, not billed"


def test_a_judge_stands_apart() -> None:
    asked = {"llm-judge": {"reply": "4", "model": "j"}}
    rows = [priced(0.01, judge_cost_usd=0.002, **asked), priced(0.01, judge_cost_usd=0.003, **asked)]
    values = DollarCost().compute(rows)
    assert (values["cost_usd"], values["judge_cost_usd"]) == (pytest.approx(0.02), pytest.approx(0.005))
    partly = tally(*rows, priced(0.01, **asked))
    assert partly.notes()["judge_cost_usd"].startswith("uncertain: not known for 1 of 3 ratings")
    unpriced = tally(priced(0.01, **asked))
    assert math.isnan(unpriced.result()["judge_cost_usd"])
    assert unpriced.notes()["judge_cost_usd"].startswith("not priced")
    not_asked = tally(priced(0.01, **{"llm-judge": {"rationale": "an empty answer, the judge was not asked"}}))
    assert "judge_cost_usd" not in not_asked.result()


def test_embeddings_stand_apart() -> None:
    used = {"embedding_usage": [{"model": "e", "prompt_tokens": 70}]}
    both = tally(priced(0.01, embedding_cost_usd=0.002, **used), priced(0.01, **used))
    values = both.result()
    assert (values["cost_usd"], values["embedding_cost_usd"]) == (pytest.approx(0.02), pytest.approx(0.002))
    assert both.notes()["embedding_cost_usd"] == "without 1 call for embeddings (e; 70 tokens) of unknown price"


def test_nothing_scored_is_not_that_nothing_passed() -> None:
    counted = tally(make_row(metadata={"cost_usd": 0.01}), priced_by=EXACT)
    assert set(counted.unmeasured()) == {"cost_of_pass_usd"}


# -- billed ratio


def test_least_squares_through_zero() -> None:
    rows = [
        tapped_row(100, upstream_calls=1, billed_prompt_tokens=110),
        tapped_row(200, upstream_calls=1, billed_prompt_tokens=240),
    ]
    # (110 x 100 + 240 x 200) / (100^2 + 200^2) = 59,000 / 50,000
    # left over: (110 - 118)^2 + (240 - 236)^2 = 80 of 110^2 + 240^2 = 69,700
    assert BilledRatio().compute(rows) == {
        "billed_to_counted": pytest.approx(1.18),
        "billed_to_counted_residual": pytest.approx(math.sqrt(80 / 69_700)),
        "billed_to_counted_rows": 2.0,
    }


def test_one_factor_leaves_nothing_over() -> None:
    rows = [tapped_row(tokens, upstream_calls=1, billed_prompt_tokens=tokens * 3) for tokens in (7, 10**9, 123)]
    values = BilledRatio().compute(rows)
    assert (values["billed_to_counted"], values["billed_to_counted_residual"]) == (3.0, 0.0)


def test_rows_that_know_both_alone_count() -> None:
    rows = [
        tapped_row(100, upstream_calls=1, prompt_tokens=999),  # the proxy's word
        tapped_row(None, upstream_calls=1, billed_prompt_tokens=110),
        tapped_row(0, upstream_calls=0, billed_prompt_tokens=0),
        failed_row(upstream_tokens=10, metadata={"billed_prompt_tokens": 11}),
        make_row(1.0, metadata={"prompt_tokens": 5}),
    ]
    assert BilledRatio().compute(rows) == BilledRatio().compute([]) == {}
    reader = make_row(1.0, upstream_tokens=50, metadata={"prompt_tokens": 60})
    assert BilledRatio().compute([*rows, reader])["billed_to_counted"] == pytest.approx(1.2)
