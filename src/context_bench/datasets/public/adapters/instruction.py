"""Following instructions and holding a conversation: what is asked, and what the checkers or a judge need."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from context_bench.datasets.public.adapters import Where
from context_bench.types import Example

Record = Mapping[str, Any]

_WITH_REFERENCE = {"math", "reasoning", "coding"}
"""The categories whose answers can be right or wrong: MT-Bench's judge is shown a reference for these alone."""

_TEMPERATURE = {"writing": 0.7, "roleplay": 0.7, "stem": 0.1, "humanities": 0.1}


def ifeval(record: Record, where: Where) -> Iterator[Example]:
    """The hub's table pads the arguments of each instruction with nulls, which mean absent."""
    arguments = [{key: value for key, value in each.items() if value is not None} for each in record["kwargs"]]
    yield {
        "id": record["key"],
        "context": "",
        "question": record["prompt"],
        "instruction_id_list": list(record["instruction_id_list"]),
        "kwargs": arguments,
        "meta": {"weight": len(arguments)},  # instruction-level accuracy counts instructions, not prompts
    }


def alpaca_eval(record: Record, where: Where) -> Iterator[Example]:
    """The baseline's answer is what a reply is compared with, and no gold answer."""
    yield {
        "id": f"alpaca-eval-{where.index}",
        "context": "",
        "question": record["instruction"],
        "reference": record["output"],
        "meta": {"source": record["dataset"], "baseline": record["generator"]},
    }


def mt_bench(record: Record, where: Where) -> Iterator[Example]:
    """Two user messages, the second asked after the first is answered; the columns of three layouts."""
    prompts = "prompt" in record or "prompt_id" in record
    messages = record["prompt" if prompts else "turns"]
    category = record["category"]
    example: Example = {
        "id": record["prompt_id" if prompts else "question_id"],
        "context": "",
        "turns": [{"role": "user", "content": message} for message in messages],
        "meta": {"category": category, "temperature": _TEMPERATURE.get(category, 0.0)},
    }
    references = [text or "" for text in record["reference"] or ()]
    if category in _WITH_REFERENCE and any(text.strip() for text in references):
        example["reference"] = references
        example["answers"] = [references]  # one answer in two parts, one for each turn
    yield example


def mt_bench_files(paths: list[Path]) -> Iterator[Record]:
    """The authors' questions, with GPT-4's answers as references where their file is there."""
    questions: list[dict[str, Any]] = []
    answers: dict[Any, list[str]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if "choices" in record:
                answers[record["question_id"]] = record["choices"][0]["turns"]
            else:
                questions.append(record)
    for question in questions:
        own = question.get("reference")
        yield {**question, "reference": answers.get(question.get("question_id"), own)}
