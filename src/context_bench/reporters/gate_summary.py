"""A summary in Markdown for a pull request or the page of a CI job: the table, and what the gate said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from context_bench.errors import printable
from context_bench.gates import Outcome, find_exit_code
from context_bench.reporters.plain_text import undo_escapes

__all__ = ["escape_markdown", "render_summary"]

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
