r"""Blanks what a reply says beside its answer: remarks in brackets, numbers that were given, a check of the result.

"Tom has 90 marbles left after giving 30 away" answers 90: the clause that begins with "after" tells how, and so do
"to reach 50", "with 108 beads" and "since the bus leaves at 8". A number after "the" or "all" was known before.
Nothing is blanked where no number would be left.
"""

from __future__ import annotations

import re

__all__ = ["blank_asides", "drop_check"]

MAX_CHECK = 2000
"""How many characters the check at the end of a reply may have."""
MAX_SENTENCE = 400
"""How many characters of a sentence are looked at, from its end."""

_DIGIT = re.compile(r"\d")
_BRACKETS = re.compile(r"(?<=\S)[ ]\([^()\n]*[A-Za-z]{2,}\s[^()\n]*\)")
_CONCLUDES = re.compile(r"(?i)[\s*_]*(?:so|thus|therefore|hence|in\s+total)\b[^.!?]*[.!?]\W*\Z")
_SENTENCE_END = re.compile(r"(?<![ap]\.m)(?<!\bi\.e)(?<!\be\.g)[.!?](?=\s+\S|[*_)\"']*\s*\Z)|\n")
_ABBREVIATED = re.compile(r"(?i)\b(?:[ap]\.m|approx|etc|ft|in|hr|min|sec|lbs?|oz)\.\Z")
_NUMBER = r"(?:\\?[$€£(])*\d"
_VERB = (
    r"is|are|was|were|be|has|have|had|will|would|can|could|equals?|gets?|gives?|makes?|needs?|takes?|costs?|remains?|"
    r"leaving|left|over|remaining|spare|so|then|thus|therefore|hence|which"
)
_NOT_A_RESULT = rf"(?:(?!\b(?:{_VERB})\b|=|\\approx|[,;:](?!\d)).)*"
_GIVEN = re.compile(
    rf"(?is)\b(?:(?:after|before|than|(?:by|for|from|without|while|when)\s+[a-z]+ing)\b"
    rf"|to\s+(?!(?:be|become|get|obtain|find|give|yield|make|equal|have|form|arrive|only|about|just|exactly|roughly|nearly)\b)"
    rf"[a-z]{{3,}}\s(?!to\b)|(?<!left\s)(?<!end\s)(?<!ends\s)(?<!up\s)(?<!him\s)(?<!her\s)(?<!them\s)with\s+(?={_NUMBER})"
    rf"|out\s+of\b|(?:in|from|among|of)\s+(?:the|an?|his|her|their|its|this|that)\s+"
    rf"(?:class|group|set|pack|box|bag|team|deck|batch|collection)\s+of\b){_NOT_A_RESULT}"
    rf"|\b(?:since|because|when|if|where|whereas|who|whose)\b(?:(?!\b(?:so|then|thus|therefore|hence)\b|[,;:](?!\d)).)*"
)
_KNOWN = re.compile(
    rf"(?i)\b(?:the|these|those|all|both|his|her|their|its|our|my)\s+(?:(?:other|first|last|next|original|initial|nearest)\s+)?"
    rf"\*{{0,2}}{_NUMBER}[\d.,]*\$?(?=[\s-]+[a-z*])"
)
# "$10 for 50 minutes"; "it takes 10 minutes to make 100 of them"; "5 + 3 = 8 in 3 years"
_PURPOSE = re.compile(
    r"(?i)(?:[$€£]\s?\d[^;]*?(?=\bfor\s+\d)|\b(?:takes?|took|needs?|requires?)\b[^;]*?\d[^;]*?(?=\bto\s+[a-z])"
    r"|=\s?[$€£]?\d[^=,;]*?(?=\b(?:in|per|of|over)\s+\d))(?P<aside>[^,;]*)"
)
_RESULT = re.compile(r"(?<!\b[A-Za-z])(?<!\b[A-Za-z]\s)=|\\approx")
_CHANCE = re.compile(r"(?i)\b(?:probability|chance|odds|likelihood)\b")
_CHECK = re.compile(
    r"(?im)(?:^|(?<=[.!?]\s))[\s#>*_✓✅-]*(?:(?:let\s+me|let's|let\s+us|we\s+can|to|I(?:'ll|\s+will)?)\s+)?(?:quickly\s+)?"
    r"(?:(?:double|sanity|quick)[-\s]?)?(?:check(?:ing)?|verif(?:y|ying|ication)|proof)\b"
)
_REVISED = re.compile(
    r"(?im)\b(?:wait|hmm|actually|mistake|oops|wrong|error|should\s+be|instead|recalculat\w*|recomput\w*|answer)\b"
    r"|^[\s*_]*(?:so|thus|therefore|hence|in\s+total|in\s+conclusion)\b"
)


def drop_check(text: str) -> str:
    """Return a text without the check of its result at the end, unless that comes to another result."""
    for found in _CHECK.finditer(text, max(0, len(text) - MAX_CHECK)):
        before, check = text[: found.start()], text[found.start() :]
        if _DIGIT.search(before.rpartition("\n\n")[2] or before) and not _REVISED.search(check):
            return before.rstrip()
    return text


def blank_asides(text: str) -> str:
    """Blank the remarks in brackets, and in the last sentence with a number what was given."""
    text = _BRACKETS.sub(_blank_brackets, text)
    end = next((found.end() for found in reversed(list(_DIGIT.finditer(text)))), 0)
    start = max((found.end() for found in _SENTENCE_END.finditer(text, 0, end)), default=0)
    stop = next((found.start() for found in _SENTENCE_END.finditer(text, end)), len(text))
    start = max(start, stop - MAX_SENTENCE)
    return text[:start] + _blank_given(text[start:stop]) + text[stop:]


def _blank_brackets(found: re.Match[str]) -> str:
    """A remark in brackets is not the answer where a number goes before it on the same line.

    A sentence in brackets may well be, unless the one before it concludes.
    """
    line = found.string[max(0, found.start() - 200) : found.start()].rpartition("\n")[2]
    is_sentence = line[-1:] in (".", "!", "?") and not _ABBREVIATED.search(line)
    is_aside = _DIGIT.search(line) and (not is_sentence or _CONCLUDES.match(line))
    return " " * len(found.group()) if is_aside else found.group()


def _blank_given(sentence: str) -> str:
    """Blank the clauses and the numbers of a sentence that it does not end in, as long as a number is left."""
    spans = [found.span() for found in _GIVEN.finditer(sentence) if not _CHANCE.search(sentence)]
    spans += [found.span("aside") for found in _PURPOSE.finditer(sentence)]
    spans += [found.span() for found in _KNOWN.finditer(sentence)]
    for start, end in sorted(spans, reverse=True):
        given, rest = sentence[start:end], sentence[:start] + " " * (end - start) + sentence[end:]
        if _DIGIT.search(given) and not _RESULT.search(given) and _DIGIT.search(rest):
            sentence = rest
    return sentence
