r"""The value that a text mentions last: a formula, a tuple, an inequality, a ratio or clock time, a number.

An exact value and the approximation after it (`5\sqrt{2} \approx 7.07`) are returned together. Number words count if
they have more than one word, or if the text has no digits.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from context_bench.evaluators.math.exact import equal, find_variable, number
from context_bench.evaluators.math.notation import canonical, find_spelled_numbers, is_words, unwrap

# Blank the parts of a reply other than its answer: remarks in brackets, given numbers, a check of the result.
# "Tom has 90 marbles left after giving 30 away" answers 90: the clause that begins with "after" tells how, and so do
# "to reach 50", "with 108 beads" and "since the bus leaves at 8". A number after "the" or "all" was known before.
# Nothing is blanked if no number would be left.

MAX_CHECK = 2000  # most characters of the check at the end of a reply
MAX_SENTENCE = 400  # characters of a sentence that are read, from its end

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
# "160 minutes in total: 40 + 20 + 100"; "down by 25%, from $80 to $60"; "on a house that he bought for $80,000"
_TOLD = re.compile(
    rf"(?i)(?<=[a-z%\d]):\s*{_NUMBER}[\d.,]*(?:\s*[-+*/×]\s*{_NUMBER}[\d.,]*)+(?=[\s.!*]*\Z)"
    rf"|,\s+from\s+{_NUMBER}[\d.,]*[^,;:]*?\sto\s+{_NUMBER}(?:[^,;:]|,(?=\d))*\Z"
    r"|\b(?:an?|the|his|her|their)\s+[a-z]+\s+(?:(?:that|which)\s+)?(?:he|she|they|we)\s+(?:had\s+)?"
    r"(?:[a-z]+ed|bought|paid|sold|spent|made|got|took)\s(?:[^,;:]|,(?=\d))*\Z"
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
_STATES = re.compile(rf"(?i)\b(?:{_VERB}|answer|total|altogether)\b|=|\\approx")
"""Words of a sentence that may give a result; "(He started with 40 and gave away 25.)" has no such word."""
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
    """Return a text without the check of its result at the end, unless the check gives another result."""
    for found in _CHECK.finditer(text, max(0, len(text) - MAX_CHECK)):
        before, check = text[: found.start()], text[found.start() :]
        if _DIGIT.search(before.rpartition("\n\n")[2] or before) and not _REVISED.search(check):
            return before.rstrip()
    return text


def blank_asides(text: str) -> str:
    """Blank remarks in brackets, and given numbers in the last sentence that has numbers."""
    text = _BRACKETS.sub(_blank_brackets, text)
    end = next((found.end() for found in reversed(list(_DIGIT.finditer(text)))), 0)
    start = max((found.end() for found in _SENTENCE_END.finditer(text, 0, end)), default=0)
    stop = next((found.start() for found in _SENTENCE_END.finditer(text, end)), len(text))
    start = max(start, stop - MAX_SENTENCE)
    return text[:start] + _blank_given(text[start:stop]) + text[stop:]


def _blank_brackets(found: re.Match[str]) -> str:
    """Blank remarks in brackets that follow a number on the same line: they are not the answer.

    A whole sentence in brackets may be the answer, unless the sentence before it concludes.
    """
    line = found.string[max(0, found.start() - 200) : found.start()].rpartition("\n")[2]
    is_sentence = line[-1:] in (".", "!", "?") and not _ABBREVIATED.search(line)
    is_aside = _DIGIT.search(line) and (not is_sentence or _CONCLUDES.match(line) or not _STATES.search(found.group()))
    return " " * len(found.group()) if is_aside else found.group()


def _blank_given(sentence: str) -> str:
    """Blank the clauses and numbers before the end of a sentence, as long as one number remains."""
    spans = [found.span() for found in _GIVEN.finditer(sentence) if not _CHANCE.search(sentence)]
    spans += [found.span("aside") for found in _PURPOSE.finditer(sentence)]
    spans += [found.span() for pattern in (_KNOWN, _TOLD) for found in pattern.finditer(sentence)]
    for start, end in sorted(spans, reverse=True):
        given, rest = sentence[start:end], sentence[:start] + " " * (end - start) + sentence[end:]
        if _DIGIT.search(given) and not _RESULT.search(given) and _DIGIT.search(rest):
            sentence = rest
    return sentence


TAIL = 4000  # characters that are searched, from the end of a reply

FEW_WORDS = 8  # most words of an answer; more are a sentence about it

FORMULA = re.compile(
    r"(?s)\\\[(?P<a>.+?)\\\]|\\\((?P<b>.+?)\\\)|\$\$(?P<c>.+?)\$\$|(?<![\\$])\$(?P<d>[^\s$][^$\n]*?)(?<![\s\\])\$(?!\d)"
)
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_^])(?<!\^\{)(?<!\d[.,/])(?:(?<![\w)])-\s?)?(?:[$€£¥₹]\s?)?(?:(?<=[$€£¥₹])-)?"
    r"(?:\d{1,3}(?:,\d{3})+(?![\d,]\d)|\d{1,3}(?:[ ]\d{3})+(?![\d.,]?\d)|\d+\s\d{1,3}/\d{1,3}(?![\d/])|\d+)"
    r"(?:\.\d+)?(?:\.?\\overline\{\d+\})?(?:[eE][-+]?\d+(?!\w|\.\d))?"
    r"(?:\s?/\s?\d+(?![\d/]))?(?:\s?\\?%|\s(?:percent|hundred|thousand|million|billion|trillion)\b)?"
    r"(?:(?<=\d)-\d+(?![\d.]))?"
)
# Spaces on both sides or on none: "day 1: 30 eggs" is not a ratio.
RATIO = re.compile(r"(?i)(?<![\w.,:/])\d+(?:\.\d+)?(?:(?::|\s:\s)\d+(?:\.\d+)?)+(?:\s?[ap]\.?m\b\.?)?(?![\w:])")
_RATIO_IN_WORDS = re.compile(r"(?i)\bratio\b[^.\n]{0,60}?\s(?P<ratio>\d+(?:\.\d+)?(?:\sto\s\d+(?:\.\d+)?)+)")
_MEASURE = (
    r"(?:years?|months?|weeks?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|f(?:ee|oo)t|inch(?:es)?|yards?|pounds?"
    r"|lbs?|ounces?|dollars?|cents?)"
)
COMPOUND = re.compile(rf"(?i)(?<![\w.,/])\d+\s{_MEASURE}(?:,?\s(?:and\s)?\d+(?:\.\d+)?\s{_MEASURE})+(?!\w)")
"""A quantity in two units: 2 hours and 30 minutes."""
_RELATION = re.compile(
    r"(?<![\w\\])(?:-?\d[\d./]*\s?(?:<|\\leq?(?![a-z]))\s{0,2})?[A-Za-z]\s?(?:[<>]|\\[lg]eq?(?![a-z]))\s{0,2}-?\d[\d./]*(?<![./])"
)
_SCIENTIFIC = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?\s*(?:\\times|\\cdot|[*x])\s*10\s?\^\s?(?:-?\d+|\{-?\d+\})")
_COMPLEX = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?\s?[-+]\s?\d*(?:\.\d+)?i(?![\w])")
_MATRIX = re.compile(r"(?s)\\begin\{(?P<kind>[bpvBV]?matrix)\}.{1,400}?\\end\{(?P=kind)\}")
_TUPLE = re.compile(r"[(\[]\s*[-+\w.\\{}/^ ]{1,60}(?:,\s*[-+\w.\\{}/^ ]{1,60})+[)\]]")
_SET = re.compile(r"(?<![\w}\\^])\\?\{\s*-?\d[\d./]*(?:,\s*-?\d[\d./]*)*\s*\\?\}")
_LATEX = re.compile(r"[^\s$]*\\(?:[dt]?frac|sqrt|pi)(?![a-zA-Z])(?:[^\s$]*[^\s$.,;:])?")

_LIST = re.compile(r",|\b(?:and|or)\b")
_JOINT = re.compile(r"(?:[\s$,;.]|\\[()\[\]]|\\(?:text|quad)\b|[{}]|\band\b|\bor\b)*\Z")
_JOINING = re.compile(r",|;|\band\b|\bor\b")
_EQUALS = re.compile(r"\\equiv|(?<![<>!\\:])=(?!=)")
_APPROX = re.compile(r"\\(?:approx|simeq)(?![a-zA-Z])")
_NAMED = re.compile(r"\s*([A-Za-z])\s*=(?!=)")
_ROUNDED = re.compile(
    r"(?i)[\s,(*$]*(?:\bor\b|\bwhich\s+is\b|\bi\.e\.,?)?[\s(]*(?:\\approx|\\simeq|~|\b(?:about|approximately|roughly|approx\.?))"
    r"[\s$]*\Z"
)
_UNIT = re.compile(r"(?<=[$)\]])(?:\s+[a-z]+){1,3}\Z")
"""Up to three words between a formula and its rounded value, such as "square units"."""
_WORD_BEFORE = re.compile(r"[^\s=$*]+\Z")
# "Dividing by zero: no solution" says that there is no number, not that it is zero.
_DIGIT_OR_DENIAL = re.compile(r"(?i)\d|\b(?:no|none|never|undefined|impossible|cannot|can't)\b")
_SHARE = re.compile(r"\s+of\b")  # "two thirds of the class" says which share, not how many
_LABEL = re.compile(r"(?i)\b(?:step|part|question|problem|case|example|method|equation|figure|table|not)\s*[(#]?\Z")


class _Mention(NamedTuple):
    start: int
    end: int
    text: str


def find_last_mention(text: str) -> str:
    """Return the last formula or value, whichever ends last; for an equation, its right-hand side."""
    tail = blank_asides(text[-TAIL:])
    formulas = [found for found in FORMULA.finditer(tail) if _may_be_answer(found)]
    values = list(_find_values(tail, text))
    end = max((found.end for found in values), default=-1)
    if formulas and end <= formulas[-1].end():
        return _join_formulas(formulas, tail)
    if values:
        # What ends together with the number in it is the whole: 1/\sqrt{2}.
        value = next(found for found in values if found.end == end)
        return _add_exact(value, formulas, tail)
    line = unwrap(tail.strip().rpartition("\n")[2])
    return line if len(line.split()) <= FEW_WORDS and not re.search(r"\d", line) else ""


def read_formula(formula: re.Match[str]) -> str:
    """Return the text between the marks of a formula."""
    return str(next(part for part in formula.groups() if part)).strip()


def is_joint(between: str) -> bool:
    """Whether the text between two formulas or boxes joins them in a list: a comma, "and", "or"."""
    return bool(_JOINT.match(between) and _JOINING.search(between))


def _find_values(tail: str, text: str) -> list[_Mention]:
    """Find all values outside formulas; a value that contains others comes before them."""
    found = [_Mention(*one.span("ratio"), one["ratio"].replace(" to ", ":")) for one in _RATIO_IN_WORDS.finditer(tail)]
    for pattern in (_MATRIX, RATIO, COMPOUND, _RELATION, _SET, _TUPLE, _COMPLEX, _LATEX, _SCIENTIFIC):
        matches = pattern.finditer(tail)
        kept = (each for each in matches if pattern is not _TUPLE or not is_words(canonical(each.group())))
        found += [_Mention(*each.span(), each.group().strip()) for each in kept]
    found += [_Mention(*one.span(), one.group().strip()) for one in NUMBER.finditer(tail) if not _is_label(one, tail)]
    any_word = not _DIGIT_OR_DENIAL.search(text)
    found += [
        _Mention(each.start, each.end, each.digits)
        for each in find_spelled_numbers(tail)
        if (each.compound or (any_word and each.digits != "1")) and not _SHARE.match(tail, each.end)
    ]
    return found


def _join_formulas(formulas: list[re.Match[str]], tail: str) -> str:
    """Return the value of the last formula, with preceding formulas that give other values of the same variable."""
    content = read_formula(formulas[-1])
    if _LIST.search(canonical(content)):
        return content
    if len(formulas) > 1 and find_variable(canonical(content)):
        between = tail[formulas[-2].end() : formulas[-1].start()]
        return rf"{read_formula(formulas[-2])} \text{{ or }} {content}" if between.strip() == "or" else content
    name = _NAMED.match(content)
    values = [_read_equation(content)]
    for later, earlier in zip(formulas[::-1], formulas[-2::-1]):
        other = _NAMED.match(read_formula(earlier))
        if not (name and other and name[1] == other[1] and is_joint(tail[earlier.end() : later.start()])):
            break
        values.insert(0, _read_equation(read_formula(earlier)))
    numbers = [number(canonical(value)) for value in values]
    if len(values) > 1 and numbers[-1] and all(each and equal(numbers[-1], each) for each in numbers):
        return values[-1]  # steps of one calculation, not several values
    return ", ".join(values)


def _read_equation(equation: str) -> str:
    r"""Return the last value in a chain of equations; an approximation stays with the exact value before it."""
    exact, *rounded = _APPROX.split(equation)
    value = _EQUALS.split(exact)[-1].strip()
    if not rounded:
        return value
    is_name = not re.search(r"\d|\\|[+^]", value) and len(value) < 3
    return rounded[-1].strip() if is_name else rf"{value} \approx {rounded[-1].strip()}"


def _add_exact(value: _Mention, formulas: list[re.Match[str]], tail: str) -> str:
    """Return a value; if it is an approximation of an exact value before it, return both."""
    rounded = _ROUNDED.search(tail, max(0, value.start - 40), value.start)
    if not rounded:
        return value.text
    before = _UNIT.sub("", tail[: rounded.start()])
    if formulas and formulas[-1].end() >= len(before.rstrip()) > formulas[-1].start():
        exact = _read_equation(read_formula(formulas[-1]))
    else:
        word = _WORD_BEFORE.search(before[-80:])
        said = word.group() if word else ""
        exact = said if re.search(r"\d", said) and not is_words(canonical(said)) else ""
    return rf"{exact} \approx {value.text}" if exact else value.text


def _is_label(found: re.Match[str], text: str) -> bool:
    """Whether a value is a label: `Step 2`, or the number of an item at the start of its line."""
    before = text[max(0, found.start() - 20) : found.start()]
    after = text[found.end() : found.end() + 9]
    at_start = not before.rpartition("\n")[2].strip(" *") and re.match(r"[.)]\s+\S", after)
    return bool(_LABEL.search(before) or at_start)


def _may_be_answer(formula: re.Match[str]) -> bool:
    """Whether a formula can be an answer; the name of a variable alone cannot."""
    content = read_formula(formula)
    return len(content) > 1 and not (formula["d"] and is_words(canonical(content)) and "\\" not in content)
