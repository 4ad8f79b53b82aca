"""MRCR, with ratios worked out by hand: twice the matching characters over all of them."""

from __future__ import annotations

import pytest

from context_bench.evaluators import MRCRScore

EXAMPLE = {"answer": "pXabcd", "meta": {"prefix": "pX"}}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("pXabcd", 1.0),
        ("pXab", 2 * 2 / 6),
        ("pXwxyz", 0.0),
        ("abcd", 0.0),
        (" pXabcd", 0.0),
        ("<think>which?</think>\npXabcd", 1.0),
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_by_hand(response: str | None, expected: float) -> None:
    assert MRCRScore().score(EXAMPLE, {"response": response}) == pytest.approx({"mrcr_score": expected})


def test_nothing_to_judge() -> None:
    assert MRCRScore().score({"answer": "x"}, {"response": "x"}).reason == "no meta.prefix"  # type: ignore[attr-defined]
    assert MRCRScore().score({"meta": {"prefix": "p"}}, {"response": "x"}).reason == "no gold answer"  # type: ignore[attr-defined]
