"""DROP's scores: the cases of its official tests, worked out from the published rules."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.evaluators import DropScore
from context_bench.evaluators.official_short_context import drop_em_f1, normalize_span

DATA = os.environ.get("CONTEXT_BENCH_DATA")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The Green Bay Packers!", "green bay packers"),
        ("25", "25.0"),
        ("25.0", "25.0"),
        ("1,000", "1000.0"),
        ("$1.50", "150.0"),  # the dollar sign makes it no number, and then its stop is punctuation too
        ("twenty-five", "twenty five"),
        ("-5", "5.0"),
        ("an  a the", ""),
        ("5-yard TD", "5.0 yard td"),
    ],
)
def test_normalisation(text: str, expected: str) -> None:
    assert normalize_span(text) == expected


@each_case(
    ("prediction", "gold", "expected"),
    [
        (["John Elton"], ["Elton John"], (0.0, 1.0)),
        (["Green bay packers"], ["Green Bay packers", "Green Bay", "Green Bay"], (0.0, 0.33)),
        (["Green Bay", "Green Bay packers"], ["Green Bay packers", "Green Bay"], (1.0, 1.0)),
        (["Green Bay", "Green Bay"], ["Green Bay"], (0.0, 0.5)),
        (["Football and basketball"], ["Football", "basketball"], (0.0, 0.25)),
        (["Football", "basketball"], ["Football and basketball"], (0.0, 0.25)),
        (["4"], ["4.0"], (1.0, 1.0)),
        (["10 yards"], ["11 yards"], (0.0, 0.0)),
        (["10 feet"], ["10 yards"], (0.0, 0.5)),
        (["yards"], ["10 yards"], (0.0, 0.0)),
        ([""], ["x"], (0.0, 0.0)),
        ([], ["x"], (0.0, 0.0)),
    ],
)
def test_em_and_f1(prediction: list[str], gold: list[str], expected: tuple[float, float]) -> None:
    assert drop_em_f1(prediction, gold) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("example", "response", "expected"),
    [
        ({"answers": [["4"], ["four"]]}, "four", (1.0, 1.0)),
        ({"answers": [["Tom", "Ann"]]}, "Tom, Ann", (0.0, 0.33)),  # one predicted span: 2/3 for one of two golds
        ({"answers": [["Tom", "Ann"]]}, ["Ann", "Tom"], (1.0, 1.0)),
        ({"answer": "4"}, "<think>maybe 5</think>4", (1.0, 1.0)),
        ({"answer": "4"}, None, (0.0, 0.0)),
    ],
)
def test_scores(example: dict[str, Any], response: Any, expected: tuple[float, float]) -> None:
    scores = DropScore().score(example, {"response": response})
    assert (scores["drop_em"], scores["drop_f1"]) == expected


def test_without_a_gold_there_is_no_score() -> None:
    assert DropScore().score({"answers": [["", " "]]}, {"response": "4"}).reason == "no gold answer"  # type: ignore[attr-defined]


@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_real_golds_are_right_and_others_are_not() -> None:
    passages = json.loads((Path(str(DATA)) / "drop" / "drop_contrast_sets_test.json").read_text(encoding="utf-8"))
    spans = []
    for passage in passages.values():
        for pair in passage["qa_pairs"]:
            answer = pair["answer"]
            date = " ".join(part for part in answer.get("date", {}).values() if part)
            spans.append([str(answer["number"])] if answer.get("number") else answer.get("spans") or [date])
    assert len(spans) > 900
    scored = [DropScore().score({"answers": [gold]}, {"response": gold}) for gold in spans]
    assert all(score == {"drop_em": 1.0, "drop_f1": 1.0} for score in scored)
    assert not any(drop_em_f1(["zebra"], gold)[1] for gold in spans)
