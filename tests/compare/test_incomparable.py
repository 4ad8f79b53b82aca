"""In what runs differ that a comparison takes for equal."""

from __future__ import annotations

from typing import Any

import pytest

from context_bench.compare.run_inputs import RunInput, find_differences

CONFIG: dict[str, Any] = {
    "version": "1.0",
    "tokenizer": "cl100k_base",
    "model": "gpt-4",
    "score_field": "score",
    "threshold": 0.7,
    "repeats": 1,
    "text_fields": None,
    "primary": {"d": "f1"},
    "sources": {"d": {"repository": "x/y", "revision": "abc"}},
    "evaluator_versions": {"answer-quality": "answer-quality/1"},
    "prices": {"date": "2026-01-01", "models": {"gpt-4": {"input": 1.0}}},
}


def _input(label: str, config: dict[str, Any], *, finished: bool = True) -> RunInput:
    return RunInput(label, ("s",), config, lambda: iter(()), finished=finished)


def _find(**changes: Any) -> list[str]:
    return find_differences(_input("B", {**CONFIG, **changes}), _input("A", CONFIG))


def test_equal_runs_differ_in_nothing() -> None:
    assert _find() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tokenizer": "o200k_base"},
            "B and A have different tokenizers (o200k_base; cl100k_base): token counts are not",
        ),
        ({"model": None}, "different models (none; gpt-4)"),
        ({"score_field": "f1"}, "different score fields (f1; score)"),
        ({"threshold": 0.5}, "different thresholds (0.5; 0.7)"),
        ({"repeats": 3}, "different numbers of repeats (3; 1)"),
        ({"primary": {"d": "contains", "e": "f1"}}, "different primary scores for d (contains; f1)"),
        (
            {"sources": {"d": {"repository": "x/y", "revision": "def"}}},
            "different data behind d (def; abc): the examples",
        ),
        ({"sources": {"d": {"repository": "x/z"}}}, "(repository x/z; repository x/y, revision abc): the examples"),
        ({"text_fields": ["a", "b"]}, "different text fields (a, b; none): token counts"),
        ({"evaluator_versions": {"answer-quality": "answer-quality/2"}}, "different versions of answer-quality: "),
        ({"prices": {"date": "2026-02-01", "models": {"gpt-4": {"input": 2.0}}}}, "different prices of gpt-4: dollars"),
    ],
)
def test_each_fact_has_one_sentence(changes: dict[str, Any], said: str) -> None:
    (sentence,) = _find(**changes)
    assert said in sentence


def _files(*digests: str, folder: str = "here") -> dict[str, Any]:
    return {"d": {"files": {f"{folder}/{place}.jsonl": f"sha256:{each * 32}" for place, each in enumerate(digests)}}}


def _find_by_files(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return find_differences(_input("B", {"sources": one}), _input("A", {"sources": other}))


def test_the_same_file_in_another_place_is_the_same_data() -> None:
    assert _find_by_files(_files("ab", "cd"), _files("ab", "cd", folder="there")) == []
    (sentence,) = _find_by_files(_files("ab"), _files("cd"))
    assert "different data behind d (sha256:abababababab…; sha256:cdcdcdcdcdcd…): the examples may differ" in sentence


def test_what_only_one_run_has_or_recorded_is_not_a_difference() -> None:
    assert _find(primary={"e": "f1"}, sources={}, prices={"date": "2030", "models": {"other": {}}}) == []
    assert find_differences(_input("B", {}), _input("A", {})) == []


def test_without_versions_of_evaluators_that_of_the_package_counts() -> None:
    (sentence,) = _find(version="2.0", evaluator_versions=None)
    assert "versions of context-bench (2.0; 1.0)" in sentence
    assert _find(evaluator_versions=None) == []
    assert _find(version="2.0") == []


def test_a_run_that_did_not_finish_is_named() -> None:
    (sentence,) = find_differences(_input("B", CONFIG, finished=False), _input("A", CONFIG))
    assert sentence.startswith("B is unfinished: ")
