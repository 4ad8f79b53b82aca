"""Finds the code in a reply: in its fences, or else the reply itself, with and without the prose around it.

Only text is handled here. Which piece is the program is decided by parsing, and that happens inside the
sandbox, since hostile source can crash a parser.
"""

from __future__ import annotations

from context_bench.sandbox.decorations import extract_session, remove_line_numbers
from context_bench.sandbox.fences import Fence, find_fences, is_fence_line
from context_bench.sandbox.unfenced import MAX_CUTS, find_indented_code, find_paragraphs

__all__ = ["MAX_CUTS", "MAX_REPLY", "find_code_blocks"]

MAX_REPLY = 1_000_000
"""Replies longer than this many characters are not looked at."""

_PYTHON = {"", "py", "py3", "python", "python3", "python2", "ipython", "pycon", "doctest", "code"}


def find_code_blocks(reply: str) -> list[str]:
    """Find the pieces of a reply that may be the program, the likeliest first; none when there is no text.

    Of several fences the last comes first: what a model ends with is its answer, unless the words before it say
    that it is the wrong one.
    """
    if not reply.strip() or len(reply) > MAX_REPLY:
        return []
    lines = reply.splitlines()
    fences = find_fences(lines)
    python = [fence for fence in fences if fence.language in _PYTHON]
    latest_first = (python or fences)[::-1]
    chosen = sorted(latest_first, key=lambda fence: fence.rejected)
    blocks = [piece for fence in chosen for piece in _split_fence(fence)]
    if not blocks or _may_be_outside(fences):
        # A lone mark, or what it opens, is not code: the program stands before it.
        blocks += find_paragraphs([line for line in lines if not is_fence_line(line)])
        blocks += find_indented_code(lines)
    return list(dict.fromkeys(_remove_decorations(block) for block in blocks))


def _split_fence(fence: Fence) -> list[str]:
    """Return the text of a fence; if it never closes, also what is left without the prose after it."""
    if fence.closed:
        return ["\n".join(fence.lines) + "\n"]
    return find_paragraphs(fence.lines)


def _may_be_outside(fences: list[Fence]) -> bool:
    """Whether the only fence is one that has no language and never closes: its mark may have closed another."""
    return len(fences) == 1 and not fences[0].closed and not fences[0].language


def _remove_decorations(block: str) -> str:
    """Return the code of an interpreter's session, or of numbered lines; else the block as it is."""
    return extract_session(block) or remove_line_numbers(block) or block
