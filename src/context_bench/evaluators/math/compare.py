r"""Is an answer the gold answer? Decided here where plain reading suffices, which covers numbers, tuples,
intervals, sets and words; None where algebra is needed.

Order matters in tuples and intervals, as do the kinds of their brackets; it does not in sets and bare lists.
`x = 5` is 5, `x \in [1, 2]` is the interval. Units and currencies are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from context_bench.evaluators.math.exact import equal, number
from context_bench.evaluators.math.notation import canonical, is_words

__all__ = ["compare"]

# A name, with index and arguments, or arithmetic without letters: what stands before the value.
_ASSIGNED = re.compile(
    r"\s*(?:(?:[A-Za-z]|\\[a-z]+|[A-Za-z][A-Za-z ]{1,40})(?:_\{?\w+\}?)?'?\s*(?:\([A-Za-z, ]*\))?|[^A-Za-z=<>\\,]+)"
    r"\s*(?:=|\\in(?![a-z])|\\approx)"
)
_LISTED = re.compile(r"\s*,\s*(?:and\b|or\b)?\s*|\s+(?:and|or)\s+|\s*;\s*")
_OPENING, _CLOSING = ("(", "[", "\\{"), (")", "]", "\\}")
_CHOICE = re.compile(r"\(?[A-J][).:]\s+(?=\S)")
_WORDS = re.compile(r"[^\W_]+")
_NUMERAL = re.compile(r"-?\d+(?:[.,/]\d+)*%?")
_LONGEST = 2000
_SHORT_WORDS = {"yes", "no", "odd", "all", "any", "one", "two", "not"}


def compare(gold: str, answer: str) -> bool | None:
    """True or False where that can be told by reading, None where it takes algebra."""
    gold, answer = canonical(gold), canonical(answer)
    if len(answer) > _LONGEST + len(gold):  # no answer: whatever the reply put in its box
        return False
    return _compare(gold, answer)


def _compare(gold: str, answer: str) -> bool | None:
    if not answer:
        return False
    if _compact(gold) == _compact(answer):
        return True
    gold_number, answer_number = number(gold), number(answer)
    if gold_number and answer_number:
        return equal(gold_number, answer_number)
    gold_value, answer_value = _assigned(gold), _assigned(answer)
    if (gold_value, answer_value) != (gold, answer) and not _two_names(gold, gold_value, answer, answer_value):
        return _compare(gold_value, answer_value)
    if _CHOICE.match(answer) and not _CHOICE.match(gold):
        return _compare(gold, _CHOICE.sub("", answer, count=1))
    if _structured(gold) or _structured(answer):
        return _compare_structures(gold, answer)
    if is_words(gold) or is_words(answer):
        return _compare_words(gold, answer)
    return None


def _compact(text: str) -> str:
    """Without spaces, and a letter of a choice without its brackets."""
    text = re.sub(r"\s", "", text)
    return text[1] if len(text) == 3 and text[0] == "(" and text[2] == ")" else text


def _assigned(text: str) -> str:
    """The value in `x = 5`; several equals signs are a chain, of which the last value counts."""
    found = _ASSIGNED.match(text)
    if not found or _items(text)[1:]:
        return text
    return re.split(r"=|\\approx", text[found.end() :])[-1].strip() or text


def _two_names(gold: str, gold_value: str, answer: str, answer_value: str) -> bool:
    """`x = 5` and `y = 5` are different statements."""
    if gold_value == gold or answer_value == answer:
        return False
    return _compact(gold.partition("=")[0]) != _compact(answer.partition("=")[0])


def _structured(text: str) -> bool:
    return "\\cup" in text or len(_items(_bare(text)[1])) > 1


def _bare(text: str) -> tuple[str, str]:
    """The brackets around a text, if they belong together, and what is between them."""
    opening = next((mark for mark in (*_OPENING, "{") if text.startswith(mark)), "")
    closing = next((mark for mark in (*_CLOSING, "}") if text.endswith(mark)), "")
    inner = text[len(opening) : len(text) - len(closing)]
    if not opening or not closing or _depth(inner) is None:
        return "", text
    kind = opening + closing
    return ("\\{\\}" if kind == "{}" else kind), inner.strip()


def _depth(text: str) -> int | None:
    """0 when all brackets close; None when one closes that was not opened."""
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return None
    return depth


def _items(text: str) -> list[str]:
    """The parts of a list, by the commas that stand in no bracket."""
    items, start = [], 0
    for found in _LISTED.finditer(text):
        if _depth(text[start : found.start()]) == 0:
            items.append(text[start : found.start()])
            start = found.end()
    return [*items, text[start:]]


def _compare_structures(gold: str, answer: str) -> bool | None:
    if "\\cup" in gold or "\\cup" in answer:
        return _any_order(gold.split("\\cup"), answer.split("\\cup"))
    (gold_kind, gold_inner), (answer_kind, answer_inner) = _bare(gold), _bare(answer)
    gold_items, answer_items = _items(gold_inner), _items(answer_inner)
    if len(gold_items) != len(answer_items):
        # 1,2 is no 12, but what \pm or a missing bracket hides takes algebra
        return False if all(map(number, (*gold_items, *answer_items))) else None
    if {gold_kind, answer_kind} <= {"", "\\{\\}"}:
        return _any_order(gold_items, answer_items)
    if gold_kind == answer_kind:
        return _in_order(gold_items, answer_items)
    if gold_kind and answer_kind and "\\" not in gold_kind + answer_kind and len(gold_items) == 2:
        return False
    return None


def _in_order(gold: Sequence[str], answer: Sequence[str]) -> bool | None:
    verdicts = [_compare(one.strip(), other.strip()) for one, other in zip(gold, answer)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _any_order(gold: Sequence[str], answer: Sequence[str]) -> bool | None:
    """Match each item of the gold with one of the answer; undecided as soon as a pair is."""
    left = list(answer)
    for item in gold:
        verdicts = [_compare(item.strip(), other.strip()) for other in left]
        if True in verdicts:
            del left[verdicts.index(True)]
        elif None in verdicts:
            return None
        else:
            return False
    return not left


def _compare_words(gold: str, answer: str) -> bool | None:
    if _WORDS.findall(gold.casefold()) == _WORDS.findall(answer.casefold()):
        return True
    if number(gold):
        # A number in a sentence is the answer when it is the only one.
        found = _NUMERAL.findall(answer)
        return len(found) == 1 and bool(_compare(gold, found[0]))
    # Short words may be products of variables, and words beside a formula may be an equation.
    words = _WORDS.findall(gold + " " + answer)
    plain = any((len(word) > 3 and word.isalpha()) or word.lower() in _SHORT_WORDS for word in words)
    return False if plain and "\\" not in gold + answer else None
