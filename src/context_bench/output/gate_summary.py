"""Outcomes of a gate: as JUnit XML for CI servers, and as a Markdown summary for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from context_bench.compare.conditions import FAILS
from context_bench.compare.gates import Outcome, find_exit_code
from context_bench.errors import printable
from context_bench.output.layout import undo_escapes
from context_bench.stats import TOO_FEW

__all__ = ["escape_markdown", "render_junit", "render_summary"]


_ELEMENTS = {FAILS: "failure", TOO_FEW: "error"}
"""How an outcome that is not good is called; too few examples are an error, as nothing was found out."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold in any form."""


def render_junit(outcomes: Sequence[Outcome]) -> str:
    """Write the outcomes; text from systems and conditions is escaped."""
    failures = sum(each.outcome == FAILS for each in outcomes)
    errors = sum(each.outcome == TOO_FEW for each in outcomes)
    counts = f'tests="{len(outcomes)}" failures="{failures}" errors="{errors}" skipped="0"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="context-bench" {counts}>']
    lines.append(f'  <testsuite name="context-bench gate" {counts}>')
    for each in outcomes:
        lines += _render_case(each)
    return "\n".join([*lines, "  </testsuite>", "</testsuites>", ""])


def _render_case(outcome: Outcome) -> list[str]:
    case = f"    <testcase classname={_quote(outcome.system)} name={_quote(outcome.condition)}"
    kind = _ELEMENTS.get(outcome.outcome)
    if kind is None:
        return [f"{case}>", f"      <system-out>{escape(_clean(outcome.sentence))}</system-out>", "    </testcase>"]
    attributes = f"type={_quote(outcome.outcome)} message={_quote(outcome.sentence)}"
    return [f"{case}>", f"      <{kind} {attributes}/>", "    </testcase>"]


def _quote(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Replace what XML cannot hold; line breaks become spaces, as attributes have them."""
    return " ".join(_NOT_XML.sub("�", text).split())


_TITLES = {0: "The gate holds", 1: "The gate fails", 4: "Too few examples for the gate to tell"}

_ACTIVE = re.compile(r"[&<>\[\]*_`~$#!@]|\\(?!\|)|(?<=[a-zA-Z]):(?=//)")
"""Characters that Markdown or HTML may take for more than text; a colon before // would make a link."""


def escape_markdown(text: str) -> str:
    """Write text so that a page shows it as it is: names of systems and datasets come from data and servers."""
    return _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", text)


def render_summary(report: str, outcomes: Sequence[Outcome]) -> str:
    """Write the summary.

    Args:
        report: Tables in Markdown with lines of notes between them; all of it is escaped but the bars of the tables.
        outcomes: Of the gate; empty where there is none.
    """
    parts = ["## context-bench", *_separate_lines(report)]
    if outcomes:
        lines = [f"- **{each.outcome}**: {escape_markdown(printable(each.sentence))}" for each in outcomes]
        parts += [f"### {_TITLES[find_exit_code(outcomes)]}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _separate_lines(report: str) -> list[str]:
    """Make a paragraph of each line outside tables: Markdown would join them."""
    parts: list[str] = []
    for block in report.strip().split("\n\n"):
        escaped = escape_markdown(undo_escapes(block))
        if block.startswith("| "):
            parts.append(escaped)
        else:
            parts += escaped.splitlines()
    return parts
