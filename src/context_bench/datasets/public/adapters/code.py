"""Programs: a task, and the tests that a program must pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.datasets.public.adapters import Span, Where, make_span
from context_bench.types import Example

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


ISSUE = "issue"
_FILE = re.compile(r"^--- (?:a/)?([^\t\n]+)[^\n]*\n\+\+\+ [^\n]*\n", re.MULTILINE)


def swebench(record: Mapping[str, Any], where: Where) -> Iterator[Example]:
    """One issue; hints and the tests of the patch are never shown."""
    context = record["problem_statement"] if where.config == ISSUE else record["text"]
    yield {
        "id": record["instance_id"],
        "context": context,
        "question": f"Resolve the issue in the repository {record['repo']}.",
        "answer": record["patch"],
        "answers": [record["patch"]],
        "evidence": _find_evidence(context, _find_changes(record["patch"])),
        "meta": {key: record[key] for key in ("repo", "version", "difficulty") if key in record},
    }


def _find_changes(patch: str) -> dict[str, list[str]]:
    """The files that a patch changes, each with the lines that it takes away; files that it adds are not there yet."""
    _, *parts = _FILE.split(patch)
    return {
        path: [line[1:].strip() for line in body.splitlines() if line.startswith("-")]
        for path, body in zip(parts[::2], parts[1::2])
        if path != "/dev/null"
    }


def _find_evidence(context: str, changes: Mapping[str, list[str]]) -> list[Span]:
    """Find where the paths stand first, and after each the lines, in order."""
    spans: list[Span] = []
    for path, lines in changes.items():
        start = context.find(path)
        if start < 0:
            continue
        spans.append(make_span(context, start, start + len(path)))
        place = start + len(path)
        for line in filter(None, lines):
            found = context.find(line, place)
            if found >= 0:
                place = found + len(line)
                spans.append(make_span(context, found, place))
    return spans
