"""NoLiMa's four rules."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.evaluators import NoLiMaScore


@pytest.mark.parametrize(
    ("metric", "response", "expected"),
    [
        (None, "The character is Yuki.", 1.0),
        (None, "yuki", 0.0),
        ("contains", "Yuki\nno", 1.0),
        ("EM", " Yuki \n", 1.0),
        ("EM", "Yuki.", 0.0),
        ("lastline_contains", "Yuki?\nIt is Stuart.", 0.0),
        ("lastline_contains", "Stuart?\nIt is Yuki.\n", 1.0),
        ("lastline_EM", "Thinking\nYuki", 1.0),
        ("lastline_EM", "Yuki\nYes", 0.0),
        (None, "<think>Yuki</think>Stuart", 0.0),
        (None, None, 0.0),
    ],
)
def test_rules(metric: str | None, response: str | None, expected: float) -> None:
    example: dict[str, Any] = {"answer": "Yuki", "meta": {"metric": metric}}
    assert NoLiMaScore().score(example, {"response": response}) == {"nolima_score": expected}


def test_what_cannot_be_judged_has_a_reason() -> None:
    assert NoLiMaScore().score({}, {"response": "x"}).reason == "no gold answer"  # type: ignore[attr-defined]
    assert "'fuzzy'" in NoLiMaScore().score({"answer": "x", "meta": {"metric": "fuzzy"}}, {}).reason  # type: ignore[attr-defined]
