"""The outcomes of a gate as JUnit XML, which CI servers show as tests: one for each system and condition."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from context_bench.gates import Outcome
from context_bench.stats import FAILS, TOO_FEW

__all__ = ["render_junit"]

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
