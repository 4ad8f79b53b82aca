"""Who is the baseline, what is compared, and what of it goes to JSON and back."""

from __future__ import annotations

import math
from typing import Any

import pytest

from context_bench import evaluate
from context_bench.compare.pairing import read_value
from context_bench.compare.verdicts import (
    Comparison,
    DollarSaving,
    check_margin,
    choose_baseline,
    name_twin,
)
from context_bench.errors import UsageError
from context_bench.stats import Interval, NoiseFloor
from rows import failed_row, make_row


@pytest.mark.parametrize(
    ("systems", "controls", "expected"),
    [
        (["a", "passthrough", "direct"], [], "direct"),
        (["a", "passthrough"], [], "passthrough"),
        (["a", "b"], [], "a"),
        (["floor", "a", "b"], ["floor"], "a"),
        (["floor", "ceiling"], ["floor", "ceiling"], "floor"),
        (["a"], [], None),
        ([], [], None),
    ],
)
def test_the_usual_baseline(systems: list[str], controls: list[str], expected: str | None) -> None:
    assert choose_baseline(systems, None, controls) == expected


def test_the_baseline_that_was_asked_for() -> None:
    assert choose_baseline(["direct", "b"], "b") == "b"
    with pytest.raises(UsageError, match=r"^the baseline must be one of the systems a, b \(got 'c'\)$"):
        choose_baseline(["a", "b"], "c")


@pytest.mark.parametrize("margin", [0, 1, -0.1, math.nan])
def test_a_margin_that_cannot_be(margin: float) -> None:
    with pytest.raises(UsageError, match="the margin must be between 0 and 1"):
        check_margin(margin)


def test_what_is_read_off_a_row() -> None:
    row = make_row(scores={"score": 0.6, "f1": 0.4})
    assert read_value("score", "score", 0.7)(row) == read_value("macro_score", "score", 0.7)(row) == 0.6
    assert read_value("f1", "score", 0.7)(row) == read_value("score", "f1", 0.7)(row) == 0.4
    assert read_value("pass_rate", "score", 0.7)(row) == 0.0
    assert read_value("pass_rate", "score", 0.6)(row) == 1.0
    assert read_value("pass_rate", "score", 0.6)(failed_row()) is None


def test_a_comparison_goes_to_json_and_back() -> None:
    noise = NoiseFloor(40, 4, Interval(0.1, 0.04, 0.23, n=40), 0.08)
    unclaimed = DollarSaving(Interval(math.nan, math.nan, math.nan), 40, "not claimed: its quality is worse")
    whole = Comparison("a", "mean_score", 0.02, [], {"d": []}, ("a note",), noise, {"b": unclaimed})
    back = Comparison.from_dict(whole.to_dict())
    assert back.to_dict() == whole.to_dict()
    assert back.noise == noise
    assert math.isnan(back.savings["b"].per_1k.value)
    assert name_twin("a") == "a (again)"


def test_one_that_was_stored_before_there_was_noise_can_be_read() -> None:
    stored = Comparison("a", "mean_score", 0.02, []).to_dict()
    del stored["noise"], stored["savings"]
    assert Comparison.from_dict(stored) == Comparison("a", "mean_score", 0.02, [])


class _Lost:
    """Returns a context in which nothing of the example is left."""

    name = "lost"

    def process(self, example: dict[str, Any]) -> dict[str, Any]:
        return {"context": "I am sorry, the context was lost."}


def test_a_context_is_judged_by_whether_the_answer_is_left_in_it() -> None:
    """F1 of a whole context is near 0 for everybody: a system that loses all of it would be called equivalent."""
    filler = "x y z " * 60
    data = [{"id": n, "context": f"{filler}It is v{n}.", "question": "?", "answer": f"v{n}"} for n in range(200)]
    result = evaluate(["passthrough", _Lost()], data, progress=False)
    assert result.comparison is not None
    assert result.comparison.verdicts[0].word == "worse"
    assert result.summary["passthrough"]["mean_score"] == 1.0
    assert result.config["context_primary"] == {"": "answer_in_context"}
    asked = evaluate(["passthrough", _Lost()], data, score_field="f1", progress=False)
    assert asked.summary["passthrough"]["mean_score"] == pytest.approx(2 / 184)  # 183 words, of which one is the answer
