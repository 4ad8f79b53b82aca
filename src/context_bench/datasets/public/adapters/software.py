"""SWE-bench: an issue, with code beside it in some configurations, and the patch that resolved it.

Repositories are not run. Evidence is what the patch touches, as far as the context shows it: the path of
each file, and the lines that it takes away.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from context_bench.datasets.public.adapters import Where
from context_bench.datasets.public.adapters.page import Span, make_span
from context_bench.types import Example

__all__ = ["swebench"]

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
