"""Replies as language models write them, each with the verdict a careful reader would give.

The cases live in ``replies/*.jsonl``, one per line: ``example``, ``response``, ``expected`` (0 or 1) and ``why``.
They were written without sight of the extractors; those of ``*_holdout.jsonl``, the last 39 of math_today and the last
25 of code_today were written after the extractors, and run only when all of them were written.

Those of ``*_blind.jsonl`` were all written before they were run, and before the rules were read again. At first 81.8%
(math), 73.1% (code) and 100% (qa) of the replies were read as a person would. Those of ``*_blind_holdout.jsonl`` were
run once the rules had been mended: at first 87.5% (math), 100% (code) and 100% (qa). Those of ``*_blind_later.jsonl``
were written by another person: at first 81.6% (math) and 97.7% (code). Five more math replies are not kept, as nobody
can read them without the question ("Anna is 11 now, and in 5 years she will be 16"); the sixth has its gold in words.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from banks import each_case
from context_bench.errors import UsageError
from context_bench.registry import registry
from context_bench.sandbox import find_isolation

REPLIES = Path(__file__).parent / "replies"


def cases(name: str) -> list[Any]:
    path = REPLIES / name
    with path.open(encoding="utf-8") as lines:
        return [
            pytest.param(json.loads(line), id=f"{path.stem}-{number}")
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]


def check(evaluator: str, key: str, case: dict[str, Any]) -> None:
    scores = registry.get("evaluator", evaluator)().score(case["example"], {"response": case["response"]})
    assert scores[key] == case["expected"], (
        f"{case['why']}: {case['example']!r} with reply {case['response']!r} "
        f"scored {scores[key]}, expected {case['expected']}"
    )


@each_case(
    "case",
    [*cases("multiple_choice.jsonl"), *cases("multiple_choice_today.jsonl"), *cases("multiple_choice_holdout.jsonl")],
)
def test_multiple_choice(case: dict[str, Any]) -> None:
    check("multiple-choice-accuracy", "mc_accuracy", case)


@pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None,
    reason="the optional package math_verify is not installed",
)
@each_case("case", cases("math.jsonl"))
def test_math(case: dict[str, Any]) -> None:
    check("math-equivalence", "math_equiv", case)


@each_case("case", [*cases("nli.jsonl"), *cases("nli_today.jsonl"), *cases("nli_holdout.jsonl")])
def test_nli(case: dict[str, Any]) -> None:
    check("nli-label-match", "nli_accuracy", case)


@pytest.mark.skipif(
    importlib.util.find_spec("math_verify") is None,
    reason="the optional package math_verify is not installed",
)
@each_case(
    "case",
    [
        *cases("math_today.jsonl"),
        *cases("math_blind.jsonl"),
        *cases("math_blind_holdout.jsonl"),
        *cases("math_blind_later.jsonl"),
    ],
)
def test_math_today(case: dict[str, Any]) -> None:
    check("math-equivalence", "math_equiv", case)


def missing_sandbox() -> str:
    try:
        find_isolation("auto")
    except UsageError as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(missing_sandbox()), reason=missing_sandbox())
@pytest.mark.parametrize(
    "case",
    [
        *cases("code_today.jsonl"),
        *cases("code_blind.jsonl"),
        *cases("code_blind_holdout.jsonl"),
        *cases("code_blind_later.jsonl"),
    ],
)
def test_code_today(case: dict[str, Any]) -> None:
    check("code-execution", "pass_at_1", case)


@each_case("case", [*cases("qa_blind.jsonl"), *cases("qa_blind_holdout.jsonl")])
def test_qa(case: dict[str, Any]) -> None:
    check("answer-quality", "contains", case)
