"""Programs: a task, and the tests that a program must pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.datasets.public.adapters import Where
from context_bench.types import Example

__all__ = ["humaneval", "mbpp"]

Record = Mapping[str, Any]

_MBPP_SPLITS = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}
"""The first and last `task_id` of each split; the authors' files hold all of them."""


def humaneval(record: Record, where: Where) -> Iterator[Example]:
    """The beginning of a function is the question; `prompt` tells the evaluator what a reply continues."""
    yield {
        "id": record["task_id"],
        "context": "",
        "question": record["prompt"],
        "prompt": record["prompt"],
        "test": record["test"],
        "entry_point": record["entry_point"],
        "reference": record["canonical_solution"],
    }


def mbpp(record: Record, where: Where) -> Iterator[Example]:
    """Both configurations. The tests are shown, since nothing else tells the name of the function."""
    first, last = _MBPP_SPLITS.get(where.split, (1, 974))
    if not first <= record["task_id"] <= last:
        return
    sanitized = "prompt" in record or where.config == "sanitized"
    tests = list(record["test_list"])
    task = record["prompt" if sanitized else "text"].strip()
    extra = {"test_imports": record["test_imports"]} if sanitized else {"test_setup_code": record["test_setup_code"]}
    yield {
        "id": record["task_id"],
        "context": "",
        "question": "\n".join([task, "", "The code must pass these tests:", *tests]),
        "test_list": tests,
        "reference": record["code"].replace("\r\n", "\n"),
        **{key: value for key, value in extra.items() if value},
    }
