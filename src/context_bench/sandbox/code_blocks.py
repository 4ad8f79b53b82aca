"""Finds the code in a reply: in its fences, or else the reply itself, with and without the prose around it.

Only text is handled here. Which piece is the program is decided by parsing, and that happens inside the
sandbox, since hostile source can crash a parser.
"""

from __future__ import annotations

import re

from context_bench.sandbox.fences import Fence, find_fences, is_fence_line
from context_bench.sandbox.unfenced import MAX_CUTS, find_indented_code, find_inline_code, find_paragraphs
from context_bench.sandbox.wrapped import find_wrapped, read_diff

__all__ = ["MAX_CUTS", "MAX_REPLY", "find_code_blocks"]

MAX_REPLY = 1_000_000
"""Replies longer than this many characters are not looked at."""

_PYTHON = {"", "py", "py3", "python", "python3", "python2", "ipython", "pycon", "doctest", "code"}
_MARKDOWN = {"", "markdown", "md", "text"}
_DIFFS = {"diff", "patch"}
_LABEL = re.compile(r"(?i)(?:python3?|py|(?:python\s*)?copy(?:\s+code)?)\s*")  # as pasted from a chat page
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)")
_NUMBERED = re.compile(r"[ \t]*(\d{1,4})(?:[ \t]?[:.|]|(?=\s)|$)(.*)")


def find_code_blocks(reply: str) -> list[str]:
    """Find the pieces of a reply that may be the program, the likeliest first; none when there is no text.

    What the reply marks as its answer comes before the rest of it. Of several fences the last comes first: what a
    model ends with is its answer, unless the words before it say that it is the wrong one.
    """
    if not reply.strip() or len(reply) > MAX_REPLY:
        return []
    return list(dict.fromkeys(block for text in [*find_wrapped(reply), reply] for block in _find_blocks(text)))


def _find_blocks(text: str) -> list[str]:
    lines = text.splitlines()
    fences = find_fences(lines)
    python = [fence for fence in fences if fence.language in _PYTHON]
    latest_first = (python or fences)[::-1]
    chosen = sorted(latest_first, key=lambda fence: fence.rejected)
    blocks = [piece for fence in chosen for piece in _split_fence(fence)]
    if not blocks or _may_be_outside(fences):
        # A lone mark, or what it opens, is not code: the program stands before it.
        blocks += find_paragraphs([line for line in lines if not is_fence_line(line) and not _LABEL.fullmatch(line)])
        blocks += find_indented_code(lines) + find_inline_code(text)
    return [_remove_decorations(block) for block in blocks]


def _split_fence(fence: Fence, depth: int = 2) -> list[str]:
    """Return the text of a fence; if it never closes, also what is left without the prose after it.

    Fences within one that holds Markdown come last; within Python they are text.
    """
    lines = read_diff(fence.lines) if fence.language in _DIFFS else fence.lines
    blocks = ["\n".join(lines) + "\n"] if fence.closed else find_paragraphs(lines)
    if depth and fence.language in _MARKDOWN and any(map(is_fence_line, lines)):
        blocks += [piece for inner in find_fences(lines)[::-1] for piece in _split_fence(inner, depth - 1)]
    return blocks


def _may_be_outside(fences: list[Fence]) -> bool:
    """Whether the only fence is one that has no language and never closes: its mark may have closed another."""
    return len(fences) == 1 and not fences[0].closed and not fences[0].language


def _remove_decorations(block: str) -> str:
    """Return the code of an interpreter's session, or of numbered lines; else the block as it is."""
    return _extract_session(block) or _remove_line_numbers(block) or block


def _extract_session(block: str) -> str:
    """Extract the input of a session with `>>>` prompts, without its output; "" for any other text.

    Prompts are those at the margin: a doctest within a docstring is indented.
    """
    if not block.lstrip("\n").startswith(">>> "):
        return ""
    return "\n".join(line[4:] for line in block.splitlines() if _PROMPT.match(line)) + "\n"


def _remove_line_numbers(block: str) -> str:
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
