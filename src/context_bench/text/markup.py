r"""Reading replies: the part of a reply that is the answer, free of markup, ready to be searched for a verdict.

Reasoning in think tags is set apart. Markup that points out an answer (`\boxed{B}`, `<answer>B</answer>`)
becomes the words "answer: B", so that one set of rules finds them all. Everything is linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

__all__ = [
    "Part",
    "cut_sentence_around",
    "list_readable_parts",
    "read_answer_text",
    "remove_markup",
    "remove_thinking",
    "split_reasoning",
]

_THINK_TAG = re.compile(r"<(/?)(?:think|thinking|thoughts?|reasoning|scratchpad)>|(\[/?THINK\])", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_SPECIAL = re.compile(r"<\|[^|<>\n]{0,40}\|>|</?s>")


def split_reasoning(reply: str) -> tuple[str, str, bool]:
    """Split a reply into the answer, the reasoning, and whether the reasoning was cut off before its end."""
    if _FINAL_CHANNEL in reply:
        reasoning, _, answer = reply.rpartition(_FINAL_CHANNEL)
        return _SPECIAL.sub("", answer), _SPECIAL.sub(" ", reasoning), False
    outside: list[str] = []
    inside: list[str] = []
    thinking, last = False, 0
    for tag in _THINK_TAG.finditer(reply):
        closes = bool(tag[1]) or bool(tag[2] and "/" in tag[2])
        (inside if thinking else outside).append(reply[last : tag.start()])
        if closes and not thinking:  # the opening tag was part of the prompt: all so far is reasoning
            inside += outside
            outside = []
        thinking, last = not closes, tag.end()
    (inside if thinking else outside).append(reply[last:])
    # Indentation is kept: the answer may be a line of code.
    return _SPECIAL.sub("", "".join(outside).strip("\n")), " ".join(inside), thinking


def read_answer_text(reply: str) -> str:
    """Return the reply without its reasoning; the reasoning where there is nothing else."""
    answer, reasoning, _ = split_reasoning(reply)
    return answer if answer.strip() else reasoning


def remove_thinking(reply: str) -> str:
    """Return the reply without its think blocks; one without any stays as it is, to the letter."""
    return read_answer_text(reply) if "<think" in reply or "</think" in reply else reply


class Part(NamedTuple):
    """A part of a reply; one that is not `finished` is reasoning cut off before it came to its end."""

    text: str
    finished: bool


def list_readable_parts(reply: str) -> list[Part]:
    """List where to look for a verdict, best first: the answer; reasoning only where no answer could follow it."""
    answer, reasoning, cut_off = split_reasoning(reply)
    if answer.strip():
        return [Part(answer, True), *([Part(reasoning, False)] if cut_off else [])]
    return [Part(reasoning, not cut_off)]


_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|sf|it|tt|bb|cal)|boldsymbol|bm|operatorname|mbox|emph)\s*\{([^{}]*)\}"
)
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{((?:[^{}]|\{[^{}]*\})*)\}|\\boxed\s+(\S+)")
_ANSWER_TAG = re.compile(r"<(?:final[_ ]?)?answer>([^<]{0,2000})</(?:final[_ ]?)?answer>", re.IGNORECASE)
_HTML = re.compile(r"</?(?:b|strong|i|em|u|p|br|span|div|code|mark)\s*/?>", re.IGNORECASE)
_BOLD_LETTER = re.compile(r"(?:\*\*|__)\s*[(\[]?([A-Z])(?:(?:[)\]]?[.:]?\s*(?:\*\*|__))|(?=[).:\]]\s))")
_MATH_SPACE = re.compile(r"\\[,; ]")
_MATH = re.compile(r"\\[()\[\]]|\$+|\\!|\\(?=%)|(?<=\d)\{(?=,\})|(?<=\d\{,)\}")
_EMPHASIS = re.compile(r"\*+|`+|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)|(?m:^[ \t]*(?:#{1,6}|>)[ \t]+)")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "′": "'", "、": ","})


def remove_markup(text: str) -> str:
    """Remove Markdown, HTML and LaTeX from a text; a letter in bold keeps the marks «B»."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
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
