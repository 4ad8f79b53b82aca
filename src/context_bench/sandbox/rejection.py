"""Tells from the words around a block of code whether a reply shows it as an example of what is wrong."""

from __future__ import annotations

import re

__all__ = ["is_heading", "is_rejected"]

_REJECTED = re.compile(
    r"(?i)\b(?:wrong|incorrect|broken|buggy|flawed|rejected|mistakes?|pitfalls?|anti-?patterns?|gotchas?|tempt(?:ed|ing)"
    r"|do(?:n't|\s+not)\s+(?:use|do|write)|not\s+to\s+do|never\s+(?:use|do|write)|why\s+not|does(?:n't|\s+not)\s+work"
    r"|not\s+(?:be\s+)?(?:correct|right|acceptable|recommended|valid)|(?:would|will|that|which|version|code|this)\s+fails?"
    r"|(?<!\bto\s)avoid|(?:things?|what|code|patterns?|how\s+not)\s+to\s+avoid|instead\s+of\s+(?:this|doing|writing|using)"
    r"|(?:common|frequent|typical|classic|usual|subtle)\s+(?:errors?|bugs?|traps?)|naive\s+(?:version|attempt|approach)"
    r"|bad\s+(?:version|attempt|approach|example|practice|code|way|idea))\b"
    r"|^\W*(?:bad|before|original|old)(?:\s+(?:code|version))?\W*$|[❌✗✘🚫⛔👎]"
)
_REJECTED_IN_COMMENT = re.compile(
    r"(?i)\s*#\W*(?:[❌✗✘🚫⛔👎]|(?:wrong|incorrect|bad|buggy|broken|don't|do\s+not|never|anti-?pattern|mistake)\b)"
)
_MENDED = re.compile(
    r"(?i)\b(?:fix(?:ed|es|ing)?|(?<!not\s)(?<!be\s)correct(?:ed|ion)?|instead(?!\s+of)|better|working|final|improved)\b|✅"
)
_POINTS_BACK = re.compile(
    r"(?i)\b(?:that|this|it|above|I|my|previous|earlier|first)\b(?!.*\b(?:following|below)\b).*[.!]\W*\Z"
)
_INTRODUCED = re.compile(r"(?i)\b(?:here\s+is|here's)\b")
_SENTENCE_END = re.compile(r"[.!?](?:\*\*)?\s+")
_HEADING = re.compile(r"\s{0,3}(?:#{1,6}\s+\S|(\*\*|__)[^*_]+\1:?\s*$)")


def is_heading(line: str) -> bool:
    """Whether a line is the title of a section, in Markdown's way or wholly in bold."""
    return bool(_HEADING.match(line))


def is_rejected(before: str, heading: str, first: str) -> bool:
    """Whether a block is shown as wrong: by its own first comment, the sentence before it, or else its section.

    Args:
        before: The line before the block that is not blank.
        heading: The last heading before the block.
        first: The first line of the block.
    """
    sentence = _SENTENCE_END.split(before.strip()[-400:])[-1]
    if _REJECTED_IN_COMMENT.match(first) or (_rejects(sentence) and not _POINTS_BACK.search(sentence)):
        return True
    return not _MENDED.search(sentence) and _rejects(heading[-400:])


def _rejects(text: str) -> bool:
    """Whether a text calls what follows wrong, and not what it says was mended."""
    found = _REJECTED.search(text)
    return bool(found and not _MENDED.search(text) and not _INTRODUCED.search(text, found.end()))
