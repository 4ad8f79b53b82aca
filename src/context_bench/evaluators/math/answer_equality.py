r"""Decides without algebra whether an answer equals the gold answer: numbers, tuples, intervals, inequalities, ratios,
matrices, sets and words. The result is None if algebra is needed.

Order and kind of brackets matter in tuples and intervals; order does not matter in sets and bare lists.
`x = 5` is 5, `x \in [1, 2]` is the interval, and so is `1 \leq x \leq 2`. Units and currencies are ignored. An
exact value with its approximation (`1/3 \approx 0.33`) is right when either of them is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from context_bench.evaluators.math.exact import equal, find_variable, number, write_interval
from context_bench.evaluators.math.notation import canonical, is_words, read_spelled_number, write_digits

_LISTED = re.compile(r"\s*,\s*(?:and\b|or\b)?\s*|\s+(?:and|or)\s+|\s*;\s*")
_OPENING, _CLOSING = ("(", "[", "\\{"), (")", "]", "\\}")
_NAMED = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=(?!=)\s*")
_RATIO = re.compile(r"(?i)(\d+(?:\.\d+)?(?:\s?(?::|\bto\b)\s?\d+(?:\.\d+)?)+)\s*(?:([ap])\.?\s?m\.?|o'clock)?")
_MATRIX = re.compile(r"\\begin\{([bpvBV]?matrix|array)\}(?:\{[clr| ]*\})?(.*)\\end\{\1\}", re.DOTALL)


def split_brackets(text: str) -> tuple[str, str]:
    """Return the matching brackets around a text, and the text between them."""
    opening = next((mark for mark in (*_OPENING, "{") if text.startswith(mark)), "")
    closing = next((mark for mark in (*_CLOSING, "}") if text.endswith(mark)), "")
    inner = text[len(opening) : len(text) - len(closing)]
    if not opening or not closing or _measure_depth(inner) is None:
        return "", text
    kind = opening + closing
    return ("\\{\\}" if kind == "{}" else kind), inner.strip()


def _measure_depth(text: str) -> int | None:
    """Return the number of brackets left open; None if a closing bracket has no opening one."""
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return None
    return depth


def split_items(text: str) -> list[str]:
    r"""Split a list at the commas outside of brackets; `\pm 3` is two items."""
    parts, start = [], 0
    for found in _LISTED.finditer(text):
        if _measure_depth(text[start : found.start()]) == 0:
            parts.append(text[start : found.start()])
            start = found.end()
    return [each for part in (*parts, text[start:]) for each in _split_signs(part)]


def _split_signs(text: str) -> list[str]:
    if text.count("\\pm") != 1:
        return [text]
    before, _, after = text.partition("\\pm")
    return [f"{before}{'+' if before.strip(' (={') else ''}{after}", f"{before}-{after}"]


def read_named_values(parts: list[str]) -> tuple[list[str], list[str]]:
    """Return the names and the values of `x = 3, y = 4`; no names unless every part has a name."""
    found = [_NAMED.match(part) for part in parts]
    if not all(found):
        return [], parts
    return [each[1] for each in found if each], [part[each.end() :] for part, each in zip(parts, found) if each]


def read_ratio(text: str) -> tuple[Fraction, ...] | None:
    """Return the parts of a ratio or a clock time: 3:4, 2 to 1, 10:45 a.m."""
    found = _RATIO.fullmatch(text)
    return tuple(Fraction(part) for part in re.findall(r"\d+(?:\.\d+)?", found[1])) if found else None


def is_same_ratio(one: str, other: str) -> bool:
    """Whether two ratios or clock times are the same: 3:45 p.m. equals 15:45, and also 3:45 without a.m. or p.m."""
    return bool(_list_clock_readings(one) & _list_clock_readings(other))


def _list_clock_readings(text: str) -> set[tuple[str | None, tuple[Fraction, ...]]]:
    """Return the parts of a ratio, and its readings as a clock time: a.m., p.m. and on the 24-hour clock."""
    found, parts = _RATIO.fullmatch(text), read_ratio(text)
    if not found or not parts:
        return set()
    if not found[2]:
        return {("a", parts), ("p", parts), ("24", parts)}
    half = found[2].lower()
    return {(half, parts), ("24", (parts[0] % 12 + (12 if half == "p" else 0), *parts[1:]))}


def read_matrix(text: str) -> list[list[str]] | None:
    """Return the cells of a matrix, row by row; None for anything else, including determinants."""
    found = _MATRIX.fullmatch(text.strip())
    if not found or found[1] in ("vmatrix", "Vmatrix"):
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", found[2]) if row.strip()]
    return [[cell.strip() for cell in row.split("&")] for row in rows]


# The part before the value: a name, with index and arguments, or arithmetic without letters.
_ASSIGNED = re.compile(
    r"\s*(?:(?:[A-Za-z]|\\[a-z]+|[A-Za-z][A-Za-z ]{1,40})(?:_\{?\w+\}?)?(?:\^(?:\{-1\}|T|\{T\}|\\top))?'?\s*"
    r"(?:\([A-Za-z, ]*\))?|\([A-Za-z](?:, ?[A-Za-z])+\)|[^A-Za-z=<>\\,]+)"
    r"\s*(?:=|\\in(?![a-z])|\\approx)"
)
_APPROX = re.compile(r"\\(?:approx|simeq)(?![a-zA-Z])")
_CHOICE = re.compile(r"\(?[A-J][).:]\s+(?=\S)")
_WORDS = re.compile(r"[^\W_]+")
_NUMERAL = re.compile(r"-?\d+(?:[.,/]\d+)*%?")
MAX_CHARS = 2000
_SHORT_WORDS = {"yes", "no", "odd", "all", "any", "one", "two", "not"}

Ratio = tuple[Fraction, ...] | None


def compare(gold: str, answer: str) -> bool | None:
    """Compare without algebra; return None if algebra is needed."""
    gold = canonical(gold)
    verdicts = [_compare(gold, each) for each in list_readings(answer) if len(each) <= MAX_CHARS + len(gold)]
    return True if True in verdicts else None if None in verdicts else False


def list_readings(answer: str) -> list[str]:
    r"""List the canonical readings of an answer; `1/3 \approx 0.3` has two, the exact value and the approximate one."""
    text = canonical(answer)
    exact, *rounded = (part.strip() for part in _APPROX.split(text))
    if not rounded or len(text) > MAX_CHARS:
        return [text]
    value = _drop_name(exact)
    return [each for each in (value if re.search(r"\d|\\", value) else "", rounded[-1]) if each] or [text]


def count_parts(gold: str) -> tuple[str, int]:
    """Return the brackets of an accepted answer, and the number of its parts."""
    kind, inner = split_brackets(canonical(gold))
    return kind, len(split_items(inner))


def _compare(gold: str, answer: str) -> bool | None:
    if not answer:
        return False
    if _make_compact(gold) == _make_compact(answer):
        return True
    gold_number, answer_number = number(gold), number(answer)
    if gold_number and answer_number:
        return equal(gold_number, answer_number)
    if (verdict := _compare_shapes(gold, answer)) is not None:
        return verdict
    gold_value, answer_value = _drop_name(gold), _drop_name(answer)
    if (gold_value, answer_value) != (gold, answer) and not _have_two_names(gold, gold_value, answer, answer_value):
        return _compare(gold_value, answer_value)
    if _CHOICE.match(answer) and not _CHOICE.match(gold):
        return _compare(gold, _CHOICE.sub("", answer, count=1))
    if _has_structure(gold) or _has_structure(answer):
        return _compare_structures(gold, answer)
    if is_words(gold) or is_words(answer) or not answer.isascii():
        return _compare_words(gold, answer)
    return None


def _compare_shapes(gold: str, answer: str) -> bool | None:
    """Compare inequalities, ratios and matrices; None if neither answer has such a form, or the two forms are not
    comparable."""
    gold_variable, answer_variable = find_variable(gold), find_variable(answer)
    variables = {name for name in (gold_variable, answer_variable) if name}
    if len(variables) == 1:
        # An inequality is compared by its interval; with another one only if they bound the same variable.
        return _compare(write_interval(gold) or _drop_name(gold), write_interval(answer) or _drop_name(answer))
    gold_ratio, answer_ratio = read_ratio(gold), read_ratio(answer)
    if gold_ratio and answer_ratio:
        return is_same_ratio(gold, answer)
    if gold_ratio or answer_ratio:
        return _compare_ratio(gold, gold_ratio, answer, answer_ratio)
    gold_rows, answer_rows = read_matrix(_drop_name(gold)), read_matrix(_drop_name(answer))
    if gold_rows and answer_rows:
        if [len(row) for row in gold_rows] != [len(row) for row in answer_rows]:
            return False
        gold_cells, answer_cells = ([cell for row in rows for cell in row] for rows in (gold_rows, answer_rows))
        return _compare_in_order(gold_cells, answer_cells)
    return None


def _compare_ratio(gold: str, gold_ratio: Ratio, answer: str, answer_ratio: Ratio) -> bool | None:
    """3:4 is 3/4, but neither 3 nor 4."""
    parts = gold_ratio or answer_ratio or ()
    other = number(answer if gold_ratio else gold)
    if not other or len(parts) != 2 or not parts[1]:
        return False if other else None
    return other.value.denominator != 1 and other.value == parts[0] / parts[1]


def _make_compact(text: str) -> str:
    """Remove spaces, and the brackets around the letter of a choice."""
    text = re.sub(r"\s", "", text)
    return text[1] if len(text) == 3 and text[0] == "(" and text[2] == ")" else text


def _drop_name(text: str) -> str:
    """Return the value in `x = 5`; several equals signs are a chain, of which the last value counts."""
    found = _ASSIGNED.match(text)
    if not found or (split_items(text[found.end() :])[1:] and not split_brackets(text[found.end() :].strip())[0]):
        return text
    return re.split(r"=|\\approx", text[found.end() :])[-1].strip() or text


def _have_two_names(gold: str, gold_value: str, answer: str, answer_value: str) -> bool:
    """`x = 5` and `y = 5` are different statements."""
    if gold_value == gold or answer_value == answer:
        return False
    return _make_compact(gold.partition("=")[0]) != _make_compact(answer.partition("=")[0])


def _has_structure(text: str) -> bool:
    return "\\cup" in text or len(split_items(split_brackets(text)[1])) > 1


def _compare_structures(gold: str, answer: str) -> bool | None:
    if "\\cup" in gold or "\\cup" in answer:
        return _compare_in_any_order(gold.split("\\cup"), answer.split("\\cup"))
    (gold_kind, gold_inner), (answer_kind, answer_inner) = split_brackets(gold), split_brackets(answer)
    gold_names, gold_items = read_named_values(split_items(gold_inner))
    answer_names, answer_items = read_named_values(split_items(answer_inner))
    if len(gold_items) != len(answer_items):
        # 1,2 is no 12, but what \pm or a missing bracket hides takes algebra
        return False if all(map(number, (*gold_items, *answer_items))) else None
    if len({*answer_names}) > 1 and gold_names in ([], answer_names) and gold_kind in ("", "()"):
        return _compare_in_order(gold_items, answer_items)  # x = 3, y = 4 is the pair (3, 4)
    if {gold_kind, answer_kind} <= {"", "\\{\\}"}:
        return _compare_in_any_order(gold_items, answer_items)
    if gold_kind == answer_kind:
        return _compare_in_order(gold_items, answer_items)
    if gold_kind and answer_kind and "\\" not in gold_kind + answer_kind and len(gold_items) == 2:
        return False
    return None


def _compare_in_order(gold: Sequence[str], answer: Sequence[str]) -> bool | None:
    verdicts = [_compare(one.strip(), other.strip()) for one, other in zip(gold, answer)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _compare_in_any_order(gold: Sequence[str], answer: Sequence[str]) -> bool | None:
    """Match each item of the gold with an item of the answer; undecided if any pair is undecided."""
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
    gold_words, answer_words = (
        [word for word in _WORDS.findall(text.casefold()) if word != "and"] for text in (gold, answer)
    )
    if gold_words == answer_words:
        return True
    if number(gold):
        # A number in a sentence is the answer when it is the only one.
        found = _NUMERAL.findall(answer) or _NUMERAL.findall(read_spelled_number(answer) or write_digits(answer))
        return len(found) == 1 and bool(_compare(gold, found[0]))
    # Short words may be products of variables, and words next to a formula may be an equation.
    words = _WORDS.findall(gold + " " + answer)
    plain = any((len(word) > 3 and word.isalpha()) or word.lower() in _SHORT_WORDS for word in words)
    return False if plain and "\\" not in gold + answer else None
