"""Finds fenced code in a reply, also where the marks are not on lines of their own or one of them is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass

_REJECTED = re.compile(
    r"(?i)\b(?:wrong|incorrect|broken|buggy|flawed|rejected|mistakes?|pitfalls?|anti-?patterns?|gotchas?|tempt(?:ed|ing)"
    r"|do(?:n't|\s+not)\s+(?:use|do|write)|not\s+to\s+do|never\s+(?:use|do|write)|why\s+not|does(?:n't|\s+not)\s+work"
    r"|not\s+(?:be\s+)?(?:correct|right|acceptable|recommended|valid)|(?:would|will|that|which|version|code|this)\s+fails?"
    r"|(?<!\bto\s)avoid|(?:things?|what|code|patterns?|how\s+not)\s+to\s+avoid|instead\s+of\s+(?:this|doing|writing|using)"
    r"|(?:common|frequent|typical|classic|usual|subtle)\s+(?:errors?|bugs?|traps?)|naive\s+(?:version|attempt|approach)"
    r"|bad\s+(?:version|attempt|approach|example|practice|code|way|idea))\b"
    r"|^\W*(?:bad|before|original|old)(?:\s+(?:code|version))?(?:\s*\([^()\n]*\))?\W*$|[❌✗✘🚫⛔👎]"
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


_OPENING = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+#.-]*)(.*)")
_OPENING_AFTER_WORDS = re.compile(r"^()[^`]+(`{3,})[ \t]*([\w+#.-]*)()[ \t]*$")
_MARKS = re.compile(r"`{3,}")
_TAG = re.compile(r"(?:python3?|py3?|code)\s+")
_CODE = re.compile(r"\b(?:def|class|lambda|return|import)\b")
_STARTS_CODE = re.compile(r"(?:def|class|async|import|from|@\w+)\b")
_TAGS = re.compile(r"\n?(?:\[(/?)(?:PYTHON|CODE)\]|<(/?)code>)\n?", re.IGNORECASE)


@dataclass(frozen=True)
class Fence:
    """One fence: the language in its first line, its text, and whether it ends.

    `rejected` says that the words before it call its code wrong.
    """

    language: str
    lines: list[str]
    closed: bool
    rejected: bool = False


def is_fence_line(line: str) -> bool:
    """Whether a line is a mark, with or without a language."""
    found = _OPENING.match(line)
    return bool(found and not found[4].strip())


def find_fences(lines: list[str]) -> list[Fence]:
    """Find all fences that are not empty, in order; one that never closes runs to the end."""
    lines = _turn_tags_into_fences(lines)
    found: list[Fence] = []
    at, heading = 0, ""
    while at < len(lines):
        line = lines[at]
        at += 1
        heading = line if is_heading(line) else heading
        if (code := _read_one_line_code(line)) is not None:
            found += [Fence("", [code], True)] if code else []
            continue
        opening = _OPENING.match(line) or (_OPENING_AFTER_WORDS.match(line) if line.count("`") <= 6 else None)
        if not opening:
            continue
        margin, marks, language, rest = opening.groups()
        start, opened = at, at - 1
        first = [f"{language}{rest}"] if _STARTS_CODE.match(f"{language}{rest}") else []
        at = _find_end(lines, start, marks, len(margin))
        body = first + [text.removeprefix(margin) for text in lines[start:at]]
        closed = at < len(lines)
        if closed and (last := lines[at].rstrip().rstrip(marks[0])).strip():
            body.append(last.removeprefix(margin))
        if any(text.strip() for text in body):
            before = next((text for text in reversed(lines[max(0, opened - 3) : opened]) if text.strip()), "")
            rejected = is_rejected(before, heading, body[0])
            found.append(Fence("" if first else language.lower(), body, closed, rejected))
        at += 1
    return found


def _find_end(lines: list[str], start: int, marks: str, margin: int) -> int:
    """Find the line that closes a fence, or the number of lines.

    As in Markdown, a mark that is indented by four or more is text (a fence within a docstring), unless there is no
    other that closes.
    """
    indented = len(lines)
    for at in range(start, len(lines)):
        if _closes(lines[at], marks):
            text = lines[at].lstrip()
            if text.strip(marks[0]) or len(lines[at]) - len(text) < margin + 4:
                return at
            indented = min(indented, at)
    return indented


def _read_one_line_code(line: str) -> str | None:
    """Read the code between two marks on one line, "" if it is not code; None for a line without two marks."""
    marks = list(_MARKS.finditer(line[:10_000]))
    if len(marks) != 2 or marks[0].end() == marks[1].start():
        return None
    code = _TAG.sub("", line[marks[0].end() : marks[1].start()].strip(), count=1)
    return code if _CODE.search(code) else ""


def _closes(line: str, marks: str) -> bool:
    """Whether a line is the closing mark, or code that the mark is glued to.

    Marks in pairs on one line are text: a word in backticks within a docstring.
    """
    text = line.rstrip()
    if not text.endswith(marks) or (marks[0] == "~" and text.strip("~ \t")):
        return False
    before = text.rstrip(marks[0])
    return len(text) - len(before) >= len(marks) and (not before.strip() or before.count(marks) % 2 == 0)


def _turn_tags_into_fences(lines: list[str]) -> list[str]:
    """Turn tags such as [PYTHON] and [/PYTHON] into fences, in a reply that has none."""
    if any("```" in line or "~~~" in line for line in lines) or not any(_TAGS.search(line) for line in lines):
        return lines
    fenced = _TAGS.sub(lambda tag: "\n```\n" if tag[1] or tag[2] else "\n```python\n", "\n".join(lines))
    return fenced.splitlines()
