"""Overlap with a reference, for one reply and for a conversation."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.evaluators import ReferenceOverlap


def _score(reference: Any, **processed: Any) -> float:
    return ReferenceOverlap().score({"reference": reference}, processed)["reference_overlap"]


def test_one_reply() -> None:
    assert _score("Boil it for eight minutes.", response="boil it for eight minutes") == 1.0
    # "boil it": two of two words against two of five.
    assert _score("Boil it for eight minutes.", response="Boil it") == pytest.approx(4 / 7)
    assert _score("Boil it", response="Fry them") == 0.0
    assert _score("Boil it", response="") == 0.0
    assert _score("Boil it", response=None) == 0.0


def test_each_turn_is_compared_with_its_own_reference() -> None:
    assert _score(["four", "eight"], response="eight", responses=["four", "eight"]) == 1.0
    assert _score(["four", "eight"], response="four", responses=["eight", "four"]) == 0.0
    assert _score(["four", "eight"], response="no", responses=["four", "no"]) == 0.5


def test_a_turn_without_a_reference_does_not_count() -> None:
    assert _score(["", "eight"], response="eight", responses=["what", "eight"]) == 1.0
    assert _score(["four", None], response="x", responses=["four", "x"]) == 1.0


def test_a_turn_without_a_reply_counts_as_wrong() -> None:
    assert _score(["four", "eight"], response="four", responses=["four"]) == 0.5
    # One reply to the whole conversation answers its last turn.
    assert _score(["four", "eight"], response="eight") == 0.5


@pytest.mark.parametrize("reference", [None, "", [], ["", ""], "東京"])
def test_without_a_reference_there_is_no_score(reference: Any) -> None:
    scores = ReferenceOverlap().score({"reference": reference}, {"response": "eight"})
    assert scores == {}
    assert scores.reason == "no reference"  # type: ignore[attr-defined]
