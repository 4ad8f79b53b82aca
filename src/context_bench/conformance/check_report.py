"""Renders findings, as a list to read or as JSON."""

from __future__ import annotations

import json
from typing import Any

from context_bench.conformance.check_definition import Outcome
from context_bench.conformance.examination import Findings
from context_bench.errors import printable

__all__ = ["render_json", "render_table"]

_MARKS = {"pass": "✓", "fail": "✗", "skip": "–"}
_WIDTH, _BEFORE = 200, 40


def render_json(*several: Findings) -> str:
    """Render everything as JSON: an object for one proxy, a list of them for several."""
    documents = [_build_document(findings) for findings in several]
    return json.dumps(documents[0] if len(documents) == 1 else documents, indent=2, default=str) + "\n"


def _build_document(findings: Findings) -> dict[str, Any]:
    return {
        "proxy": findings.proxy,
        "api": findings.api,
        "passed": findings.count("pass"),
        "failed": findings.count("fail"),
        "skipped": findings.count("skip"),
        "checks": [outcome.to_dict() for outcome in findings.outcomes],
        "notes": findings.notes,
    }


def render_table(*several: Findings) -> str:
    """Render a line for each check, and below a failed one what was sent and what arrived, proxy by proxy."""
    return "\n".join(_render_findings(findings) for findings in several)


def _render_findings(findings: Findings) -> str:
    width = max((len(outcome.name) for outcome in findings.outcomes), default=0)
    lines = [line for outcome in findings.outcomes for line in _render_outcome(outcome, width)]
    lines.append("")
    lines += [f"note: {printable(note)}" for note in findings.notes]
    counts = f"{findings.count('pass')} passed, {findings.count('fail')} failed, {findings.count('skip')} skipped"
    lines.append(f"{printable(findings.proxy)} ({findings.api}): {counts}")
    return "\n".join(lines) + "\n"


def _render_outcome(outcome: Outcome, width: int) -> list[str]:
    lines = [f"{_MARKS[outcome.status]} {outcome.name:<{width}}  {printable(outcome.reason)}".rstrip()]
    if outcome.status == "fail":
        sent, arrived = _flatten(outcome.sent), _flatten(outcome.arrived)
        start = _find_difference(sent, arrived)
        lines += [f"    sent:    {_cut_window(sent, start)}", f"    arrived: {_cut_window(arrived, start)}"]
    return lines


def _flatten(value: Any) -> str:
    """Write a value on one line."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return printable(text.encode("utf-8", "backslashreplace").decode())


def _find_difference(one: str, other: str) -> int:
    """Find where to begin showing two texts: a little before they differ, or at the start when they fit."""
    if max(len(one), len(other)) <= _WIDTH:
        return 0
    parts = next((place for place, (left, right) in enumerate(zip(one, other)) if left != right), 0)
    return max(0, parts - _BEFORE)


def _cut_window(text: str, start: int) -> str:
    shown = text[start : start + _WIDTH]
    return f"{'… ' if start else ''}{shown}{' …' if start + _WIDTH < len(text) else ''}"
