r"""Finds where a reply says its final answer.

These places are tried in order: the last `\boxed{}`, unless a "final answer" follows it; the last `#### X`; the last
"the answer is X", in the languages of MGSM; the whole reply, when it is nothing but an expression; the bold text of the
last paragraph; else its last value. Reasoning in `<think>` is ignored if text follows it; otherwise only an answer
stated in it counts. Offers of further help, a check of the result and given numbers are ignored too: see `mentions`.
"""

from __future__ import annotations

import json
import re

from context_bench.evaluators.math.exact import number
from context_bench.evaluators.math.mentions import (
    COMPOUND,
    FEW_WORDS,
    FORMULA,
    NUMBER,
    RATIO,
    TAIL,
    blank_asides,
    drop_check,
    find_last_mention,
    is_joint,
    read_formula,
)
from context_bench.evaluators.math.notation import canonical, is_words, read_spelled_number, unify, unwrap, write_digits

_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BOX_NAME = re.compile(r"(?<![A-Za-z])([A-Za-z])(?:_\{?\w\}?)?\s*=\s*\Z")
_MARKED = re.compile(r"(?<!#)####(?!#)[ \t]*([^\n]+)")
_NUMBERED_HEADING = re.compile(r"\d+\s*[.):]\s*[^\d\s]")
_STATED = re.compile(
    r"""(?imx)
    (?: \b(?:answers?|final\s+(?:solution|result))\b (?:\s+first)? (?:\s+(?:to|for|of|in)\s[^.:\n]{1,80}?)?
        [\s*_"'()]* (?: \b(?:is|are|was|be|equals|comes\ to)\b | [:=] )
      | ^A\s*:  |  ^[\#*\s]*(?:result|solution)[*\s]*:  |  ^[\#*\s]*(?:final\s+)?answer[*\s]*$
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
    r"(?i)[\s*_]is\s+(?:the|our|my)\s+(?:(?:only|final|correct|right)\s+){0,2}(?:answer|solution)\b"
)
_IN_JSON = re.compile(r'(?i)"(?:final[_ ]?)?answer"\s*:\s*("(?:[^"\\\n]|\\.)*"|-?[\d.]+)')
_REFUSAL = re.compile(
    r"(?i)\bI(?:\s+cannot|\s+can't|\s+am\s+(?:unable|not\s+able)\s+to|'m\s+(?:unable|not\s+able)\s+to)(?:\s+\w+ly)?\s+"
    r"(?:answer|solve|determine|do|provide|help|calculate|compute|complete|give|assist|find|tell|say)\b"
    r"|\bI\s+(?:do(?:n't|\s+not)\s+(?:know|have\s+enough)|need\s+more\s+information)\b|\bnot\s+enough\s+information\b"
    r"|\b(?:which|what|how)\b(?![^?\n]*\b(?:help|else|think|sound|explain|assist)\b)[^.?!\n]{1,120}\?\s*\Z"
)
_SENTENCE_END = re.compile(r"(?<=[^\s.])(?<!\bi\.e)(?<!\be\.g)(?<!\bapprox)[.。!?](?=\s|$|\*)|[。\n]")
_CORRECTED = re.compile(
    r"(?im)(?:\b(?:final|correct(?:ed)?|revised|actual)\s+(?:answer|result|solution|total)\b[\s*_]*"
    r"(?:\b(?:is|are|should\s+be|would\s+be)\b|[:=])|^[\s*_>#]*answer[\s*_]*:|(?<!#)####(?!#))[\s*_:]*"
)
# A question whether to go on, or an offer; not "If you want the total, it is 18."
_OFFER = re.compile(
    r"(?i)(?:\n|(?<=[.!?*)])[ ])\W{0,6}(?:(?:would\s+you\s+like|(?:do\s+you\s+)?want\s+(?:me\s+)?to"
    r"|do\s+you\s+(?:want|need)|shall\s+I|should\s+I|is\s+there\s+anything)\b[^\n]*\?|(?:let\s+me\s+know|feel\s+free|I\s+can\s+also"
    r"|(?:I'm\s+)?happy\s+to)\b[^\n]*|if\s+you\b[^\n]*\b(?:let\s+me\s+know|tell\s+me|ask|feel\s+free|I\s+can|I\s+could|I'd)\b[^\n]*)\W*\Z"
)
# Words that end no sentence: the reply was cut off before its result.
_CUT_OFF = re.compile(
    r"(?i)(?<!\\)\b(?:and|or|by|the|an?|of|to|then|so|is|are|we|with|from|for|that|which|because|since|if|when|let|"
    r"(?:and|by|before|after|then)\s+[a-z]+ing)\s*\Z"
)
_BOLD = re.compile(r"(?<![*\w])(\*\*|__)(?=[^\s*])([^*\n]{1,200}?)(?<=\S)\1(?![*\w])")
_BOLD_LABEL = re.compile(r"\s*[A-Z][A-Za-z ]{1,30}:\s+(?=\S)")
_GOES_ON = re.compile(
    r"(?<![A-Za-z])(?<![A-Za-z]\s)=\s*[$€£]?-?\d|(?i:\b(?:so|thus|therefore|hence|total|altogether|finally)\b)"
)
_RESTATED = re.compile(
    rf"(?i)(?<=[\w)$}}\]])(?:,?\s*(?P<same>\bi\.e\.|\bthat\s+is)|,\s*(?:so|thus|hence)),?\s+(?={NUMBER.pattern}|{FORMULA.pattern[4:]})"
)
_CHOICES = re.compile(rf"(?:{NUMBER.pattern}(?:,\s)?\s?)+(?:\b(?:or|and)\b)\s{NUMBER.pattern}")


def read_gold_text(gold: str) -> str:
    """Read the answer in a gold that may be a whole solution."""
    found = read_boxed(gold) or (gold.rpartition("####")[2] if "####" in gold else gold)
    return found.strip()


def find_final_answer(reply: str) -> str:
    """Find the final answer as written; an empty text when the reply has no answer."""
    text = _drop_offer(unify(reply).strip())
    for find in (_read_box_or_correction, _read_marked, _read_json, _read_statement):
        if found := find(text):
            return found
    text = drop_check(text)
    return _read_bare(text) or _read_bold(text) or _read_last_value(text)


def _drop_offer(text: str) -> str:
    """Return the text without a question or an offer to the user at the end."""
    found = _OFFER.search(text, max(0, len(text) - 400))
    return text[: found.start()].rstrip() if found and text[: found.start()].strip() else text


def read_boxed(text: str) -> str:
    r"""Return the content of the last box; `\boxed{1}` and `\boxed{2}`, joined by a comma or a word, are one answer."""
    return _read_last_boxes(text)[0]


def _read_last_boxes(text: str) -> tuple[str, int]:
    """Return the content of the last boxes, and their end."""
    contents: list[str] = []
    start = len(text)
    last = 0
    for box in reversed(list(_BOX.finditer(text))[-20:]):
        content, end = _read_box(text, box.end())
        if end > start:  # a box around the box
            continue
        if contents and not is_joint(_drop_repeated_name(text, box.start(), text[end:start])):
            break
        if content.strip():
            contents.insert(0, content.strip())
            start, last = box.start(), max(last, end)
        if len(contents) == 8:
            break
    return ", ".join(contents), last


def _drop_repeated_name(text: str, start: int, between: str) -> str:
    """Return the text between two boxes, without an `x =` that both boxes have before them."""
    name = _BOX_NAME.search(text, max(0, start - 12), start)
    return re.sub(rf"{name[1]}(?:_\{{?\w\}}?)?\s*=\s*\Z", "", between) if name else between


def _read_box_or_correction(text: str) -> str:
    """Read the last boxes, or the final answer that is stated after them."""
    content, end = _read_last_boxes(text)
    if not content:
        return ""
    for found in reversed(list(_CORRECTED.finditer(text, end))[-20:]):
        rest = text[found.end() : found.end() + TAIL]
        said = unwrap(_cut_sentence(rest))
        if _NUMBERED_HEADING.match(rest):
            continue
        if _is_expression(said):
            return said
        if NUMBER.match(said) or FORMULA.match(said):
            return _read_sentence(said)
    return content


def _read_box(text: str, start: int) -> tuple[str, int]:
    """Return the content of a box and its end; without braces the content is the next word."""
    if text[start : start + 1] != "{":
        word = re.compile(r"[^\s$]+").match(text, start)
        return (word.group().rstrip(".,"), word.end()) if word else ("", start)
    depth = 0
    for place in range(start, min(len(text), start + 2 * TAIL)):
        if text[place] in "{}" and text[place - 1] != "\\":
            depth += 1 if text[place] == "{" else -1
            if not depth:
                return text[start + 1 : place], place + 1
    return text[start + 1 : start + TAIL].split("\n")[0].rstrip("$ "), len(text)  # cut off in the middle


def _read_marked(text: str) -> str:
    """Return the text after the last `####` that is not the heading of a section."""
    for found in reversed(list(_MARKED.finditer(text))[-20:]):
        content = unwrap(found[1])
        if _NUMBERED_HEADING.match(content) or content.endswith(":"):
            continue
        if number(canonical(content)) or (content and not is_words(canonical(content))):
            return content
        if not text[found.end() :].strip() and len(content.split()) <= FEW_WORDS:
            return _read_sentence(content)
    return ""


def _read_json(text: str) -> str:
    found = _IN_JSON.findall(text[-TAIL:])
    try:
        return str(json.loads(found[-1])) if found else ""
    except ValueError:
        return ""


def _read_statement(text: str) -> str:
    """Return the text after the last "the answer is" that an answer follows."""
    for found in reversed(list(_STATED.finditer(text))[-20:]):
        rest = text[found.end() : found.end() + TAIL]
        sentence = _cut_sentence(rest)
        is_last = not rest[len(sentence) :].strip(" \n.*")
        if not re.match(r"(?i)not\b", sentence) and (answer := _read_stated_value(sentence, is_last)):
            return answer
    tail = text[-TAIL:]
    after = list(_STATED_AFTER.finditer(tail))
    return find_last_mention(tail[: after[-1].start()].rpartition("\n")[2][-80:]) if after else ""


def _cut_sentence(rest: str) -> str:
    """Return the first sentence of a text, without splitting a formula at its start."""
    formula = FORMULA.match(rest)
    end = _SENTENCE_END.search(rest, formula.end() if formula else 0)
    return rest[: end.start()] if end else rest


def _read_stated_value(sentence: str, is_last: bool) -> str:
    said = unwrap(sentence.rstrip("` "))  # the opening one went with the words before it
    if _is_expression(said):
        return said
    # "Answer:" may head the reasoning: a long sentence with more after it is not a final answer.
    if not is_last and len(said.split()) > FEW_WORDS and not NUMBER.match(said) and not FORMULA.match(said):
        return ""
    return _read_sentence(said)


def _read_sentence(said: str) -> str:
    """Return the answer in a sentence: a number or formula at the start, else the last one in the sentence."""
    if restated := _RESTATED.search(said):
        value = _read_sentence(said[restated.end() :])
        return rf"{said[: restated.start()]} \approx {value}" if restated["same"] and NUMBER.match(said) else value
    if formulas := _read_leading_formulas(said):
        return ", ".join(formulas)
    if choices := _CHOICES.match(said):
        return choices.group()
    if whole := (RATIO.match(said) or COMPOUND.match(said)):
        return whole.group()
    if starts := NUMBER.match(said):
        return starts.group() if is_words(canonical(said)) else said
    if re.search(r"\d|\\", said):
        return find_last_mention(said)
    return said if len(said.split()) <= FEW_WORDS else find_last_mention(write_digits(said))


def _read_leading_formulas(said: str) -> list[str]:
    """Return the formulas at the start of a sentence: one, or several that make a list."""
    contents: list[str] = []
    end = 0
    for found in FORMULA.finditer(said):
        if found.start() > 0 and not (contents and is_joint(said[end : found.start()])):
            break
        contents.append(read_formula(found))
        end = found.end()
    return contents


def _is_expression(text: str) -> bool:
    """Whether a text is an expression and nothing else."""
    form = canonical(text)
    return bool(form) and (number(form) is not None or (not is_words(form) and form.isascii() and "$" not in form))


def _read_bare(text: str) -> str:
    """Return the whole reply if it is an expression; several lines must be within the marks of a formula."""
    one = "\n" not in text or bool(FORMULA.fullmatch(text))
    return text if one and len(text) <= 400 and _is_expression(text) else ""


def _read_bold(text: str) -> str:
    """Read the bold text of the last paragraph, if it is a value, or a name that ends the reply."""
    paragraph = next((part for part in text.rsplit("\n\n", 3)[::-1] if re.search(r"\d|\*\*|__", part)), "")
    paragraph = blank_asides(paragraph[-TAIL:])
    spans = list(_BOLD.finditer(paragraph))
    for found in reversed(spans[-8:]):
        content = _BOLD_LABEL.sub("", unwrap(found[2]), count=1)
        after = paragraph[found.end() :]
        if found[2].rstrip().endswith(":") or after.lstrip().startswith(":"):
            continue
        if _GOES_ON.search(after):
            return ""
        if _is_expression(content) or re.search(r"\d|\\", content) or read_spelled_number(content):
            return content if _is_expression(content) else _read_sentence(content)
        if not after.strip(" .!*_") and content[:1].isupper() and len(content.split()) <= FEW_WORDS // 2:
            return content
    return ""


def _read_last_value(text: str) -> str:
    """Return the last value, unless the reply refuses, asks a question or breaks off."""
    return "" if _REFUSAL.search(text[-TAIL:]) or _CUT_OFF.search(text[-60:]) else find_last_mention(text)


_ITEM = re.compile(
    r"\s*(?:[-*\u2022]|\*{0,2}\(?(?:[a-h]|[ivx]{1,4}|\d)[.):]\)?\*{0,2}|\*{0,2}Part\s+(?:[A-Ha-h]|\d)\b[.:)]?\*{0,2})"
    r"\s+(?P<item>\S.*)"
)


def read_parts(reply: str, count: int) -> list[str]:
    """Read the answers of the items that a reply ends with: `(a) 4` on one line, `(b) 9` on the next.

    The list is empty if there are not exactly `count` items, or an item has no answer.
    """
    lines = [line for line in reply[-4000:].splitlines() if line.strip()]
    found: list[str] = []
    for line in reversed(lines):
        item = _ITEM.fullmatch(line)
        if not item:
            break
        found.insert(0, unwrap(find_final_answer(item["item"])))
    return found if len(found) == count and all(found) else []
