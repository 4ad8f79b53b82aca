"""Truncate: one stretch of the context, no longer than the budget."""

from __future__ import annotations

import random

import pytest

from context_bench import count_tokens, set_tokenizer
from context_bench.errors import UsageError
from context_bench.systems import Truncate


def _cut(text: str, **parameters: object) -> str:
    return Truncate(**parameters).process({"id": 1, "context": text})["context"]  # type: ignore[arg-type]


@pytest.mark.parametrize(("keep", "kept"), [("head", "0123"), ("tail", "6789"), ("middle", "3456")])
def test_each_stretch_by_hand(keep: str, kept: str) -> None:
    set_tokenizer(len)
    assert _cut("0123456789", budget=4, keep=keep) == kept
    assert _cut("0123456789", ratio=0.4, keep=keep) == kept


@pytest.mark.parametrize("keep", ["head", "tail", "middle"])
def test_the_edges(keep: str) -> None:
    assert _cut("", keep=keep) == ""
    assert _cut("hello world", budget=0, keep=keep) == ""
    assert _cut("hello world", ratio=0.0, keep=keep) == ""
    assert _cut("hello world", ratio=1.0, keep=keep) == "hello world"
    assert _cut("hello world", budget=10**6, keep=keep) == "hello world"


def test_by_default_the_first_half_stays() -> None:
    text = "one two three four five six seven eight"
    assert _cut(text) == "one two three four"


@pytest.mark.parametrize("keep", ["head", "tail", "middle"])
def test_the_budget_is_met_and_used_up(keep: str) -> None:
    rng = random.Random(0)
    words = ["alpha", "beta,", "gamma.", "Δέλτα", "東京", "🍕", "12345", "the\n\tof"]
    for _ in range(200):
        text = " ".join(rng.choices(words, k=rng.randint(1, 120)))
        budget = rng.randint(0, count_tokens(text))
        kept = _cut(text, budget=budget, keep=keep)
        assert kept in text
        # The last character may cost several tokens: at most those of one character are left over.
        assert budget - 6 <= count_tokens(kept) <= budget


def test_head_and_tail_are_what_they_say() -> None:
    text = "".join(f"{number} " for number in range(500))
    assert text.startswith(_cut(text, ratio=0.3))
    assert text.endswith(_cut(text, ratio=0.3, keep="tail"))


def test_a_wrong_stretch() -> None:
    with pytest.raises(UsageError, match=r"keep must be head, tail or middle \(got 'top'\)"):
        Truncate(keep="top")


def test_what_makes_a_difference_is_in_the_fingerprint() -> None:
    systems = [Truncate(), Truncate(0.3), Truncate(budget=3), Truncate(keep="tail"), Truncate(keep="middle")]
    assert len({system.fingerprint for system in systems}) == 5
