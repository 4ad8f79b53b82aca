r"""Inequalities as the intervals that they stand for: `2 \leq x < 5` is `[2,5)`, `x < -1 or x > 4` a union."""

from __future__ import annotations

import re

__all__ = ["find_variable", "write_interval"]

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

Range = tuple[str, str, str, str]
"""Opening bracket, lower end, upper end, closing bracket."""


def write_interval(text: str) -> str | None:
    """The interval, or union of intervals, of a canonical inequality; None for anything else."""
    read = _read(text)
    return None if read is None else r"\cup".join(f"{a}{low},{high}{b}" for a, low, high, b in read[1])


def find_variable(text: str) -> str | None:
    """The variable that an inequality bounds; None where the text is none."""
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
    """One inequality, or two that bound the same variable from both sides."""
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
