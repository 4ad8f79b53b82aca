"""What was found, as a list to read or as JSON."""

from __future__ import annotations

import json
from typing import Any

from context_bench.conformance.check import Outcome
from context_bench.conformance.examination import Findings
from context_bench.errors import printable

__all__ = ["as_json", "as_table"]

_MARKS = {"pass": "✓", "fail": "✗", "skip": "–"}
_WIDTH, _BEFORE = 200, 40


def as_json(*several: Findings) -> str:
    """Everything, in full: an object for one proxy, a list of them for several."""
    documents = [_document(findings) for findings in several]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2, default=str) + "\n"


def _document(findings: Findings) -> dict[str, Any]:
    return {
        "proxy": findings.proxy,
        "api": findings.api,
        "passed": findings.count("pass"),
        "failed": findings.count("fail"),
        "skipped": findings.count("skip"),
        "checks": [outcome.as_dict() for outcome in findings.outcomes],
        "notes": findings.notes,
    }


def as_table(*several: Findings) -> str:
    """A line for each check; below a failed one what was sent and what arrived. One proxy after the other."""
    return "\n".join(_table(findings) for findings in several)


def _table(findings: Findings) -> str:
    width = max((len(outcome.name) for outcome in findings.outcomes), default=0)
    lines = [line for outcome in findings.outcomes for line in _lines(outcome, width)]
    lines.append("")
    lines += [f"note: {printable(note)}" for note in findings.notes]
    counts = f"{findings.count('pass')} passed, {findings.count('fail')} failed, {findings.count('skip')} skipped"
    lines.append(f"{printable(findings.proxy)} ({findings.api}): {counts}")
    return "\n".join(lines) + "\n"


def _lines(outcome: Outcome, width: int) -> list[str]:
    lines = [f"{_MARKS[outcome.status]} {outcome.name:<{width}}  {printable(outcome.reason)}".rstrip()]
    if outcome.status == "fail":
        sent, arrived = _text(outcome.sent), _text(outcome.arrived)
        start = _difference(sent, arrived)
        lines += [f"    sent:    {_window(sent, start)}", f"    arrived: {_window(arrived, start)}"]
    return lines


def _text(value: Any) -> str:
    """A value on one line."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text.encode("utf-8", "backslashreplace").decode())


def _difference(one: str, other: str) -> int:
    """Where two texts are worth reading: a little before they part, or at the beginning when they fit."""
    if max(len(one), len(other)) <= _WIDTH:
        return 0
    parts = next((place for place, (left, right) in enumerate(zip(one, other)) if left != right), 0)
    return max(0, parts - _BEFORE)


def _window(text: str, start: int) -> str:
    shown = text[start : start + _WIDTH]
    return f"{'… ' if start else ''}{shown}{' …' if start + _WIDTH < len(text) else ''}"
