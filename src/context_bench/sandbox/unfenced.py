"""Finds code in a reply without fences: which lines may be its first and its last."""

from __future__ import annotations

import re

__all__ = ["MAX_CUTS", "find_indented_code", "find_inline_code", "find_paragraphs"]

MAX_CUTS = 30
"""At how many paragraphs, from the end, a text is cut in search of the end of its code."""

_CODE_LINE = re.compile(r"(?:def|class|async def|import|from) |@\w|[A-Za-z_]\w* = lambda\b|>>> ")
_MODULE_LINE = re.compile(
    r"""\s*$|\s+\S|\#|[)\]}]|['"]{3}|[A-Za-z_][\w.\[\]'"]*(?:,\s*[A-Za-z_]\w*)*\s*(?::[^=]{1,80})?[-+*/|&]?=(?!=)"""
    r"|(?:if|try|except|for|with|else|import|from)\b.*:?$"
)
_INLINE = re.compile(r"(?<!`)`((?:async def|def|class) [^`\n]+|[A-Za-z_]\w* = lambda [^`\n]+)`(?!`)")
_INDENTED = re.compile(r"(?: {4}|\t)")
_INDENTED_CODE = re.compile(r"(?: {4}|\t)\s*(?:def|class|async def) \w")


def find_paragraphs(lines: list[str]) -> list[str]:
    """Return the text from its start, from its first line of code, and from the module's lines before that.

    Each is given whole and cut short at its paragraphs.
    """
    first = next((at for at, line in enumerate(lines) if _CODE_LINE.match(line)), 0)
    pieces: dict[str, None] = {}
    for start in dict.fromkeys((0, _find_module_start(lines, first), first)):
        ends = [len(lines), *(at for at in range(len(lines) - 1, start, -1) if not lines[at].strip())]
        for end in ends[: MAX_CUTS + 1]:
            if any(line.strip() for line in lines[start:end]):
                pieces["\n".join(lines[start:end]).strip("\n") + "\n"] = None
    return list(pieces)


def _find_module_start(lines: list[str], first: int) -> int:
    """Find where the constants and comments begin that stand right before the first line of code."""
    start = first
    while start > 0 and _MODULE_LINE.match(lines[start - 1]):
        start -= 1
    while start < first and not lines[start].strip():
        start += 1
    return start


def find_indented_code(lines: list[str]) -> list[str]:
    """Return the last lines that Markdown takes for code because they are indented, moved to the margin."""
    at = next((at for at in range(len(lines) - 1, -1, -1) if _INDENTED_CODE.match(lines[at])), None)
    if at is None:
        return []
    start, end = at, at
    while start > 0 and (not lines[start - 1].strip() or _INDENTED.match(lines[start - 1])):
        start -= 1
    while end < len(lines) and (not lines[end].strip() or _INDENTED.match(lines[end])):
        end += 1
    stretch = [line.expandtabs(4) for line in lines[start:end]]
    margin = min(len(line) - len(line.lstrip()) for line in stretch if line.strip())
    return ["\n".join(line[margin:] for line in stretch).strip("\n") + "\n"]


def find_inline_code(text: str) -> list[str]:
    """Return the definitions that stand within a line, between single backticks; the last first."""
    return [found + "\n" for found in reversed(_INLINE.findall(text))]
