r"""Replies free of markup, ready to be searched for a verdict.

Markup that points out an answer (`\boxed{B}`, `<answer>B</answer>`) becomes the words "answer: B", so that one set of
rules finds them all. Everything is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata

_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|sf|it|tt|bb|cal)|boldsymbol|bm|operatorname|mbox|emph)\s*\{([^{}]*)\}"
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}|\\boxed\s+(\S+)")
_ANSWER_TAG = re.compile(r"<(?:final[_ ]?)?answer>([^<]{0,2000})</(?:final[_ ]?)?answer>", re.IGNORECASE)
_HTML = re.compile(r"</?(?:b|strong|i|em|u|p|br|span|div|code|mark)\s*/?>", re.IGNORECASE)
_BOLD_LETTER = re.compile(r"(?:\*\*|__)[ \t]*[(\[]?([A-Z])(?:(?:[)\]]?[.:]?[ \t]*(?:\*\*|__))|(?=[).:\]]\s))")
_MATH_SPACE = re.compile(r"\\[,; ]")
_MATH = re.compile(r"\\[()\[\]]|\$+|\\!|\\(?=%)|(?<=\d)\{(?=,\})|(?<=\d\{,)\}")
_EMPHASIS = re.compile(r"\*+|`+|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)|(?m:^[ \t]*(?:#{1,6}|>)[ \t]+)")
_QUOTES = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "′": "'",
        "、": ",",
        "「": '"',
        "」": '"',
        "『": '"',
        "』": '"',
        "【": "[",
        "】": "]",
    }
)
_CHECKBOX = re.compile(r"^([ \t]*[-*+•][ \t]+)\[(?:([xX✓✔])| )\](?=[ \t])", re.MULTILINE)


def remove_markup(text: str) -> str:
    """Remove Markdown, HTML and LaTeX from a text; a letter in bold keeps the marks «B»."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _CHECKBOX.sub(lambda box: box[1] + ("✅" if box[2] else "❌"), text)
    latex = "\\" in text
    for _ in range(3 if latex else 0):  # wrappers nest: \mathbf{\text{B}}
        text, changed = _WRAPPER.subn(r"\1", text)
        if not changed:
            break
    if latex:
        text = _BOXED.sub(lambda box: f" answer: {(box[1] or box[2] or '').strip()} ", text)
    if "</" in text:
        text = _ANSWER_TAG.sub(lambda tag: f" answer: {tag[1].strip()} \n", _HTML.sub(" ", text))
    text = _BOLD_LETTER.sub(r"«\1»", text)
    if latex or "$" in text or "{" in text:
        text = _MATH.sub("", _MATH_SPACE.sub(" ", text))
    return _EMPHASIS.sub("", text)


_SENTENCE_END = re.compile(r"[.!?](?=[\s\"')»]|$)|\n")
_WINDOW = 400


def cut_sentence_around(text: str, start: int, end: int) -> str:
    """Cut out the sentence, or line, that holds `text[start:end]`, as far as 400 characters to each side."""
    begin = max(0, start - _WINDOW)
    for stop in _SENTENCE_END.finditer(text, begin, start):
        begin = stop.end()
    after = _SENTENCE_END.search(text, end, end + _WINDOW)
    return text[begin : after.end() if after else end + _WINDOW]
