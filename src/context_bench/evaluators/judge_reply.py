"""Reads a judge's reply: its rating and its rationale, or the reason why it has no rating.

Reading is strict. A JSON object with a `rating` or `score` counts, and so do a marked line ("Rating: 4", "[[4]]"), a
number that opens the reply ("5 - fully correct") and a sentence that gives a rating ("I'd give this a 4/5."). A number
that is only mentioned or quoted, a rating that is not a whole number from 1 to 5, and two different ratings are no
verdict: a missing score is better than a wrong one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from context_bench.options import is_number
from context_bench.text.golds import opens_with_reasoning, remove_reasoning

LOWEST, HIGHEST = 1, 5

_EDGE = r"[\s#>*_`-]*"
MAX_QUOTE_CHARS = 200  # characters before a rating in which a quotation may begin
_WORDS = ("one", "two", "three", "four", "five")
_SPELLED = "|".join(_WORDS)
_MOST = r"(?:(?:\s+(?:points?|stars?))?\s*\(?\s*(?:/|out\s+of|of|von|de|sur)\s*(?P<most>[0-9]+|five|ten)(?:\.0)?)?"
_DIGITS = rf"\[{{0,2}}\s*(?P<value>[-+]?[0-9]+(?:[.,][0-9]+)?){_MOST}"
_NUMBER = rf"\[{{0,2}}\s*(?P<value>[-+]?[0-9]+(?:[.,][0-9]+)?|\b(?:{_SPELLED})\b){_MOST}"
_RANGE = r"(?:\s*\((?:(?:from\s+)?1\s*(?:-|–|to)\s*5|(?:out\s+of|/)\s*5)\))?"
_NOUN = (
    r"(?:(?:(?:my|the|final|overall)\s+)*(?:rating|score|grade|verdict|evaluation|judge?ment)\b|(?:overall|final)\b"
    r"|评分|得分|分数|评级|점수|スコア|評価|\b(?:bewertung|punktzahl|puntuación|calificación|nota|оценка)\b)"
)
_MARK = rf"{_NOUN}{_RANGE}[\s*_`]*(?:is\s*[:：=]?|[:：=→,–—-]|->)[\s*_`]*"
_SCALE = r"on\s+a\s+(?:1\s*(?:-|–|to)\s*5\s+scale|scale\s+(?:of|from)\s+1\b[^:0-9\n]{0,20}5\b[^:,0-9\n]{0,20})"
_FILL = (
    r"(?:\s+(?:it|this|that|the|response|answer|reply|an?|overall|final|rating|score|grade|of|as|solid|strong|clear|full"
    r"|highest|lowest|top))*:?\s+"
)
_GIVE = (
    r"(?:give|rate|assign|award|grade|score|say|go\s+with|settle\s+(?:on|for)|(?:put|place)\s+(?:it|this|that)\s+at)"
)
_GIVEN = (
    rf"(?:\bI(?:\s+would|\s+will|'d|'ll)?\s+{_GIVE}|(?:^{_EDGE}(?:{_SCALE},\s+)?|[.!?;:]\s+)(?:giving|rating|assigning"
    r"|(?:it|(?:this|the)(?:\s+(?:response|answer|reply))?)\s+(?:deserves|earns|merits|warrants|(?:gets|receives)(?=\s+an?\s))"
    rf"|this\s+is(?=\s+an?\s)|(?:this|that|which)\s+makes\s+(?:it|this)(?=\s+an?\s))){_FILL}"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?:^{_EDGE}|[.!?][\"'*_)]*\s+)(?:(?:so|thus|therefore|hence),?\s+)?{_MARK}{_NUMBER}",
        rf"^{_EDGE}(?:{_SCALE}:[\s*_`]*|note\s*:\s*(?=[0-9]\s*/)){_NUMBER}",
        _GIVEN + _DIGITS,
        # "Rating: Good (4)"
        rf"^{_EDGE}(?:{_MARK}|assessment[\s*_]*:[\s*_]*)[a-z]+(?:\s[a-z]+)?[*_]*\s\({_DIGITS}(?=\))",
        rf"^{_EDGE}(?=\[\[){_DIGITS}",
        # "A score of 4 is appropriate."
        rf"^{_EDGE}an?\s+(?:rating|score|grade)\s+of\s+{_DIGITS}\s+(?:is|seems)\s+(?:appropriate|warranted|fair|justified)",
        # The last words: "Fully correct. 5/5", "..., so 3."
        rf"(?:[.!?→]\s+(?=[0-9]\s*/\s*5)|,\s*so\s+){_DIGITS}(?=[\s.!*]*$)",
    )
)
_BARE = re.compile(rf"^[\s*_`(\[]*{_NUMBER}(?:\s*(?:stars?|points?)\b)?[\s*_`\]).✅✔]*$", re.IGNORECASE)
_OPENING = re.compile(
    rf"^[\s#>*_`(\[]*{_DIGITS}(?=[\s*_`\])]*(?:$|[:=–—✅✔]|\s-\s|(?<=/5)\s+(?:because|since|as|for)\b)(?!\s*[0-9]))"
)
_FIVES = re.compile(rf"(?<![\w./-])(?=[0-9]\s*(?:/|out\s+of)\s*5){_DIGITS}")
"""A rating out of five ("4/5") anywhere in the reply, used if no other form is found."""
_LONE = re.compile(rf"\b(?:an?|is|be)\s+{_DIGITS}", re.IGNORECASE)
"""The only number of a short reply: "It's a 4 for me."."""
_UNDECIDED = re.compile(
    r"(?i)\b(?:not|never|no|if|unless|or|between|than|only)\b|n't\b|\b(?:answer|reference|result|value|response|gold)\s+(?:is|was)\b"
)
_ITEM = re.compile(r"^\s*[0-9]+\s*[.:)=–—-]", re.MULTILINE)

# What may follow a rating on its line: nothing, the end of a sentence, a remark. "4 or 5" and "4-5" are not ratings.
_CLEAN = re.compile(
    r"(?i)(?:\s*(?:stars?|points?|分)(?!\w))?[\s\])*_\"'`]*(?:$|[✅✔✓❌✗]|[.!,;:。！=]+(?=\s|$)(?!\s*[0-9])|[-–—(:=](?!\s*[0-9])"
    r"|(?:because|since|as|for|due|from\s+me|at\s+best|overall)\b)"
)
_QUOTING = re.compile(
    r"(?i)\b(?:says?|said|claims?|reads?|writes?|states?|asks?|tells?|demands?|contains?|(?:ends|begins)\s+with)\b"
    r"(?:[^.!?;,\n]*$|\s*:)"
)
"""Words before a rating that only quotes the judged text."""
_IN_TEXT = re.compile(r"\s*([0-9]+(?:\.0+)?)\s*(?:(?:/|out of)\s*5\s*)?")

# Layouts of a rating that become the line "Rating: 4", if they begin a line.
_TAG = re.compile(r"^[ \t]*<(score|rating|grade|evaluation|verdict|judge?ment)>\s*([^<\n]{1,20}?)\s*</\1>", re.I | re.M)
_WHOLE = re.compile(r"\A<answer>\s*([^<\n]{1,20}?)\s*</answer>\Z", re.IGNORECASE)
_BOX = re.compile(r"^[ \t$*]*\\boxed\{([^{}\n]{1,20})\}[$*]*", re.MULTILINE)
_STARS = re.compile(r"((?:[⭐★]\ufe0f?){1,5})([☆✩]{0,4})(?:\s*\((\d)\s*/\s*5\))?")
_HEADING = re.compile(
    rf"(?im)^({_EDGE}{_NOUN}{_RANGE})[\s*_`:：]*\n(?:[ \t]*[-=]{{3,}}[ \t]*\n)?\s*(?={_EDGE}\[{{0,2}}[0-9])"
)


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A rating from 1 to 5, and the reason for it."""

    rating: int
    rationale: str


@dataclass(frozen=True, slots=True)
class _Unit:
    """A line or a JSON object of a reply with its ratings; None stands for a rating out of range."""

    ratings: list[int | None]
    text: str
    is_set_apart: bool = False


def read_verdict(reply: str) -> JudgeVerdict:
    """Return the rating of a reply; raise ValueError if the reply has no rating, or more than one."""
    units = list(_split_units(_unify_layout(drop_thoughts(reply))))
    if units and not any(unit.ratings for unit in units):
        # Numbers that open several lines are items of a list.
        form = _BARE if len(units) == 1 and _BARE.match(units[0].text) else _OPENING
        first = _find_ratings(units[0].text, form) if not any(_ITEM.match(unit.text) for unit in units[1:]) else []
        units[0] = _Unit(first, "" if form is _BARE else units[0].text)
        if not first:
            units = [_Unit(_find_ratings(unit.text, _FIVES), unit.text) for unit in units]
        if len(units) == 1 and not units[0].ratings and _is_lone(units[0].text):
            units = [_Unit(_find_ratings(units[0].text, _LONE), units[0].text)]
    ratings = [rating for unit in units for rating in unit.ratings]
    if not ratings:
        raise ValueError("it contains no rating")
    if None in ratings:
        raise ValueError(f"its rating is not one whole number from {LOWEST} to {HIGHEST}")
    if len(set(ratings)) > 1:
        raise ValueError("it contains different ratings")
    # A rating in the middle of other words may be quoted from the judged text.
    if not (units[0].ratings or units[-1].ratings or any(unit.is_set_apart for unit in units)):
        raise ValueError("it neither begins nor ends with its rating")
    stated = [unit.text for unit in units if unit.ratings and unit.is_set_apart and unit.text]
    rationale = "\n".join(stated or [unit.text for unit in units if unit.text]).strip()
    return JudgeVerdict(int(ratings[0] or 0), rationale)


def _is_lone(text: str) -> bool:
    """Whether a short reply has a single number, which must be the rating."""
    return len(text) <= MAX_QUOTE_CHARS and len(re.findall(r"[0-9]+", text)) == 1 and not _UNDECIDED.search(text)


def drop_thoughts(reply: str) -> str:
    """Return the reply of a judge after its reasoning, or raise ValueError.

    A mark that ends reasoning, without one that begins it, may be quoted from the judged text.
    """
    said = remove_reasoning(reply) if opens_with_reasoning(reply) else reply
    if reply.strip() and not said.strip():
        raise ValueError("it ends in the middle of a thought")
    return said.strip()


def _unify_layout(text: str) -> str:
    """Write headings, tags, boxes and rows of stars as marked lines."""
    text = _WHOLE.sub(r"Rating: \1", text.replace("\ufe0f\u20e3", ""))
    text = _BOX.sub(r"Rating: \1", _TAG.sub(r"Rating: \2", text))
    return _HEADING.sub(r"\1: ", _STARS.sub(_count_stars, text))


def _count_stars(stars: re.Match[str]) -> str:
    filled = len(re.findall("[⭐★]", stars[1]))
    if filled + len(stars[2]) not in (filled, HIGHEST):
        return stars[0]
    return f"{filled}/{HIGHEST}" if stars[3] in (None, str(filled)) else f"{filled}/{HIGHEST}, {stars[3]}/{HIGHEST}"


def _split_units(text: str) -> Iterator[_Unit]:
    """Return the lines and the JSON objects of a reply in their order.

    Reading stops at a brace that opens no valid object, because the judge may quote the judged text there, and a valid
    object in it would be mistaken for the verdict.
    """
    decoder = json.JSONDecoder(object_pairs_hook=_Object, strict=False)
    place = 0
    while (start := text.find("{", place)) >= 0:
        yield from _split_lines(text[place:start])
        fenced = text[:start].rstrip().lower().endswith(("```", "```json"))
        try:
            found, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            raise ValueError("it contains broken JSON") from None
        alone = start == 0 or not text[place:].strip(" \n`")
        yield _Unit(found.ratings, found.rationale, bool(found.ratings) and (fenced or alone))
    yield from _split_lines(text[place:])


def _split_lines(text: str) -> Iterator[_Unit]:
    before = ""
    for line in text.replace("```json", "").replace("```", "").splitlines():
        if line.strip():
            quoted = before.endswith(":") and _QUOTING.search(before)
            ratings = [rating for form in _FORMS for rating in _find_ratings(line, form)]
            yield _Unit([None] * len(ratings) if quoted else ratings, line)
            before = line.rstrip(" *_")


def _find_ratings(line: str, form: re.Pattern[str]) -> list[int | None]:
    ratings = []
    for found in form.finditer(line):
        said = line[max(0, found.start() - MAX_QUOTE_CHARS) : found.start() + 1]
        is_quoted = said.count('"') % 2 or said.count("“") > said.count("”") or _QUOTING.search(said)
        is_clean = (found["most"] or "5").lower() in (str(HIGHEST), "five") and _CLEAN.match(line, found.end())
        ratings.append(_check_range(_read_number(found["value"])) if is_clean and not is_quoted else None)
    return ratings


def _read_number(text: str) -> float:
    return _WORDS.index(text.lower()) + 1.0 if text.lower() in _WORDS else float(text.replace(",", "."))


_RATIONALES = ("rationale", "explanation", "reason", "reasoning")


class _Object:
    """A JSON object as written, with repeated keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        named = [(key.strip().lower(), value) for key, value in pairs]
        ratings = [value for key, value in named if key == "rating"]
        self.ratings = [_read_rating(value) for value in ratings or [value for key, value in named if key == "score"]]
        words = [value for key, value in named if key in _RATIONALES and isinstance(value, str)]
        self.rationale = words[0] if words else ""


def _read_rating(value: Any) -> int | None:
    if isinstance(value, str):
        found = _IN_TEXT.fullmatch(value)
        return _check_range(float(found[1])) if found else None
    return _check_range(value) if is_number(value) else None


def _check_range(value: float) -> int | None:
    return int(value) if LOWEST <= value <= HIGHEST and value == int(value) else None
