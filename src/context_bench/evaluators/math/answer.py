r"""Where a reply says its final answer.

In this order: the last `\boxed{}`; the last `#### X`; the last "the answer is X", in the languages of MGSM;
the whole reply, when it is nothing but an expression; else whichever comes last, a formula or a number.
Reasoning in `<think>` is passed over when something follows it.
"""

from __future__ import annotations

import json
import re

from context_bench.evaluators.math.exact import number
from context_bench.evaluators.math.notation import canonical, is_words, unify, unwrap

__all__ = ["boxed", "final_answer", "gold_text"]

_THOUGHTS = re.compile(r"(?is)^.*</(?:think|thinking|thought|reasoning)>")
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BETWEEN = re.compile(r"(?:[\s$,;.]|\\[()\[\]]|\\(?:text|quad)\b|[{}]|\band\b|\bor\b)*\Z")
_MARKED = re.compile(r"(?<!#)####(?!#)[ \t]*([^\n]+)")
_NUMBERED_HEADING = re.compile(r"\d+\s*[.):]\s*[^\d\s]")
_STATED = re.compile(
    r"""(?imx)
    (?: \b(?:answers?|final\s+(?:solution|result))\b (?:\s+first)? (?:\s+(?:to|for|of|in)\s[^.:\n]{1,80}?)?
        [\s*_"'()]* (?: \b(?:is|are|was|be|equals|comes\ to)\b | [:=] )
      | ^A\s*:
      | \bAntwort\b [\s*_]* (?: \b(?:ist|lautet|beträgt)\b | : )
      | \bréponse\b [\s*_]* (?:\bfinale\b)? [\s*_]* (?: \best\b | : )
      | \brespuesta\b [\s*_]* (?:\bfinal\b)? [\s*_]* (?: \bes\b | : )
      | \bответ\b [\s*_]* (?: \b(?:равен|составляет)\b | [:—–-] )
      | \bjibu\b [\s*_]* (?: \bni\b | : )
      | 答案 [\s*_]* [是为為:]  |  答え [\s*_]* [は:]  |  คำตอบ [\s*_]* (?:คือ|:)
      | উত্তর [\s*_]* (?:হলো|হল|:)  |  సమాధానం [\s*_]* :?
    ) [\s*_:`]* (?:(?:is|are|now|thus|therefore|simply|just|either)\b[\s*_:`,]*)*
    """
)
_STATED_AFTER = re.compile(
    r"(?i)([^\n]{1,80}?)[\s*_]{1,4}is\s+(?:the|our|my)\s+(?:(?:only|final|correct|right)\s+){0,2}(?:answer|solution)\b"
)
_IN_JSON = re.compile(r'(?i)"(?:final[_ ]?)?answer"\s*:\s*("(?:[^"\\\n]|\\.)*"|-?[\d.]+)')
_REFUSAL = re.compile(
    r"(?i)\bI(?:\s+cannot|\s+can't|\s+am\s+(?:unable|not\s+able)\s+to|'m\s+(?:unable|not\s+able)\s+to)(?:\s+\w+ly)?\s+"
    r"(?:answer|solve|determine|do|provide|help|calculate|compute|complete|give|assist|find|tell|say)\b"
    r"|\bI\s+(?:do(?:n't|\s+not)\s+(?:know|have\s+enough)|need\s+more\s+information)\b|\bnot\s+enough\s+information\b"
    r"|\b(?:which|what|how)\b(?![^?\n]*\b(?:help|else|think|sound|explain|assist)\b)[^.?!\n]{1,120}\?\s*\Z"
)
_LABEL = re.compile(r"(?i)\b(?:step|part|question|problem|case|example|method|equation|figure|table|not)\s*[(#]?\Z")
_SENTENCE_END = re.compile(r"(?<=[^\s.])[.。!?](?=\s|$|\*)|[。\n]")
_TAIL = 4000
_FORMULA = re.compile(
    r"(?s)\\\[(?P<a>.+?)\\\]|\\\((?P<b>.+?)\\\)|\$\$(?P<c>.+?)\$\$|(?<![\\$])\$(?P<d>[^\s$][^$\n]*?)(?<![\s\\])\$(?!\d)"
)
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_^])(?<!\^\{)(?<!\d[.,/])(?:(?<![\w)])-\s?)?(?:[$€£¥₹]\s?)?(?:(?<=[$€£¥₹])-)?"
    r"(?:\d{1,3}(?:,\d{3})+(?![\d,]\d)|\d{1,3}(?:[ ]\d{3})+(?![\d.,]?\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+(?![\w.]))?"
    r"(?:\s?/\s?\d+(?![\d/]))?(?:\s?\\?%|\s(?:percent|hundred|thousand|million|billion|trillion)\b)?"
    r"(?:(?<=\d)-\d+(?![\d.]))?"
)
_TUPLE = re.compile(r"[(\[]\s*[-+\w.\\{}/^ ]{1,60}(?:,\s*[-+\w.\\{}/^ ]{1,60})+[)\]]")
_LATEX = re.compile(r"[^\s$]*\\(?:[dt]?frac|sqrt|pi)(?![a-zA-Z])(?:[^\s$]*[^\s$.,;:])?")
_LIST = re.compile(r",|\b(?:and|or)\b")
_EQUALS = re.compile(r"\\approx|\\equiv|(?<![<>!\\:])=(?!=)")
_FEW_WORDS = 8


def gold_text(gold: str) -> str:
    """The answer in a gold that may be a whole solution."""
    found = boxed(gold) or (gold.rpartition("####")[2] if "####" in gold else gold)
    return found.strip()


def final_answer(reply: str) -> str:
    """The final answer as written, or an empty text when the reply has none."""
    text = unify(_without_thoughts(reply)).strip()
    for find in (boxed, _marked, _in_json, _stated, _bare, _said_last):
        if answer := find(text):
            return answer
    return ""


def _without_thoughts(reply: str) -> str:
    said = _THOUGHTS.sub("", reply, count=1)
    return said if said.strip() else reply


def boxed(text: str) -> str:
    r"""What the last boxes hold: several in a row (`\boxed{1}` and `\boxed{2}`) are one answer."""
    contents: list[str] = []
    start = len(text)
    for box in reversed(list(_BOX.finditer(text))[-20:]):
        content, end = _box_content(text, box.end())
        if end > start:  # a box around the box
            continue
        if contents and not _BETWEEN.match(text[end:start][:40]):
            break
        if content.strip():
            contents.insert(0, content.strip())
            start = box.start()
        if len(contents) == 8:
            break
    return ", ".join(contents)


def _box_content(text: str, start: int) -> tuple[str, int]:
    """The content of a box and where it ends; without braces it is the next word."""
    if text[start : start + 1] != "{":
        word = re.compile(r"[^\s$]+").match(text, start)
        return (word.group().rstrip(".,"), word.end()) if word else ("", start)
    depth = 0
    for place in range(start, min(len(text), start + 2 * _TAIL)):
        if text[place] in "{}" and text[place - 1] != "\\":
            depth += 1 if text[place] == "{" else -1
            if not depth:
                return text[start + 1 : place], place + 1
    return text[start + 1 : start + _TAIL].split("\n")[0].rstrip("$ "), len(text)  # cut off in the middle


def _marked(text: str) -> str:
    """What follows the last `####` that is no heading of a section."""
    for found in reversed(list(_MARKED.finditer(text))[-20:]):
        content = unwrap(found[1])
        if _NUMBERED_HEADING.match(content) or content.endswith(":"):
            continue
        if number(canonical(content)) or (content and not is_words(canonical(content))):
            return content
        if not text[found.end() :].strip() and len(content.split()) <= _FEW_WORDS:
            return _from_sentence(content)
    return ""


def _in_json(text: str) -> str:
    """The field `answer` of a JSON reply."""
    found = _IN_JSON.findall(text[-_TAIL:])
    try:
        return str(json.loads(found[-1])) if found else ""
    except ValueError:
        return ""


def _stated(text: str) -> str:
    """What follows the last "the answer is" that goes on with an answer."""
    for found in reversed(list(_STATED.finditer(text))[-20:]):
        rest = text[found.end() : found.end() + _TAIL]
        formula = _FORMULA.match(rest)
        end = _SENTENCE_END.search(rest, formula.end() if formula else 0)
        sentence = rest[: end.start()] if end else rest
        is_last = not rest[len(sentence) :].strip(" \n.*")
        if not re.match(r"(?i)not\b", sentence) and (answer := _from_statement(sentence, is_last)):
            return answer
    after = list(_STATED_AFTER.finditer(text[-_TAIL:]))
    return _last(after[-1][1]) if after else ""


def _from_statement(sentence: str, is_last: bool) -> str:
    said = unwrap(sentence)
    if _plain(said):
        return said
    # "Answer:" may head the reasoning: a long sentence with more after it is no final answer.
    if not is_last and len(said.split()) > _FEW_WORDS and not _NUMBER.match(said) and not _FORMULA.match(said):
        return ""
    return _from_sentence(said)


def _from_sentence(said: str) -> str:
    """The answer in a sentence: what it starts with, if that is a number or a formula, else the last such."""
    if formulas := _leading_formulas(said):
        return ", ".join(formulas)
    if starts := _NUMBER.match(said):
        return starts.group() if is_words(canonical(said)) else said
    return _last(said) if re.search(r"\d|\\", said) else (said if len(said.split()) <= _FEW_WORDS else "")


def _leading_formulas(said: str) -> list[str]:
    """The formulas at the start of a sentence: one, or several that make a list."""
    contents: list[str] = []
    end = 0
    for found in _FORMULA.finditer(said):
        if (found.start() > 0 and not contents) or not _BETWEEN.match(said[end : found.start()]):
            break
        contents.append(_content(found))
        end = found.end()
    return contents


def _plain(text: str) -> bool:
    """Whether a text is an expression and nothing else."""
    form = canonical(text)
    return bool(form) and (number(form) is not None or (not is_words(form) and form.isascii() and "$" not in form))


def _bare(text: str) -> str:
    return text if len(text) <= 400 and _plain(text) else ""


def _said_last(text: str) -> str:
    """What comes last, unless the reply refuses or asks back."""
    return "" if _REFUSAL.search(text[-_TAIL:]) else _last(text)


def _last(text: str) -> str:
    """The last formula, tuple or number, whichever ends last; of an equation the right-hand side."""
    tail = text[-_TAIL:]
    formulas = [found for found in _FORMULA.finditer(tail) if _tells(found)]
    plain = [found for found in _TUPLE.finditer(tail) if not is_words(canonical(found.group()))]
    plain += [*_LATEX.finditer(tail), *(found for found in _NUMBER.finditer(tail) if not _is_label(found, tail))]
    end = max((found.end() for found in plain), default=-1)
    if formulas and end <= formulas[-1].end():
        content = _content(formulas[-1])
        return content if _LIST.search(canonical(content)) else _EQUALS.split(content)[-1].strip()
    if plain:
        # What ends together with the number in it is the whole: 1/\sqrt{2}.
        return next(found for found in plain if found.end() == end).group().strip()
    line = unwrap(tail.strip().rpartition("\n")[2])
    return line if len(line.split()) <= _FEW_WORDS and not re.search(r"\d", line) else ""


def _is_label(found: re.Match[str], text: str) -> bool:
    """`Step 2`, or the number of an item at the start of its line."""
    before = text[max(0, found.start() - 20) : found.start()]
    at_start = not before.rpartition("\n")[2].strip(" *") and re.match(
        r"[.)]\s+\S", text[found.end() : found.end() + 9]
    )
    return bool(_LABEL.search(before) or at_start)


def _content(formula: re.Match[str]) -> str:
    return str(next(part for part in formula.groups() if part)).strip()


def _tells(formula: re.Match[str]) -> bool:
    """Whether a formula can be an answer: the mere name of a variable is none."""
    content = _content(formula)
    return len(content) > 1 and not (formula["d"] and is_words(canonical(content)) and "\\" not in content)
