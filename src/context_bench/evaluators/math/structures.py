r"""Answers of several parts: their brackets, their items, and the shapes beside lists: ratios and matrices."""

from __future__ import annotations

import re
from fractions import Fraction

__all__ = ["is_same_ratio", "read_matrix", "read_named_values", "read_ratio", "split_brackets", "split_items"]

_LISTED = re.compile(r"\s*,\s*(?:and\b|or\b)?\s*|\s+(?:and|or)\s+|\s*;\s*")
_OPENING, _CLOSING = ("(", "[", "\\{"), (")", "]", "\\}")
_NAMED = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?)\s*=(?!=)\s*")
_RATIO = re.compile(r"(?i)(\d+(?:\.\d+)?(?:\s?(?::|\bto\b)\s?\d+(?:\.\d+)?)+)\s*(?:([ap])\.?\s?m\.?|o'clock)?")
_MATRIX = re.compile(r"\\begin\{([bpvBV]?matrix|array)\}(?:\{[clr| ]*\})?(.*)\\end\{\1\}", re.DOTALL)


def split_brackets(text: str) -> tuple[str, str]:
    """The brackets around a text, if they belong together, and what is between them."""
    opening = next((mark for mark in (*_OPENING, "{") if text.startswith(mark)), "")
    closing = next((mark for mark in (*_CLOSING, "}") if text.endswith(mark)), "")
    inner = text[len(opening) : len(text) - len(closing)]
    if not opening or not closing or _measure_depth(inner) is None:
        return "", text
    kind = opening + closing
    return ("\\{\\}" if kind == "{}" else kind), inner.strip()


def _measure_depth(text: str) -> int | None:
    """0 when all brackets close; None when one closes that was not opened."""
    depth = 0
    for char in text:
        depth += (char in "([{") - (char in ")]}")
        if depth < 0:
            return None
    return depth


def split_items(text: str) -> list[str]:
    r"""The parts of a list, by the commas that stand in no bracket; `\pm 3` is two of them."""
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
    """The names and the values of `x = 3, y = 4`; no names where not every part has one."""
    found = [_NAMED.match(part) for part in parts]
    if not all(found):
        return [], parts
    return [each[1] for each in found if each], [part[each.end() :] for part, each in zip(parts, found) if each]


def read_ratio(text: str) -> tuple[Fraction, ...] | None:
    """The parts of a ratio or a clock time: 3:4, 2 to 1, 10:45 a.m."""
    found = _RATIO.fullmatch(text)
    return tuple(Fraction(part) for part in re.findall(r"\d+(?:\.\d+)?", found[1])) if found else None


def is_same_ratio(one: str, other: str) -> bool:
    """Whether two ratios, or clock times, are the same: 3:45 p.m. is 15:45, and 3:45 where one says no half."""
    return bool(_list_clock_readings(one) & _list_clock_readings(other))


def _list_clock_readings(text: str) -> set[tuple[str | None, tuple[Fraction, ...]]]:
    """The parts of a ratio, with each half of the day that it may be in, and those on the 24-hour clock."""
    found, parts = _RATIO.fullmatch(text), read_ratio(text)
    if not found or not parts:
        return set()
    if not found[2]:
        return {("a", parts), ("p", parts), ("24", parts)}
    half = found[2].lower()
    return {(half, parts), ("24", (parts[0] % 12 + (12 if half == "p" else 0), *parts[1:]))}


def read_matrix(text: str) -> list[list[str]] | None:
    """The cells of a matrix, row by row; None for anything else, determinants among it."""
    found = _MATRIX.fullmatch(text.strip())
    if not found or found[1] in ("vmatrix", "Vmatrix"):
        return None
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", found[2]) if row.strip()]
    return [[cell.strip() for cell in row.split("&")] for row in rows]
