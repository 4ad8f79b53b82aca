"""HotpotQA's own measures: SQuAD's, but a yes or no is right or wrong."""

from __future__ import annotations

import pytest

from context_bench.evaluators import HotpotScore


@pytest.mark.parametrize(
    ("gold", "response", "em", "f1"),
    [
        ("the Mura", "The Mura.", 1.0, 1.0),
        ("the Mura", "river Mura", 0.0, 2 / 3),
        ("yes", "Yes!", 1.0, 1.0),
        ("yes", "yes they are", 0.0, 0.0),
        ("yes", "no", 0.0, 0.0),
        ("no man's land", "no", 0.0, 0.0),
        ("no man's land", "no land", 0.0, 0.8),
        ("noanswer", "no answer", 0.0, 0.0),
        ("Mura", "", 0.0, 0.0),
    ],
)
def test_an_answer(gold: str, response: str, em: float, f1: float) -> None:
    scores = HotpotScore().score({"answers": [gold]}, {"response": response})
    assert scores == {"hotpot_em": em, "hotpot_f1": pytest.approx(f1)}


def test_the_best_of_several_answers() -> None:
    assert HotpotScore().score({"answers": ["x", "yes"]}, {"response": "yes"}) == {"hotpot_em": 1.0, "hotpot_f1": 1.0}


def test_nothing_to_compare_with() -> None:
    scores = HotpotScore().score({}, {"response": "x"})
    assert scores == {}
    assert scores.reason == "no gold answer"  # type: ignore[attr-defined]
