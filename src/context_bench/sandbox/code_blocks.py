"""Find the code in a reply: in fences, or else the reply itself, with and without the prose around the code.

This module handles only text. Which piece is the program is decided by parsing, inside the sandbox, because hostile
source can crash a parser.
"""

from __future__ import annotations

import json
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


def is_rejected(before: str, heading: str, first: str) -> bool:
    """Whether the first comment of a block, the sentence before it, or its section presents the code as wrong."""
    sentence = _SENTENCE_END.split(before.strip()[-400:])[-1]
    if _REJECTED_IN_COMMENT.match(first) or (_rejects(sentence) and not _POINTS_BACK.search(sentence)):
        return True
    return not _MENDED.search(sentence) and _rejects(heading[-400:])


def _rejects(text: str) -> bool:
    """Whether a text presents the code after it as wrong, rather than as fixed."""
    found = _REJECTED.search(text)
    return bool(found and not _MENDED.search(text) and not _INTRODUCED.search(text, found.end()))


_OPENING = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([\w+#.-]*)(.*)")
_OPENING_AFTER_WORDS = re.compile(r"^()[^`]+(`{3,})[ \t]*([\w+#.-]*)()[ \t]*$")
_MARKS = re.compile(r"`{3,}")
_TAG = re.compile(r"(?:python3?|py3?|code)\s+")
_CODE = re.compile(r"\b(?:def|class|lambda|return|import)\b")
_STARTS_CODE = re.compile(r"(?:def|class|async|import|from|@\w+)\b")
_CODE_TAGS = re.compile(r"\n?(?:\[(/?)(?:PYTHON|CODE)\]|<(/?)code>)\n?", re.IGNORECASE)


@dataclass(frozen=True)
class Fence:
    """One fence; `rejected` means that the preceding words call its code wrong."""

    language: str
    lines: list[str]
    closed: bool
    rejected: bool = False


def is_fence_line(line: str) -> bool:
    """Whether a line is a mark, with or without a language."""
    found = _OPENING.match(line)
    return bool(found and not found[4].strip())


def find_fences(lines: list[str]) -> list[Fence]:
    """Find all non-empty fences in order; a fence that never closes extends to the end."""
    lines = _turn_tags_into_fences(lines)
    found: list[Fence] = []
    at, heading = 0, ""
    while at < len(lines):
        line = lines[at]
        at += 1
        heading = line if _HEADING.match(line) else heading
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
    """Find the line that closes a fence, or the number of lines. As in Markdown, a mark indented by four or more is
    text (a fence within a docstring), unless no other mark closes the fence.
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
    """Read the code between two marks on one line; "" for text that is no code, None for a line without two marks."""
    marks = list(_MARKS.finditer(line[:10_000]))
    if len(marks) != 2 or marks[0].end() == marks[1].start():
        return None
    code = _TAG.sub("", line[marks[0].end() : marks[1].start()].strip(), count=1)
    return code if _CODE.search(code) else ""


def _closes(line: str, marks: str) -> bool:
    """Whether a line is the closing mark, or code that ends with it.

    Marks in pairs on one line are text: a word in backticks within a docstring.
    """
    text = line.rstrip()
    if not text.endswith(marks) or (marks[0] == "~" and text.strip("~ \t")):
        return False
    before = text.rstrip(marks[0])
    return len(text) - len(before) >= len(marks) and (not before.strip() or before.count(marks) % 2 == 0)


def _turn_tags_into_fences(lines: list[str]) -> list[str]:
    """Turn tags such as [PYTHON] and [/PYTHON] into fences, in a reply that has none."""
    if any("```" in line or "~~~" in line for line in lines) or not any(_CODE_TAGS.search(line) for line in lines):
        return lines
    fenced = _CODE_TAGS.sub(lambda tag: "\n```\n" if tag[1] or tag[2] else "\n```python\n", "\n".join(lines))
    return fenced.splitlines()


_TAGS = re.compile(
    r"(?is)(?:<(?P<tag>(?:final_?)?answer|solution|completion)>|\[BEGIN\]|\[(?P<mark>ANSWER|SOLUTION)\])(?P<inner>.*?)"
    r"(?:</(?P=tag)>|\[DONE\]|\[/(?P=mark)\]|\Z)"
)
_UNOPENED = re.compile(r"(?s)\A(?P<inner>(?:(?!\[BEGIN\]).)*?)\[DONE\]")
_JSON = re.compile(r"(?m)^[ \t]*(?:```(?:json)?[ \t]*\n\s*)?(?=\{\s*\")")
_CODE_FIELDS = ("code", "solution", "program", "python", "implementation", "source", "completion", "answer")


def find_wrapped(reply: str) -> list[str]:
    """Find the texts that are marked as the answer, the last first."""
    tags = list(_TAGS.finditer(reply)) or list(_UNOPENED.finditer(reply))
    tagged = [found["inner"] for found in tags]
    return [text.strip("\n") + "\n" for text in [*_read_json(reply), *tagged[::-1]] if text.strip()]


def _read_json(reply: str) -> list[str]:
    """Return the fields with code in the last JSON object; its texts may contain line ends."""
    for found in reversed(list(_JSON.finditer(reply))[-5:]):
        try:
            content, _ = json.JSONDecoder(strict=False).raw_decode(reply, found.end())
        except (ValueError, RecursionError):
            continue
        nested = [pair for value in content.values() if isinstance(value, dict) for pair in value.items()]
        fields = {key.lower(): value for key, value in [*nested, *content.items()] if isinstance(value, str)}
        if code := [fields[key] for key in _CODE_FIELDS if key in fields]:
            return code
    return []


def read_diff(lines: list[str]) -> list[str]:
    """Read the new version in a diff: its added and its unchanged lines."""
    return [line[1:] for line in lines if line[:1] in ("+", " ", "") and not line.startswith("+++")]


MAX_CUTS = 30  # at how many paragraphs, from the end, a text is cut in search of the end of its code

_CODE_LINE = re.compile(r"(?:def|class|async def|import|from) |@\w|[A-Za-z_]\w* = lambda\b|>>> ")
_MODULE_LINE = re.compile(
    r"""\s*$|\s+\S|\#|[)\]}]|['"]{3}|[A-Za-z_][\w.\[\]'"]*(?:,\s*[A-Za-z_]\w*)*\s*(?::[^=]{1,80})?[-+*/|&]?=(?!=)"""
    r"|(?:if|try|except|for|with|else|import|from)\b.*:?$"
)
_INLINE = re.compile(r"(?<!`)`((?:async def|def|class) [^`\n]+|[A-Za-z_]\w* = lambda [^`\n]+)`(?!`)")
_INDENTED = re.compile(r"(?: {4}|\t)")
_INDENTED_CODE = re.compile(r"(?: {4}|\t)\s*(?:def|class|async def) \w")


def find_paragraphs(lines: list[str]) -> list[str]:
    """List the text from three starts: its first line, its first line of code, and the module's lines before that line.
    Each is listed as a whole, then cut at its paragraphs.
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
    """Find the start of the constants and comments directly before the first line of code."""
    start = first
    while start > 0 and _MODULE_LINE.match(lines[start - 1]):
        start -= 1
    while start < first and not lines[start].strip():
        start += 1
    return start


def find_indented_code(lines: list[str]) -> list[str]:
    """Return the last block that is code by Markdown's rule of indentation, without the indentation."""
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
    """Return the definitions between single backticks within a line, the last first."""
    return [found + "\n" for found in reversed(_INLINE.findall(text))]


MAX_REPLY = 1_000_000  # longer replies, in characters, are not searched

_PYTHON = {"", "py", "py3", "python", "python3", "python2", "ipython", "pycon", "doctest", "code"}
_MARKDOWN = {"", "markdown", "md", "text"}
_DIFFS = {"diff", "patch"}
_LABEL = re.compile(r"(?i)(?:python3?|py|(?:python\s*)?copy(?:\s+code)?)\s*")  # as pasted from a chat page
_PROMPT = re.compile(r"(?:>>>|\.\.\.)(?: |$)")
_NUMBERED = re.compile(r"[ \t]*(\d{1,4})(?:[ \t]?[:.|]|(?=\s)|$)(.*)")


def find_code_blocks(reply: str) -> list[str]:
    """Find the pieces of a reply that may be the program, the likeliest first; empty without text. Code that the reply
    marks as its answer comes first. Later fences come before earlier ones, because models end with their answer, unless
    the preceding words call the code wrong.
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
    # The mark of a lone fence that has no language and never closes may have closed another.
    lone = len(fences) == 1 and not fences[0].closed and not fences[0].language
    if not blocks or lone:
        # A lone mark, and the text after it, is not code: the program comes before it.
        blocks += find_paragraphs([line for line in lines if not is_fence_line(line) and not _LABEL.fullmatch(line)])
        blocks += find_indented_code(lines) + find_inline_code(text)
    return [_extract_session(block) or _remove_line_numbers(block) or block for block in blocks]


def _split_fence(fence: Fence, depth: int = 2) -> list[str]:
    """Return the text of a fence; if the fence never closes, also return the text without the prose after the code.
    Fences within a Markdown fence come last; within Python they are text.
    """
    lines = read_diff(fence.lines) if fence.language in _DIFFS else fence.lines
    blocks = ["\n".join(lines) + "\n"] if fence.closed else find_paragraphs(lines)
    if depth and fence.language in _MARKDOWN and any(map(is_fence_line, lines)):
        blocks += [piece for inner in find_fences(lines)[::-1] for piece in _split_fence(inner, depth - 1)]
    return blocks


def _extract_session(block: str) -> str:
    """Extract the input of a session with `>>>` prompts, without its output; "" for any other text.

    Only prompts at the margin count, because a doctest within a docstring is indented.
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
