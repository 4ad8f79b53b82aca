"""Exact numbers: the value of a written number, as a fraction.

Understands signs, thousands commas, currencies, units, percent, fractions, mixed numbers, decimals, repeating decimals,
scientific notation, and arithmetic on such numbers. No floating point is involved, and no input makes it slow: numbers
beyond a few thousand digits are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

MAX_CHARS = 400
MAX_NESTING = 30
MAX_BITS = 10_000

_CURRENCY = re.compile(r"(?i)(?:US|CA?|A)?[$€£¥₹]|\b(?:USD|EUR|GBP|Rs\.?|INR)(?![a-z])")
_APPROXIMATELY = re.compile(r"(?i)^(?:\\approx|\\sim|~|about|approximately|roughly|exactly|around)\s*")
_PERCENT = re.compile(r"(?i)\s*(?:%|percent(?:age points?)?|per cent)$")
_SCALE = re.compile(r"(?i)\s*\b(hundred|thousand|million|billion|trillion)s?$")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
# A unit is a word that cannot be a product of variables, or a character of a script without spaces.
_UNIT = re.compile(
    r"(?<=[\d)}%\s])(?:(?:[ckm]m|[km]g|[dmc][lL]|in|ft|yd|mi|oz|lbs?|mph|hrs?|secs?|[ap]m|th|st|nd|rd|km/h)(?![A-Za-z])"
    r"|(?<=\s)(?:[mglLshJNWVKCF](?![A-Za-z])|(?=[A-Za-z]*[aeiouAEIOU])[A-Za-z]{3})|(?=[A-Za-z]*[aeiou])[A-Za-z]{4}|[^\W\d_a-zA-Z])"
    r"(?:[^\W\d_]|[\s./^*()'-]|\^\s?\{[23]\}|[23](?!\d))*$"
)
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])|(?<![\d.,])\d{1,3}(?: \d{3})+(?! ?\d)")
_MIXED = re.compile(r"(\d+)\s*\\frac\{(\d+)\}\{(\d+)\}|(?<![\d.])(\d+) (\d+)\s?/\s?(\d+)")
_REPEATING = re.compile(r"(?<![\d.])(\d*)\.(\d*)\s*\\(?:overline|bar|dot)\s*\{?\s*(\d+)\s*\}?")
_TOKEN = re.compile(
    r"\d+(?:\.\d*)?(?:[eE][-+]?\d{1,4}(?!\d))?|\.\d+(?:[eE][-+]?\d{1,4}(?!\d))?|\\frac|\\sqrt|[-+*/^(){}]|\s+"
)


@dataclass(frozen=True)
class ExactNumber:
    """A number as written. With a percent sign or a word like million it has two readings."""

    value: Fraction
    factor: Fraction
    decimal: bool

    @property
    def readings(self) -> set[Fraction]:
        return {self.value, self.value * self.factor}


def equal(gold: ExactNumber, given: ExactNumber) -> bool:
    """Whether two numbers are equal. If either has a decimal point, they may differ by a millionth, or below 1 by a
    millionth of their value. `50%` stands for 50 and for 0.5; compared with `20%` or `2 million`, its value counts.
    """
    if gold.factor != 1 and given.factor != 1:
        pairs = [(gold.value * gold.factor, given.value * given.factor)]
    else:
        pairs = [(one, other) for one in gold.readings for other in given.readings]
    if gold.decimal or given.decimal:
        return any(abs(one - other) <= min(Fraction(1), max(abs(one), abs(other))) / 1_000_000 for one, other in pairs)
    return any(one == other for one, other in pairs)


def number(text: str) -> ExactNumber | None:
    """Read a canonical answer as a number; None if it is no number."""
    if len(text) > MAX_CHARS or not any(char.isdigit() for char in text):
        return None
    text = _APPROXIMATELY.sub("", text).strip()
    text = _CURRENCY.sub("", text)
    text = _UNIT.sub(_keep_scale, text).strip()
    factor = Fraction(1)
    if found := _PERCENT.search(text):
        text, factor = text[: found.start()], Fraction(1, 100)
    elif found := _SCALE.search(text):
        text, factor = text[: found.start()], Fraction(10 ** _SCALES[found[1].lower()])
    text = _GROUPED.sub(lambda each: re.sub("[, ]", "", each.group()), text.strip())
    text = _MIXED.sub(_expand_mixed, _REPEATING.sub(_expand_repeating, text))
    value = _Arithmetic(text).value()
    return None if value is None else ExactNumber(value, factor, "." in text)


def _keep_scale(found: re.Match[str]) -> str:
    """Return the part of a unit that changes the number, such as percent or million."""
    words = found.group().split()
    return f" {words[0]}" if words and (_PERCENT.match(words[0]) or _SCALE.match(words[0])) else ""


def _expand_repeating(found: re.Match[str]) -> str:
    r"""Write a repeating decimal as a fraction: 0.1\overline{6} is (16 - 1) / 90."""
    whole, fixed, period = found.groups()
    top = int(f"{whole}{fixed}{period}") - int(f"{whole}{fixed}" or "0")
    return rf"\frac{{{top}}}{{{(10 ** len(period) - 1) * 10 ** len(fixed)}}}"


def _expand_mixed(found: re.Match[str]) -> str:
    whole, top, bottom = (part for part in found.groups() if part is not None)
    return rf"({whole}+\frac{{{top}}}{{{bottom}}})"


class _TooHard(Exception):
    """Not a number that this module can compute."""


class _Arithmetic:
    """A recursive-descent reader of exact arithmetic."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        self._place = 0
        self._depth = 0
        end = 0
        for found in _TOKEN.finditer(text):
            if found.start() != end:
                return
            end = found.end()
            if not found.group().isspace():
                self._tokens.append(found.group())
        self._complete = end == len(text)

    _complete = False

    def value(self) -> Fraction | None:
        """Return the value; None unless the text is arithmetic that can be done exactly."""
        if not self._complete or not self._tokens:
            return None
        try:
            value = self._sum()
        except (_TooHard, ZeroDivisionError, ValueError):
            return None
        return value if self._place == len(self._tokens) else None

    def _next(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _take(self, *wanted: str) -> str:
        token = self._next()
        if wanted and token not in wanted:
            raise _TooHard
        self._place += 1
        return token

    def _sum(self) -> Fraction:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise _TooHard
        total = self._product()
        while self._next() in ("+", "-"):
            sign = 1 if self._take() == "+" else -1
            total = _check_bounds(total + sign * self._product())
        self._depth -= 1
        return total

    def _product(self) -> Fraction:
        total = self._power()
        while token := self._next():
            if token in ("*", "/"):
                self._take()
                factor = self._power()
                total = _check_bounds(total * factor if token == "*" else total / factor)
            elif token in ("(", "\\frac", "\\sqrt"):  # 2(3)
                total = _check_bounds(total * self._power())
            else:
                break
        return total

    def _power(self) -> Fraction:
        sign = 1
        while self._next() in ("+", "-"):
            sign = -sign if self._take() == "-" else sign
        base = self._atom()
        if self._next() == "^":
            self._take()
            exponent = self._group() if self._next() == "{" else Fraction(self._take_sign() * self._atom())
            base = _raise_to(base, exponent)
        return sign * base

    def _take_sign(self) -> int:
        return -1 if self._next() == "-" and self._take() else 1

    def _atom(self) -> Fraction:
        token = self._take()
        if token == "\\frac":
            top = self._group()
            return _check_bounds(top / self._group())
        if token == "\\sqrt":
            return _take_root(self._group())
        if token in ("(", "{"):
            value = self._sum()
            self._take(")" if token == "(" else "}")
            return value
        if token and (token[0].isdigit() or token[0] == "."):
            return _check_bounds(Fraction(token if token[-1] != "." else token[:-1]))
        raise _TooHard

    def _group(self) -> Fraction:
        self._take("{")
        value = self._sum()
        self._take("}")
        return value


def _check_bounds(value: Fraction) -> Fraction:
    if value.numerator.bit_length() + value.denominator.bit_length() > MAX_BITS:
        raise _TooHard
    return value


def _raise_to(base: Fraction, exponent: Fraction) -> Fraction:
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if exponent.denominator != 1 or size * abs(exponent.numerator) > MAX_BITS:
        raise _TooHard
    return base**exponent.numerator


def _take_root(value: Fraction) -> Fraction:
    if value < 0:
        raise _TooHard
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top != value.numerator or bottom * bottom != value.denominator:
        raise _TooHard
    return Fraction(top, bottom)


_VARIABLE = r"[A-Za-z](?:_\{?\w\}?)?|\\(?:theta|alpha|beta|lambda)"
_LESS, _GREATER = r"<|\\leq", r">|\\geq"
_BOUND = r"[^<>=,]+?"
_BETWEEN = re.compile(
    rf"(?P<one>{_BOUND})\s*(?:(?P<up>{_LESS})\s*(?P<x>{_VARIABLE})\s*(?P<up2>{_LESS})"
    rf"|(?P<down>{_GREATER})\s*(?P<y>{_VARIABLE})\s*(?P<down2>{_GREATER}))\s*(?P<other>{_BOUND})"
)
_ONE_SIDED = re.compile(rf"(?P<left>{_BOUND})\s*(?P<sign>{_LESS}|{_GREATER})\s*(?P<right>{_BOUND})")
_IS_VARIABLE = re.compile(_VARIABLE)
_SET = re.compile(rf"\\\{{\s*(?:{_VARIABLE})\s*(?:\\in\s*\S+\s*)?(?:\||:|\\mid)\s*(?P<inner>.*)\\\}}")
_OR = re.compile(r"\s*(?:\bor\b|\\lor|\\vee)\s*")
_AND = re.compile(r"\s*(?:\band\b|\\land|\\wedge)\s*")

Range = tuple[str, str, str, str]  # opening bracket, lower end, upper end, closing bracket


def write_interval(text: str) -> str | None:
    """Return the interval, or union of intervals, of a canonical inequality; None for anything else."""
    read = _read(text)
    return None if read is None else r"\cup".join(f"{a}{low},{high}{b}" for a, low, high, b in read[1])


def find_variable(text: str) -> str | None:
    """Return the variable that an inequality bounds; None if the text is no inequality."""
    read = _read(text)
    return None if read is None else read[0]


def _read(text: str) -> tuple[str, list[Range]] | None:
    if not re.search(rf"{_LESS}|{_GREATER}", text):
        return None
    inner = _SET.fullmatch(text)
    pieces = [_read_piece(piece) for piece in _OR.split(inner["inner"].strip() if inner else text)]
    known = [piece for piece in pieces if piece is not None]
    if len(known) < len(pieces) or len({name for name, _ in known}) != 1:
        return None
    return known[0][0], [found for _, found in known]


def _read_piece(text: str) -> tuple[str, Range] | None:
    """Read one inequality, or two that bound the same variable from both sides."""
    parts = [_read_inequality(part) for part in _AND.split(text)]
    if len(parts) == 1:
        return parts[0]
    if len(parts) != 2 or not parts[0] or not parts[1] or parts[0][0] != parts[1][0]:
        return None
    low, high = sorted((parts[0][1], parts[1][1]), key=lambda found: found[1] == r"-\infty")
    if low[1] == r"-\infty" or high[2] == low[2]:
        return None
    return parts[0][0], (low[0], low[1], high[2], high[3])


def _read_inequality(text: str) -> tuple[str, Range] | None:
    text = text.strip()
    if found := _BETWEEN.fullmatch(text):
        if found["up"]:
            low, first, second, high = found["one"], found["up"], found["up2"], found["other"]
        else:
            low, first, second, high = found["other"], found["down2"], found["down"], found["one"]
        return found["x"] or found["y"], (_choose_opening(first), low.strip(), high.strip(), _choose_closing(second))
    found = _ONE_SIDED.fullmatch(text)
    if not found:
        return None
    left, sign, right = found["left"].strip(), found["sign"], found["right"].strip()
    if _IS_VARIABLE.fullmatch(left):
        name, bound, below = left, right, sign in ("<", r"\leq")
    elif _IS_VARIABLE.fullmatch(right):
        name, bound, below = right, left, sign in (">", r"\geq")
    else:
        return None
    if below:
        return name, ("(", r"-\infty", bound, _choose_closing(sign))
    return name, (_choose_opening(sign), bound, r"\infty", ")")


def _choose_opening(sign: str) -> str:
    return "[" if "eq" in sign else "("


def _choose_closing(sign: str) -> str:
    return "]" if "eq" in sign else ")"
