"""Budgets: a share of the tokens, or a number of them."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench import set_tokenizer
from context_bench.errors import UsageError
from context_bench.systems.reference import Budget


@pytest.mark.parametrize(("ratio", "tokens"), [(0.0, 0), (0.25, 2), (0.5, 5), (0.99, 9), (1.0, 10), (1, 10), (0, 0)])
def test_a_ratio_is_the_share_that_is_kept(ratio: float, tokens: int) -> None:
    set_tokenizer(len)
    assert Budget(ratio, None).tokens("0123456789") == tokens


def test_half_is_kept_when_nothing_is_said() -> None:
    set_tokenizer(len)
    assert Budget(None, None).tokens("0123456789") == 5
    assert Budget(None, None).tokens("") == 0


def test_a_number_of_tokens_holds_for_every_text() -> None:
    budget = Budget(None, 7)
    assert (budget.tokens(""), budget.tokens("x" * 1000)) == (7, 7)
    assert Budget(None, 0).tokens("abc") == 0


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan"), float("inf"), "0.5", True])
def test_a_wrong_ratio(ratio: Any) -> None:
    with pytest.raises(UsageError, match="ratio must be the share of tokens that is kept, from 0 to 1"):
        Budget(ratio, None)


@pytest.mark.parametrize("budget", [-1, float("nan"), "10", True, 10.5])
def test_a_wrong_budget(budget: Any) -> None:
    with pytest.raises(UsageError, match="budget must be a number of tokens"):
        Budget(None, budget)


def test_not_both() -> None:
    with pytest.raises(UsageError, match="pass a ratio or a budget, not both"):
        Budget(0.5, 10)


def test_budgets_that_differ_have_different_fingerprints() -> None:
    budgets = [Budget(None, None), Budget(0.4, None), Budget(None, 5), Budget(None, 0)]
    assert len({budget.fingerprint for budget in budgets}) == 4
    assert Budget(0.5, None).fingerprint == Budget(None, None).fingerprint
