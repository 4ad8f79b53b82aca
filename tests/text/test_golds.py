"""Gold answers, responses and evidence, in all the forms in which data carries them."""

from __future__ import annotations

from typing import Any

import pytest

from banks import each_case
from context_bench.text.golds import evidence_texts, gold_answers, response_text


@each_case(
    ("example", "golds"),
    [
        ({"answer": "Paris"}, [("Paris",)]),
        ({"answers": ["Paris", "Paname"]}, [("Paris",), ("Paname",)]),
        ({"answer": "x", "answers": ["Paris"]}, [("Paris",)]),
        ({"answer": "Paris", "answers": []}, [("Paris",)]),
        ({"answer": "Paris", "answers": None}, [("Paris",)]),
        ({"answer": ["1", "2"]}, [("1", "2")]),
        ({"answers": [["1", "2"], "both"]}, [("1", "2"), ("both",)]),
        ({"answers": ("a", "a", "b")}, [("a",), ("b",)]),
        ({"answer": 42}, [("42",)]),
        ({"answer": 0}, [("0",)]),
        ({"answer": False}, [("False",)]),
        ({"answers": ["", None, "  ", "a"]}, [("a",)]),
    ],
)
def test_every_accepted_answer(example: dict[str, Any], golds: list[tuple[str, ...]]) -> None:
    assert gold_answers(example) == golds


@pytest.mark.parametrize(
    "example", [{}, {"answer": None}, {"answer": ""}, {"answer": " \n"}, {"answer": []}, {"answers": [""]}]
)
def test_nothing_to_compare_with(example: dict[str, Any]) -> None:
    assert gold_answers(example) == []


@pytest.mark.parametrize(
    ("processed", "text"),
    [({"response": "x"}, "x"), ({}, ""), ({"response": None}, ""), ({"response": 5}, "5"), ({"response": ""}, "")],
)
def test_what_a_system_answered(processed: dict[str, Any], text: str) -> None:
    assert response_text(processed) == text


@pytest.mark.parametrize(
    ("evidence", "texts"),
    [
        (["beta"], ["beta"]),
        ([{"start": 6, "end": 10}], ["beta"]),
        ([[6, 10]], ["beta"]),
        ([(6, 10), "gamma"], ["beta", "gamma"]),
        ([{"start": 0, "end": 5, "text": "beta"}], ["beta"]),
        ([{"text": "beta"}], ["beta"]),
        (["", "  ", {"start": 5, "end": 6}], []),
        ([], []),
        (None, []),
    ],
)
def test_spans_in_every_form(evidence: Any, texts: list[str]) -> None:
    assert evidence_texts({"context": "alpha beta gamma", "evidence": evidence}) == texts


def test_no_evidence_at_all() -> None:
    assert evidence_texts({"context": "alpha"}) == []


def test_spans_count_characters_not_bytes() -> None:
    assert evidence_texts({"context": "héé 東京 x", "evidence": [[4, 6]]}) == ["東京"]
