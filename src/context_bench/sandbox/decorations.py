"""Removes what a reply may add to code: the prompts of an interpreter's session, or line numbers."""

from __future__ import annotations

import re

__all__ = ["extract_session", "remove_line_numbers"]

_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)")
_NUMBERED = re.compile(r"[ \t]*(\d{1,4})(?:[ \t]?[:.|]|(?=\s)|$)(.*)")


def extract_session(block: str) -> str:
    """Extract the input of a session with `>>>` prompts, without its output; "" for any other text.

    Prompts are those at the margin: a doctest within a docstring is indented.
    """
    if not block.lstrip("\n").startswith(">>> "):
        return ""
    return "\n".join(line[4:] for line in block.splitlines() if _PROMPT.match(line)) + "\n"


def remove_line_numbers(block: str) -> str:
    """Remove the numbers from a listing in which every line begins with one; "" for any other text."""
    if not block.lstrip()[:1].isdigit():
        return ""
    found = [_NUMBERED.fullmatch(line) for line in block.splitlines() if line.strip()]
    numbers = [int(line[1]) for line in found if line]
    if len(numbers) < max(2, len(found)) or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return ""
    texts = [line[2] for line in found if line]
    margin = min((len(text) - len(text.lstrip()) for text in texts if text.strip()), default=0)
    return "\n".join(text[margin:] for text in texts) + "\n"
