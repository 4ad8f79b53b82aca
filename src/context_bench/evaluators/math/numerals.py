"""Numbers in words: "forty-two", "minus five", "two thirds", 十八.

English is read in full; of German, French, Spanish and Russian the words up to twenty and the tens, and Chinese
numerals where two or more stand together (a lone 一 or 十 is mostly part of another word).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Spelled", "find_spelled_numbers", "read_cjk_numerals", "read_spelled_number", "write_digits"]

_ONES_IN_ORDER = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS_IN_ORDER = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES = {word: value for value, word in enumerate(_ONES_IN_ORDER.split())}
_TENS = {word: 10 * value for value, word in enumerate(_TENS_IN_ORDER.split(), start=2)}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_PARTS = {"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
          "eighth": 8, "ninth": 9, "tenth": 10}  # fmt: skip

_WORD = "|".join(sorted((*_ONES, *_TENS, *_SCALES), key=len, reverse=True))
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
    """A number in words: where it is, its digits, and whether it is more than a single word."""

    start: int
    end: int
    digits: str
    compound: bool


def find_spelled_numbers(text: str) -> Iterator[Spelled]:
    """Find the English number words of a text; what is not a well-formed number ("two three") is left out."""
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
    """The digits of a text that is one number in words, in any of the languages, or begins with an English one."""
    word = text.strip().casefold()
    if word in _FOREIGN:
        return str(_FOREIGN[word])
    if (cjk := _read_cjk(word)) is not None:
        return str(cjk)
    first = next(find_spelled_numbers(text), None)
    return first.digits if first and not text[: first.start].strip() else None


def write_digits(text: str) -> str:
    """The text with its English number words written in digits."""
    pieces, end = [], 0
    for spelled in find_spelled_numbers(text):
        pieces += [text[end : spelled.start], spelled.digits]
        end = spelled.end
    return "".join(pieces) + text[end:]


def read_cjk_numerals(text: str) -> str:
    """The text with Chinese numerals of two and more characters written in digits, and 百分之 as a percent sign."""
    return _CJK.sub(_write_cjk, text)


def _read_value(words: list[str]) -> int | None:
    """The value of number words in order, or None where they make no number."""
    total, current = 0, 0
    room, smallest = 100, 10**15  # what the next plain word must be below, and the next scale
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
            size = _TENS.get(word, _ONES.get(word, 0))
            if size >= room:
                return None
            current, room = current + size, 10 if word in _TENS else 0
    return total + current


def _write_cjk(found: re.Match[str]) -> str:
    value = _read_cjk(found["number"]) if len(found["number"]) > 1 or found["share"] else None
    if value is None:
        return found.group()
    return f"{value}{'%' if found['share'] else ''}"


def _read_cjk(text: str) -> int | None:
    """The value of a well-formed Chinese numeral, or None."""
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
