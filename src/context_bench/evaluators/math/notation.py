"""Normalises mathematical notation: digits of any script, Unicode signs, LaTeX variants.

`unify` works on a whole reply and changes no meaning; `canonical` works on an answer and drops insignificant parts
(spacing, sizes of brackets, degree signs, the box).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_ONES_IN_ORDER = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_IN_ORDER = "twenty thirty forty fifty sixty seventy eighty ninety"
ONES = {word: value for value, word in enumerate(_ONES_IN_ORDER.split())}
TENS = {word: 10 * value for value, word in enumerate(_TENS_IN_ORDER.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
          "eighth": 8, "ninth": 9, "tenth": 10}  # fmt: skip

_WORD = "|".join(sorted((*ONES, *TENS, *_SCALES), key=len, reverse=True))
_PART = "|".join(_PARTS)
_SPELLED = re.compile(
    rf"(?i)(?<![\w-])(?P<sign>(?:minus|negative)\s+)?(?:an?\s+(?=hundred|thousand|million|billion|dozen))?"
    rf"(?P<number>(?:{_WORD})(?:(?:(?<=hundred)\s+and\s+|(?<=thousand)\s+and\s+|(?<=million)\s+and\s+|[\s-]+)(?:{_WORD}))*)"
    rf"(?:[\s-]+(?P<part>{_PART})s?|\s+and\s+(?:a|one)[\s-]+(?P<extra>{_PART}))?(?![\w-]|\.\d)"
)
_MINUEND = re.compile(rf"(?i)(?:[\d)]|\b(?:{_WORD}))\s*\Z")

_FOREIGN = {
    word: number
    for words in (
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
        "siebzehn achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
        "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
        "dix-huit dix-neuf vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix cent",
        "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
        "dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
        "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
        "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать сорок пятьдесят шестьдесят "
        "семьдесят восемьдесят девяносто сто",
    )
    for word, number in zip(words.split(), (*range(20), *range(20, 101, 10)))
}

_CJK_DIGITS = {digit: value for value, digit in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CJK_UNITS = {"十": 10, "百": 100, "千": 1000}
_CJK = re.compile("(?P<share>百分之)?(?P<number>[〇零一二两兩三四五六七八九十百千万]+)")


class Spelled(NamedTuple):
    """A number in words: its place, its digits, and whether it has several words."""

    start: int
    end: int
    digits: str
    compound: bool


def find_spelled_numbers(text: str) -> Iterator[Spelled]:
    """Find the English number words of a text, except malformed numbers ("two three")."""
    for found in _SPELLED.finditer(text):
        words = re.split(r"[\s-]+", found["number"].lower())
        value = _read_value(words)
        if value is None:
            continue
        subtracted = found["sign"] and _MINUEND.search(text, max(0, found.start() - 12), found.start())
        digits = f"{'-' if found['sign'] and not subtracted else ''}{value}"
        if found["part"]:
            digits += f"/{_PARTS[found['part'].lower()]}"
        elif found["extra"]:
            digits += f" 1/{_PARTS[found['extra'].lower()]}"
        compound = bool(found["sign"] or found["part"] or found["extra"]) or len(words) > 1
        yield Spelled(found.start(), found.end(), digits, compound)


def read_spelled_number(text: str) -> str | None:
    """Return the digits of a text that is a number in words of any of the languages, or begins with English ones."""
    word = text.strip().casefold()
    if word in _FOREIGN:
        return str(_FOREIGN[word])
    if (cjk := _read_cjk(word)) is not None:
        return str(cjk)
    first = next(find_spelled_numbers(text), None)
    return first.digits if first and not text[: first.start].strip() else None


def write_digits(text: str) -> str:
    """Return the text with its English number words written in digits."""
    pieces, end = [], 0
    for spelled in find_spelled_numbers(text):
        pieces += [text[end : spelled.start], spelled.digits]
        end = spelled.end
    return "".join(pieces) + text[end:]


def read_cjk_numerals(text: str) -> str:
    """Write Chinese numerals of two or more characters in digits, and 百分之 as a percent sign."""
    return _CJK.sub(_write_cjk, text)


def _read_value(words: list[str]) -> int | None:
    """Return the value of number words in order, or None if they form no number."""
    total, current = 0, 0
    room, smallest = 100, 10**15  # upper limits for the next plain word, and for the next scale
    for word in words:
        scale = _SCALES.get(word, 0)
        if word == "and":
            continue
        if scale in (12, 100):
            if current >= 100:
                return None
            current, room = (current or 1) * scale, 100 if scale == 100 else 0
        elif scale:
            if scale >= smallest:
                return None
            total, current, room, smallest = total + (current or 1) * scale, 0, 100, scale
        else:
            size = TENS.get(word, ONES.get(word, 0))
            if size >= room:
                return None
            current, room = current + size, 10 if word in TENS else 0
    return total + current


def _write_cjk(found: re.Match[str]) -> str:
    value = _read_cjk(found["number"]) if len(found["number"]) > 1 or found["share"] else None
    if value is None:
        return found.group()
    return f"{value}{'%' if found['share'] else ''}"


def _read_cjk(text: str) -> int | None:
    """Return the value of a well-formed Chinese numeral, or None."""
    if not text or not all(char in _CJK_DIGITS or char in _CJK_UNITS or char == "万" for char in text):
        return None
    total, current, digit, last = 0, 0, None, 10_000
    for char in text:
        if char in _CJK_DIGITS:
            if digit:
                return None
            digit = _CJK_DIGITS[char]
        elif char == "万":
            if total or not current + (digit or 0):
                return None
            total, current, digit, last = (current + (digit or 0)) * 10_000, 0, None, 10_000
        else:
            unit = _CJK_UNITS[char]
            if unit >= last or (digit is None and unit != 10):
                return None
            current, digit, last = current + (digit or 1) * unit, None, unit
    return total + current + (digit or 0)


_FOREIGN_DIGIT = re.compile(r"(?![0-9])\d")
_VULGAR = re.compile(r"[¼-¾⅐-⅞]")
_SIGNS = str.maketrans({"，": ",", "．": ".", "：": ":", "％": "%", "٪": "%", "−": "-", "－": "-", "﹣": "-", "＝": "=",
                        "＋": "+", "（": "(", "）": ")", "＄": "$", "￥": "¥", "٫": ".", "٬": ",", "\u00a0": " ",
                        "\u202f": " ", "\u2009": " ", "\u200b": "", "\u2060": "", "\ufeff": ""})  # fmt: skip
_DASH_AS_SIGN = re.compile(r"(?<![\w)])[–‒](?=[$€£]?\d)")
# Where the euro is, a comma before two digits is a decimal one and a point before three parts thousands.
_EURO = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3})+|\d+)(?:,(\d{1,2}))?(?=\s?(?:€|Euro\b|EUR\b))")
_POINTS_AS_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![\d.])")
_MYRIADS = re.compile(r"(?<![\d.,])(\d[\d,]*(?:\.\d+)?)万(\d{1,4}(?!\d))?")

_SYMBOLS = {
    "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "÷": "/", "⁄": "/", "π": r"\pi ", "∞": r"\infty ",
    "≤": r"\leq ", "≥": r"\geq ", "≠": r"\neq ", "≈": r"\approx ", "±": r"\pm ", "∪": r"\cup ", "∩": r"\cap ",
    "∈": r"\in ", "∅": r"\emptyset ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "°": r"^\circ ",
}  # fmt: skip
_SYMBOL = re.compile("|".join(_SYMBOLS))
_SUPERSCRIPT = re.compile("[⁻⁺]?[⁰¹²³⁴-⁹]+")
_RAISED = str.maketrans("⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹", "-+0123456789")
_ROOT_SIGN = re.compile(r"√\s*(?:\(([^()]*)\)|(\w+))")
_ROOT_CALL = re.compile(r"(?<![\\A-Za-z])sqrt\s?\(([^()]*)\)")
_REPEATED = re.compile(r"(?<![\d.,])(\d+)\.(\d{2,15})\s?(?:\.{3}|…|\\[lc]?dots(?![a-zA-Z]))")
# After "is" or a colon, minus is a sign; after a number it subtracts.
_SIGN_WORD = re.compile(
    r"(?im)(?:\bnegative|(?:(?<=\bis\s)|(?<=\bbe\s)|(?<=\bto\s)|(?<=\bof\s)|(?<=\bat\s)|(?<=\bnow\s)|(?<=\bequals\s)"
    r"|(?<=[:=(]\s)|(?<=[*(])|^)minus)\s+(?=[$€£]?\d)"
)
# Texts with decimal commas are recognised by their most common words.
_COMMA_LANGUAGE = re.compile(
    r"(?i)(?<!\\)\b(?:der|das|und|ist|sind|ein|eine|jede[rsn]?|für|wir|insgesamt|antwort|le|les|du|des|une|est|donc|soit"
    r"|vaut|pour|réponse|el|los|las|una|es|entonces|para|respuesta|uma|são|portanto|resposta)\b|[а-яё]{2}"
)
_ENGLISH = re.compile(r"(?i)\b(?:the|and|of|are|is|so|we|with|answer)\b")
_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d+),(\d{1,2}|\d{4,})(?![\d,.]*\d)")

# Units that follow a symbol, where a word could as well be a product of variables: 25\pi cm^2.
_UNIT_NAME = (
    r"(?:(?:square|cubic|sq\.?|cu\.?)\s*)?(?:[ckm]?m|in(?:ch(?:es)?)?|f(?:ee|oo)?t|y(?:ar)?ds?|mi(?:les?)?|(?:centi|kilo|"
    r"milli)?met(?:er|re)s?|units?|degrees?|radians?|rad|hours?|h|hrs?|min(?:ute)?s?|s|sec(?:ond)?s?|days?|weeks?|months?|"
    r"years?|[km]?g|lbs?|oz|[mc]?[lL]|lit(?:er|re)s?|gallons?|dollars?|cents?|mph|km/h|m/s|[NJWV]|Hz)"
)
_TEXT = r"\\(?:text(?:rm|normal)?|mathrm|mbox|operatorname)\s*\{"
_SYMBOL_UNIT = re.compile(
    rf"(?<=[\w)}}])(?:\\[,;:! ]|\s|~)*(?:{_TEXT}\s*{_UNIT_NAME}\s*\.?\s*(?:\^\{{?[23]\}}?\s*)?\}}"
    rf"|(?<=\s)(?:[ckm]m|square\s\w+|cubic\s\w+|units?|inches|feet|met(?:er|re)s))(?:\s*\^\s*\{{?[23]\}}?)?\s*$"
)

_REWRITES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?<=\d),\\!\s*(?=\d{3})", ","),
        (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits)(?![a-zA-Z])\s*\.?", ""),
        (r"(?<=\d)(?:\\[,!; ]|\{,\}|\\thinspace)\s*(?=\d{3}(?!\d))", ","),
        (r"(?<!\\)\\(?:[,!;: ]|quad\b|qquad\b)|~", " "),
        (r"\\[dtc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\\(?:text(?:bf|it|rm|normal)?|math(?:rm|bf|it|sf)|mbox|operatorname|boldsymbol)\s*\{([^{}]*)\}", r" \1 "),
        (r"\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\degree\b", ""),
        (r"\\([%$#&])", r"\1"),
        (r"\\varnothing(?![a-zA-Z])", r"\\emptyset"),
        (r"(?<![\w)}])\+\s*\\infty", r"\\infty"),
        (r"\\lbrace\b", r"\\{"),
        (r"\\rbrace\b", r"\\}"),
        (r"\\(l|g|n)e(?![a-zA-Z])", r"\\\1eq"),
        (r"\\(?:cdot|times|ast)(?![a-zA-Z])", "*"),
        (r"(?<=\d)\s*x\s*(?=10\s?\^)", "*"),
        (r"\\div(?![a-zA-Z])", "/"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
        (r"(\\frac\s*\{[^{}]*\})\s*(\w)", r"\1{\2}"),
        (r"\\sqrt\s*(\w)", r"\\sqrt{\1}"),
        (r"^\s*=\s*", ""),
        (r"\s+", " "),
    )
)

_WRAPPINGS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`"), ('"', '"'))
_NO_WORDS = {
    "sin", "cos", "tan", "cot", "sec", "csc", "log", "ln", "exp", "sqrt", "pi", "max", "min", "gcd", "and", "or",
}  # fmt: skip
_LATIN_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def unify(text: str) -> str:
    """Return the text with ASCII digits and signs, symbols as LaTeX, and digits grouped the English way."""
    if not text.isascii():
        text = _SUPERSCRIPT.sub(_write_exponent, _VULGAR.sub(_write_fraction, text))
        text = _FOREIGN_DIGIT.sub(lambda found: str(unicodedata.decimal(found.group())), text)
        text = _DASH_AS_SIGN.sub("-", text.translate(_SIGNS))
        text = read_cjk_numerals(_MYRIADS.sub(_write_myriads, text))
        text = _ROOT_SIGN.sub(lambda found: rf"\sqrt{{{found[1] or found[2]}}}", text)
        text = _SYMBOL.sub(lambda found: _SYMBOLS[found.group()], text)
    text = _EURO.sub(lambda found: found[1].replace(".", "") + (f".{found[2]}" if found[2] else ""), text)
    text = _POINTS_AS_GROUPS.sub(lambda found: found.group().replace(".", ""), text)
    # Long replies are mostly plain text: a search for the bare words is much faster than the patterns.
    if "," in text and _DECIMAL_COMMA.search(text) and not _ENGLISH.search(text) and _COMMA_LANGUAGE.search(text):
        text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    if "inus" in text or "egative" in text:
        text = _SIGN_WORD.sub("-", text)
    if "..." in text or "…" in text or "dots" in text:
        text = _REPEATED.sub(_write_period, text)
    return _ROOT_CALL.sub(r"\\sqrt{\1}", text) if "sqrt" in text else text


def _write_period(found: re.Match[str]) -> str:
    """Write `0.8333...` as a repeating decimal if its last digits repeat; else leave it unchanged."""
    digits = found[2]
    for length in range(1, len(digits) // 2 + 1):
        period, start = digits[-length:], len(digits) - length
        while digits[:start].endswith(period):
            start -= length
        if len(digits) - start >= max(2 * length, 3 if start else 2):
            return rf"{found[1]}.{digits[:start]}\overline{{{period}}}"
    return found.group()


def _write_exponent(found: re.Match[str]) -> str:
    exponent = found.group().translate(_RAISED)
    return f"^{exponent}" if len(exponent) == 1 else f"^{{{exponent}}}"


def _write_fraction(found: re.Match[str]) -> str:
    return " " + unicodedata.normalize("NFKD", found.group()).replace("⁄", "/")


def _write_myriads(found: re.Match[str]) -> str:
    whole, _, part = found[1].replace(",", "").partition(".")
    if len(part) > 4:
        return found.group()
    return str(int(whole + part.ljust(4, "0")) + int(found[2] or 0)) if len(whole) < 20 else found.group()


@lru_cache(maxsize=4096)
def canonical(answer: str, *, keep_units: bool = False) -> str:
    """Return an answer in single-spaced LaTeX; units after a symbol are dropped unless they are to be kept."""
    text = unwrap(unify(answer))
    text = text if keep_units else _SYMBOL_UNIT.sub("", text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    return unwrap(text)


def unwrap(text: str) -> str:
    """Remove the dollars, asterisks and quotes around a text, and the mark that ends the sentence."""
    previous = None
    while text != previous:
        previous = text
        text = text.strip().strip("*_").rstrip(".,;:").strip()
        for opening, closing in _WRAPPINGS:
            inner = text[len(opening) : len(text) - len(closing)]
            if text.startswith(opening) and text.endswith(closing) and inner and closing not in inner:
                text = inner
    return text


def is_words(text: str) -> bool:
    """Whether a canonical answer contains words, other than names of functions and list conjunctions."""
    return any(word.lower() not in _NO_WORDS for word in _LATIN_WORD.findall(text))
