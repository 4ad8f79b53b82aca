"""Reads a judge's reply: its rating and its rationale, or the reason why the reply gives none.

Read strictly. A JSON object with a `rating` counts, and so does a marked line ("Rating: 4", "[[4]]"). Text
that only mentions a number, a rating that is not a whole number from 1 to 5, or two that differ are
not a verdict: a missing score is better than a wrong one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from context_bench.text.reasoning import opens_with_reasoning, remove_reasoning

__all__ = ["Verdict", "drop_thoughts", "read_verdict"]

LOWEST, HIGHEST = 1, 5

_EDGE = r"[\s#>*_`-]*"
_NUMBER = (
    r"\[{0,2}\s*(?P<value>[-+]?[0-9]+(?:[.,][0-9]+)?)"
    r"(?:\s*\(?\s*(?:/|out\s+of|of)\s*(?P<most>[0-9]+)(?:\.0)?)?"
)
_RANGE = r"(?:\s*\((?:from\s+)?1\s*(?:-|–|to)\s*5\))?"
_MARK = (
    r"(?:(?:my|the|final|overall)\s+)*(?:rating|score|grade|verdict)\b"
    rf"{_RANGE}[\s*_`]*(?:is\s*[:：=]?|[:：=])[\s*_`]*"
)
_GIVEN = (
    r"\bI\s+(?:give|rate|assign|award|grade|score)"
    r"(?:\s+(?:it|this|that|the|response|answer|reply|a|an|overall|final|rating|score|grade|of|as))*\s+"
)
_MARKED = re.compile(rf"(?:^{_EDGE}|[.!?][\"'*_)]*\s+){_MARK}{_NUMBER}", re.IGNORECASE)
_SAID = re.compile(_GIVEN + _NUMBER, re.IGNORECASE)
_BRACKETS = re.compile(rf"^{_EDGE}(?=\[\[){_NUMBER}")
_BARE = re.compile(rf"^[\s*_`]*{_NUMBER}[\s*_`\]).]*$")

# What may follow a rating on its line: nothing, the end of a sentence, a remark. "4 or 5" and "4-5" are not ratings.
_CLEAN = re.compile(
    r"[\s\])*_\"'`]*(?:$|[.!,;:]+(?=\s|$)(?!\s*[0-9])|[-–—(](?!\s*[0-9])|(?:because|since|as|for|due)\b)", re.IGNORECASE
)
_IN_TEXT = re.compile(r"\s*([0-9]+(?:\.0+)?)\s*(?:(?:/|out of)\s*5\s*)?")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A rating from 1 to 5, and why."""

    rating: int
    rationale: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A line or a JSON object of a reply with the ratings in it; None stands for one that is out of range."""

    ratings: list[int | None]
    text: str
    is_set_apart: bool = False


def read_verdict(reply: str) -> Verdict:
    """The one rating that a reply gives.

    Raises:
        ValueError: There is none, or more than one; says which in words.
    """
    units = list(_split_units(drop_thoughts(reply)))
    if len(units) == 1 and not units[0].ratings:
        units = [_Unit(_find_ratings(units[0].text, _BARE), "")]
    ratings = [rating for unit in units for rating in unit.ratings]
    if not ratings:
        raise ValueError("it holds no rating")
    if None in ratings:
        raise ValueError(f"its rating is not one whole number from {LOWEST} to {HIGHEST}")
    if len(set(ratings)) > 1:
        raise ValueError("it holds ratings that differ")
    # A rating in the middle of other words may be quoted from the judged text.
    if not (units[0].ratings or units[-1].ratings or any(unit.is_set_apart for unit in units)):
        raise ValueError("it neither begins nor ends with its rating")
    return Verdict(int(ratings[0] or 0), _join_rationale(units))


def _join_rationale(units: list[_Unit]) -> str:
    stated = [unit.text for unit in units if unit.ratings and unit.is_set_apart and unit.text]
    return "\n".join(stated or [unit.text for unit in units if unit.text]).strip()


def drop_thoughts(reply: str) -> str:
    """Return what a judge says after its reasoning. An end of reasoning alone may be quoted from the judged text.

    Raises:
        ValueError: There is nothing after it.
    """
    said = remove_reasoning(reply) if opens_with_reasoning(reply) else reply
    if reply.strip() and not said.strip():
        raise ValueError("it ends in the middle of a thought")
    return said.strip()


def _split_units(text: str) -> Iterator[_Unit]:
    """The lines and the JSON objects of a reply in their order.

    A brace that opens no valid object ends it all: inside a broken object the judge may be quoting the
    judged text, and a valid object in there would be taken for the verdict.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_Object, strict=False)
    place = 0
    while (start := text.find("{", place)) >= 0:
        yield from _split_lines(text[place:start])
        fenced = text[:start].rstrip().lower().endswith(("```", "```json"))
        try:
            found, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            raise ValueError("it holds broken JSON") from None
        alone = start == 0 or not text[place:].strip(" \n`")
        yield _Unit(found.ratings, found.rationale, bool(found.ratings) and (fenced or alone))
    yield from _split_lines(text[place:])


def _split_lines(text: str) -> Iterator[_Unit]:
    for line in text.replace("```json", "").replace("```", "").splitlines():
        if line.strip():
            yield _Unit([rating for form in (_MARKED, _SAID, _BRACKETS) for rating in _find_ratings(line, form)], line)


def _find_ratings(line: str, form: re.Pattern[str]) -> list[int | None]:
    ratings = []
    for found in form.finditer(line):
        is_clean = found["most"] in (None, str(HIGHEST)) and _CLEAN.match(line, found.end())
        ratings.append(_check_range(float(found["value"].replace(",", "."))) if is_clean else None)
    return ratings


class _Object:
    """A JSON object as it was written: a key that stands twice is seen twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.ratings = [_read_rating(value) for key, value in pairs if key.strip().lower() == "rating"]
        words = [value for key, value in pairs if key.strip().lower() == "rationale" and isinstance(value, str)]
        self.rationale = words[0] if words else ""


def _read_rating(value: Any) -> int | None:
    if isinstance(value, str):
        found = _IN_TEXT.fullmatch(value)
        return _check_range(float(found[1])) if found else None
    return _check_range(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _check_range(value: float) -> int | None:
    return int(value) if LOWEST <= value <= HIGHEST and value == int(value) else None
