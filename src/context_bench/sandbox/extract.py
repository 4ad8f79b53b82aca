"""The code in a reply: what stands in fences, or else the reply itself, with and without the talk around it.

Only text is handled here. Which piece is the program is decided by parsing, and that happens inside the
sandbox, since hostile source can crash a parser.
"""

from __future__ import annotations

import re

__all__ = ["MAX_REPLY", "code_blocks"]

MAX_REPLY = 1_000_000
"""Replies longer than this many characters are not looked at."""

MAX_CUTS = 30
"""At how many paragraphs, from the end, an unfenced reply is cut in search of the end of its code."""

_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+#.-]*)")
_PYTHON = {"", "py", "py3", "python", "python3", "python2", "ipython", "code"}
_CODE_LINE = re.compile(r"(?:def|class|async def|import|from) |@\w")


def code_blocks(reply: str) -> list[str]:
    """Pieces of a reply that may be the program, the likeliest first; empty when there is no text.

    Of several fences the last comes first: what a model ends with is its answer.
    """
    if not reply.strip() or len(reply) > MAX_REPLY:
        return []
    fenced = _fenced(reply.splitlines())
    python = [text for language, text in fenced if language in _PYTHON]
    blocks = python or [text for _, text in fenced]
    return blocks[::-1] if blocks else _unfenced(reply.splitlines())


def _fenced(lines: list[str]) -> list[tuple[str, str]]:
    """Language and text of each fence that holds something; one that never closes runs to the end."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(lines):
        opening = _FENCE.match(lines[at])
        at += 1
        if not opening:
            continue
        margin, marks, language = opening.groups()
        start = at
        while at < len(lines) and not _closes(lines[at], marks):
            at += 1
        body = [line.removeprefix(margin) for line in lines[start:at]]
        if any(line.strip() for line in body):
            found.append((language.lower(), "\n".join(body) + "\n"))
        at += 1
    return found


def _closes(line: str, marks: str) -> bool:
    text = line.strip()
    return len(text) >= len(marks) and not text.strip(marks[0])


def _unfenced(lines: list[str]) -> list[str]:
    """The reply from its start and from its first line of code, whole and cut short at its paragraphs."""
    first = next((at for at, line in enumerate(lines) if _CODE_LINE.match(line)), 0)
    pieces: dict[str, None] = {}
    for start in dict.fromkeys((0, first)):
        ends = [len(lines), *(at for at in range(len(lines) - 1, start, -1) if not lines[at].strip())]
        for end in ends[: MAX_CUTS + 1]:
            if any(line.strip() for line in lines[start:end]):
                pieces["\n".join(lines[start:end]).strip("\n") + "\n"] = None
    return list(pieces)
