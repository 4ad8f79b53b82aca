"""IFEval as published and in two numbers: real prompts, the eight readings, the ratio of sums."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

from context_bench.evaluators import IFEvalChecker, IFEvalOfficial
from context_bench.evaluators.ifeval import list_relaxed

DATA = os.environ.get("CONTEXT_BENCH_DATA")
COMMA_AND_HELLO = {
    "instruction_id_list": ["punctuation:no_comma", "keywords:existence"],
    "kwargs": [{}, {"keywords": ["hello"]}],
}
LANGUAGE = ("change_case:english", "language:")


def test_the_documented_sample() -> None:
    scores = IFEvalChecker().score(COMMA_AND_HELLO, {"response": "hello world"})
    assert scores == {"ifeval_strict": 1.0, "ifeval_loose": 1.0}


@pytest.mark.parametrize(
    ("reply", "strict", "loose"),
    [("hello x. world", 1.0, 1.0), ("hello, x world", 0.0, 1.0), ("x, y", 0.0, 0.0), ("", 0.0, 0.0)],
)
def test_loose_means_more_than_half(reply: str, strict: float, loose: float) -> None:
    example = {
        "instruction_id_list": ["punctuation:no_comma", "keywords:existence", "keywords:existence"],
        "kwargs": [{}, {"keywords": ["hello"]}, {"keywords": ["world"]}],
    }
    assert IFEvalChecker().score(example, {"response": reply}) == {"ifeval_strict": strict, "ifeval_loose": loose}


def test_half_is_no_majority() -> None:
    assert IFEvalChecker().score(COMMA_AND_HELLO, {"response": "hello, you"})["ifeval_loose"] == 0.0


@pytest.mark.parametrize("evaluator", [IFEvalChecker(), IFEvalOfficial()])
def test_without_instructions_there_is_no_score(evaluator: Any) -> None:
    for example in ({}, {"instruction_id_list": None}, {"instruction_id_list": []}):
        scores = evaluator.score(example, {"response": "x"})
        assert scores == {}
        assert scores.reason == "no instruction_id_list"


def test_eight_readings() -> None:
    readings = [" *a*\n*b*\nc ", *list_relaxed(" *a*\n*b*\nc ")]
    assert readings == [" *a*\n*b*\nc ", " a\nb\nc ", "*b*\nc", "*a*\n*b*", "*b*", "b\nc", "a\nb", "b"]


def test_loose_forgives_what_stands_around_the_answer() -> None:
    reply = "Sure, here you are:\nhello world\nBye, now!"
    scores = IFEvalOfficial().score(COMMA_AND_HELLO, {"response": reply})
    assert scores == {
        "ifeval_prompt_strict": 0.0,
        "ifeval_prompt_loose": 1.0,
        "ifeval_inst_strict": 0.5,
        "ifeval_inst_loose": 1.0,
    }
    assert scores.details == {  # type: ignore[attr-defined]
        "strict": {"followed": 1, "total": 2},
        "loose": {"followed": 2, "total": 2},
        "failed": ["punctuation:no_comma"],
    }


def test_readings_are_taken_for_each_instruction_alone() -> None:
    # No single reading has both, but each instruction has one: that is the published rule.
    example = {
        "instruction_id_list": ["startend:quotation", "detectable_format:number_highlighted_sections"],
        "kwargs": [{}, {"num_highlights": 1}],
    }
    scores = IFEvalOfficial().score(example, {"response": '*see*\n"quoted"'})
    assert scores["ifeval_prompt_loose"] == 1.0
    assert scores["ifeval_prompt_strict"] == 0.0


def test_an_empty_reading_never_follows() -> None:
    example = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    scores = IFEvalOfficial().score(example, {"response": "one, line"})  # without its first line nothing is left
    assert set(scores.values()) == {0.0}


def test_arguments_padded_with_nulls() -> None:
    names = ("keywords", "num_words", "relation", "language", "letter", "section_spliter", "prompt_to_repeat")
    padded = [{name: given.get(name) for name in names} for given in COMMA_AND_HELLO["kwargs"]]  # type: ignore[attr-defined]
    example = {**COMMA_AND_HELLO, "kwargs": padded}
    assert IFEvalChecker().score(example, {"response": "hello"})["ifeval_strict"] == 1.0


def records() -> list[dict[str, Any]]:
    with (Path(str(DATA)) / "ifeval" / "input_data.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.long
@pytest.mark.skipif(not DATA, reason="CONTEXT_BENCH_DATA is not set")
def test_all_real_prompts_run() -> None:
    prompts = records()
    assert len(prompts) == 541
    assert sum(len(prompt["instruction_id_list"]) for prompt in prompts) == 834
    with_langdetect = importlib.util.find_spec("langdetect") is not None
    for prompt in prompts:
        assert set(IFEvalOfficial().score(prompt, {"response": ""}).values()) == {0.0}
        names = prompt["instruction_id_list"]
        if with_langdetect or not any(name.startswith(LANGUAGE) for name in names):
            for reply in ("Plain words.", f"{prompt['prompt']}\n\nHere, *is* [a] <<title>>.\nP.S. Bye!"):
                scores = IFEvalOfficial().score(prompt, {"response": reply})
                assert scores["ifeval_inst_strict"] <= scores["ifeval_inst_loose"]
                assert (
                    scores["ifeval_prompt_strict"]
                    == IFEvalChecker().score(prompt, {"response": reply})["ifeval_strict"]
                )
