"""The code in a reply: what stands in fences, or else the reply itself, with and without the talk around it.

Only text is handled here. Which piece is the program is decided by parsing, and that happens inside the
sandbox, since hostile source can crash a parser.
"""

from __future__ import annotations

from context_bench.sandbox.decorations import number_free, session_code
from context_bench.sandbox.fences import Fence, find_fences, is_fence_line
from context_bench.sandbox.unfenced import MAX_CUTS, indented_code, paragraphs_of_code

__all__ = ["MAX_CUTS", "MAX_REPLY", "find_code_blocks"]

MAX_REPLY = 1_000_000
"""Replies longer than this many characters are not looked at."""

_PYTHON = {"", "py", "py3", "python", "python3", "python2", "ipython", "pycon", "doctest", "code"}


def find_code_blocks(reply: str) -> list[str]:
    """Pieces of a reply that may be the program, the likeliest first; empty when there is no text.

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
    blocks = [piece for fence in chosen for piece in _pieces(fence)]
    if not blocks or _may_be_outside(fences):
        # A lone mark, or what it opens, is no code: the program stands before it.
        blocks += paragraphs_of_code([line for line in lines if not is_fence_line(line)])
        blocks += indented_code(lines)
    return list(dict.fromkeys(_undress(block) for block in blocks))


def _pieces(fence: Fence) -> list[str]:
    """The text of a fence; of one that never closes also what is left when the talk after it is cut off."""
    if fence.closed:
        return ["\n".join(fence.lines) + "\n"]
    return paragraphs_of_code(fence.lines)


def _may_be_outside(fences: list[Fence]) -> bool:
    """Whether the only fence is one that has no language and never closes: its mark may have closed another."""
    return len(fences) == 1 and not fences[0].closed and not fences[0].language


def _undress(block: str) -> str:
    """The code of an interpreter's session, or of lines with their numbers; else the block as it is."""
    return session_code(block) or number_free(block) or block
