"""Words in any script, for everything that compares or retrieves by words.

`split_words` gives plain words, for retrieval. `normalise` is for telling whether a text states the same as another:
it keeps the signs that change what a number or a name means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["STOP_WORDS", "normalise", "split_in_pieces", "split_words"]

# Scripts without spaces between words count by character.
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
# Accents and vowel signs are not letters to `re`, but belong to the word that they stand in.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u1000-\u1049\u1780-\u17d3"
)
_LETTER = rf"[^\W_{_UNSPACED}]"
_WORD = re.compile(rf"[{_UNSPACED}]|{_LETTER}+(?:[{_MARKS}]+{_LETTER}*)*")
_ASCII_SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}

_STOP_WORDS = """a about above after again against all am an and any are as at be because been before being below
between both but by can could d did do does doing don down during each few for from further had has
have having he her here hers herself him himself his how i if in into is it its itself just ll m me
more most my myself no nor not now o of off on once only or other our ours ourselves out over own re
s same she should so some such t than that the their theirs them themselves then there these they
this those through to too under until up ve very was we were what when where which while who whom
why will with would you your yours yourself yourselves"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that stand in every text."""


def split_words(text: str) -> list[str]:
    """Split a text into its words, case-folded, without punctuation."""
    text = text.casefold()
    if text.isascii():  # by far the most common, and seven times as fast as the pattern
        return text.translate(_ASCII_SIGNS).split()
    words: list[str] = []
    for line in text.split("\n"):
        words += line.translate(_ASCII_SIGNS).split() if line.isascii() else _WORD.findall(line)
    return words


_SPLIT_PIECE = 65_536
"""Characters of a long text that are split into words in one call that keeps other threads waiting."""
_BETWEEN = re.compile(rf"\n|[A-Za-z](?= [A-Za-z])|[{_UNSPACED}](?=[{_UNSPACED}])")


def split_in_pieces(text: str) -> Iterator[list[str]]:
    """Split a long text into the same words as `split_words`, a piece of it at a time.

    One call on all of it would stop every other thread, and a list of all its words is ten times as large as the text.
    """
    start = 0
    while found := _BETWEEN.search(text, start + _SPLIT_PIECE):
        yield split_words(text[start : found.end()])
        start = found.end()
    yield split_words(text[start:])


# --- words with the signs that change their meaning

# Letters of a script that nobody writes any more stand for the signs, so that they are parts of words.
_MINUS, _POINT, _DOT, _PLUS, _SHARP, _PERCENT = "\ua840\ua841\ua842\ua843\ua844\ua845"
_MONEY = dict(zip("$€£¥₹", "\ua846\ua847\ua848\ua849\ua84a"))
_DASHES = "-\u2212\u2013\u2011\u2010"  # hyphen, minus, the en dash of typesetters, hyphens of word processors
_AFTER_PLUS = r"[\s\\)\]}.,;:!?\"'*_`|<]|\Z"

_PIECE = 200_000
"""Characters that are normalised in one go."""
_BETWEEN_WORDS = re.compile(r"[A-Za-z]{2}(?= [A-Za-z]{2})")

_GROUP = re.compile(r",\d{3}")
_THOUSANDS = re.compile(r"\d(?<![\w,.\[].)\d{0,2}(?:,\d{3})+(?![\d\]]|,\S)", re.DOTALL)
_NEXT_TO_A_NUMBER = re.compile(rf"[$€£¥₹](?=\s?{_MINUS}?\d)|[€£¥₹](?!{_LETTER})(?<=\d.)|[€£¥₹](?<=\d[ \u00a0].)")


def _pattern(sign: str) -> re.Pattern[str]:
    """Lookbehinds stand after the sign, and see it as their last character: searching for a sign is fast."""
    return re.compile(sign, re.DOTALL)


_SIGNS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # 3.14, 2.0.1; .5 is 0.5; .NET, but not the method of a chain that begins a line with .call(
    (".", _pattern(r"\.(?=\d)(?<=\d.)"), _POINT),
    (".", _pattern(r"\.(?=\d)(?<![^\W_].)(?<![.)\]].)"), f"0{_POINT}"),
    (".", _pattern(r"\.(?=[^\W\d_]+(?![^\W_]|\())(?<![^\W_].)(?<![.)\]].)"), _DOT),
    # 1e-5, 1e+5; -$5 is $-5; a hyphen, a range or a subtraction has something before it
    ("e-", _pattern(rf"e-(?=\d+(?!{_LETTER}))(?<=\d..)"), f"e{_MINUS}"),
    ("e+", _pattern(rf"e\+(?=\d+(?!{_LETTER}))(?<=\d..)"), "e"),
    *((sign, _pattern(rf"[{_DASHES}][{sign}](?=\d)(?<!{_LETTER}..)"), f"{sign}{_MINUS}") for sign in _MONEY),
    *(
        (
            dash,
            # `\n-5` is a line break of JSON, and a number
            _pattern(rf"{dash}(?=\d)(?:(?<!{_LETTER}.)(?<![{_DASHES}\])}}].)(?<!\d[%€£¥₹].)|(?<=\\[nrtbf].))"),
            f" {_MINUS}",
        )
        for dash in _DASHES
    ),
    # 5%, but not %d nor %20
    ("%", _pattern(rf"%(?!{_LETTER})(?<=\d.)|%(?<=\d[ \u00a0].)"), f" {_PERCENT} "),
    # C++, A+, but not x+y; C#, but not page#part
    ("++", _pattern(r"\+\+(?![^\W\d_]|\+)(?<=[^\W_]..)"), f"{_PLUS}{_PLUS} "),
    ("+", _pattern(rf"\+(?={_AFTER_PLUS})(?<=[^\W_].)"), f"{_PLUS} "),
    ("#", _pattern(r"#(?![^\W_]|#)(?<=[^\W\d_].)|#(?=\d)(?<=[^\W\d_].)(?<![^\W_]..)"), f"{_SHARP} "),
)


def normalise(text: str) -> str:
    """Normalise a text to its words, case-folded, each between single spaces: `in` then finds whole words only.

    Layout, case, quotes, emphasis and other punctuation are gone. What changes the meaning of a number or a name
    stays: a minus sign (not a hyphen, a range or the dash of a list), a decimal point (so `2.0.1` is one word), the
    point, plus and sharp of `.NET`, `C++` and `C#`. Percent and currency signs next to a number are words of their own,
    as `km` is. `1,000` is `1000`, except in a list without spaces.
    """
    if len(text) <= _PIECE:
        return f" {' '.join(_normalise_words(text))} "
    return f" {' '.join([word for piece in _cut(text) for word in _normalise_words(piece)])} "


def _cut(text: str) -> Iterator[str]:
    """Yield a long text in pieces: one call on all of it would stop every other thread.

    Between two letters with a space in between no sign depends on what stands on the other side.
    """
    start = 0
    while found := _BETWEEN_WORDS.search(text, start + _PIECE):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def _normalise_words(text: str) -> list[str]:
    text = text.casefold()
    if _GROUP.search(text):
        text = _THOUSANDS.sub(lambda found: found[0].replace(",", ""), text)
    for sign, pattern, kept in _SIGNS:
        if sign in text:
            text = pattern.sub(kept, text)
    if any(sign in text for sign in _MONEY):
        text = _NEXT_TO_A_NUMBER.sub(lambda found: f" {_MONEY[found[0]]} ", text)
    return _WORD.findall(text)
