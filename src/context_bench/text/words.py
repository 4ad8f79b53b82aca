"""Words in any script, for comparison and retrieval.

`split_words` gives plain words, for retrieval. `normalise` is for checking whether two texts say the same thing, so it
keeps signs that change the meaning of a number or a name.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Ranges of the scripts without spaces between words, for the brackets of a pattern; each character is a word."""
# `re` does not count accents and vowel signs as letters, but they belong to their word.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u1000-\u1049\u1780-\u17d3"
)
_LETTER = rf"[^\W_{UNSPACED}]"
_WORD = re.compile(rf"[{UNSPACED}]|{_LETTER}+(?:[{_MARKS}]+{_LETTER}*)*")
_ASCII_SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}

_STOP_WORDS = """a about above after again against all am an and any are as at be because been before being below
between both but by can could d did do does doing don down during each few for from further had has
have having he her here hers herself him himself his how i if in into is it its itself just ll m me
more most my myself no nor not now o of off on once only or other our ours ourselves out over own re
s same she should so some such t than that the their theirs them themselves then there these they
this those through to too under until up ve very was we were what when where which while who whom
why will with would you your yours yourself yourselves"""
STOP_WORDS = frozenset(_STOP_WORDS.split())  # frequent English words


def split_words(text: str) -> list[str]:
    """Split a text into its words, case-folded, without punctuation."""
    text = text.casefold()
    if text.isascii():  # by far the most common case, and seven times as fast as the pattern
        return text.translate(_ASCII_SIGNS).split()
    words: list[str] = []
    for line in text.split("\n"):
        words += line.translate(_ASCII_SIGNS).split() if line.isascii() else _WORD.findall(line)
    return words


SPLIT_CHARS = 65_536  # characters that are split in one call, during which other threads wait
_BETWEEN = re.compile(rf"\n|[A-Za-z](?= [A-Za-z])|[{UNSPACED}](?=[{UNSPACED}])")


def split_in_pieces(text: str) -> Iterator[list[str]]:
    """Split a long text into the same words as `split_words`, piece by piece. One call for the whole text would block
    all other threads, and its list of words would be ten times as large as the text.
    """
    start = 0
    while found := _BETWEEN.search(text, start + SPLIT_CHARS):
        yield split_words(text[start : found.end()])
        start = found.end()
    yield split_words(text[start:])


# --- words with the signs that change their meaning

# Letters of an extinct script stand for the signs, so that these are parts of words.
_MINUS, _POINT, _DOT, _PLUS, _SHARP, _PERCENT = "\ua840\ua841\ua842\ua843\ua844\ua845"
_MONEY = dict(zip("$€£¥₹", "\ua846\ua847\ua848\ua849\ua84a"))
_DASHES = "-\u2212\u2013\u2011\u2010"  # hyphen, minus, the en dash of typesetters, hyphens of word processors
_AFTER_PLUS = r"[\s\\)\]}.,;:!?\"'*_`|<]|\Z"

NORMALISE_CHARS = 200_000  # characters that are normalised in one call
_BETWEEN_WORDS = re.compile(r"[A-Za-z]{2}(?= [A-Za-z]{2})")

_GROUP = re.compile(r",\d{3}")
_THOUSANDS = re.compile(r"\d(?<![\w,.\[].)\d{0,2}(?:,\d{3})+(?![\d\]]|,\S)", re.DOTALL)
_NEXT_TO_A_NUMBER = re.compile(rf"[$€£¥₹](?=\s?{_MINUS}?\d)|[€£¥₹](?!{_LETTER})(?<=\d.)|[€£¥₹](?<=\d[ \u00a0].)")


def _pattern(sign: str) -> re.Pattern[str]:
    """Build a pattern that begins with the sign, because this search is fast; its lookbehinds include the sign."""
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
            # `\n-5` is a JSON line break and a number
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
    """Normalise a text to its case-folded words between single spaces, so that `in` finds only whole words.

    Layout, case, quotes, emphasis and other punctuation are removed. Signs that change the meaning of a number or a
    name stay: a minus sign (not a hyphen, a range or the dash of a list), a decimal point (so `2.0.1` is one word), the
    point, plus and sharp of `.NET`, `C++` and `C#`. Percent and currency signs next to a number are separate words,
    like `km`. `1,000` is `1000`, except in a list without spaces.
    """
    if len(text) <= NORMALISE_CHARS:
        return f" {' '.join(_normalise_words(text))} "
    return f" {' '.join([word for piece in _cut(text) for word in _normalise_words(piece)])} "


def _cut(text: str) -> Iterator[str]:
    """Yield a long text in pieces, because one call for the whole text would block all other threads. Pieces end at a
    space between two letters, across which no sign has an effect.
    """
    start = 0
    while found := _BETWEEN_WORDS.search(text, start + NORMALISE_CHARS):
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


_IRREGULAR_FORMS = (
    *("skies sky", "sky sky", "dying die", "lying lie", "tying tie", "news news", "howe howe"),
    *("innings inning", "inning inning", "outings outing", "outing outing", "cannings canning", "canning canning"),
    *("proceed proceed", "exceed exceed", "succeed succeed"),
)
_IRREGULAR: dict[str, str] = dict(pair.split() for pair in _IRREGULAR_FORMS)
_VOWELS = frozenset("aeiou")

_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")),
    *(("aliti", "al"), ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful")),
)
_STEP_3 = (("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""))
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=200_000)
def stem_word(word: str) -> str:
    stem = word.lower()
    if stem in _IRREGULAR:
        return _IRREGULAR[stem]
    if len(word) <= 2:
        return stem
    for step in (_cut_plural, _cut_participle, _turn_y, _shorten_double_suffix, _cut_middle, _cut_suffix, _cut_e):
        stem = step(stem)
    return stem[:-1] if stem.endswith("ll") and _measure(stem[:-1]) > 1 else stem


def _is_consonant(word: str, place: int) -> bool:
    if word[place] in _VOWELS:
        return False
    # A y after a consonant sounds as a vowel; a row of them alternates.
    return word[place] != "y" or place == 0 or not _is_consonant(word, place - 1)


def _measure(stem: str) -> int:
    """Count the places where a vowel is followed by a consonant."""
    count, vowel = 0, False
    for place in range(len(stem)):
        consonant = _is_consonant(stem, place)
        count += vowel and consonant
        vowel = not consonant
    return count


def _has_vowel(stem: str) -> bool:
    return any(not _is_consonant(stem, place) for place in range(len(stem)))


def _ends_double(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _is_consonant(word, len(word) - 1)


def _ends_short(word: str) -> bool:
    """Whether the stem ends in consonant, vowel, consonant (not w, x, y), or is only a vowel and a consonant."""
    size = len(word)
    if size == 2:
        return not _is_consonant(word, 0) and _is_consonant(word, 1)
    closed = size >= 3 and _is_consonant(word, size - 1) and word[-1] not in "wxy"
    return closed and not _is_consonant(word, size - 2) and _is_consonant(word, size - 3)


def _cut_plural(word: str) -> str:
    if word.endswith("ies"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _cut_participle(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        stem = word[: -len(suffix)]
        if word.endswith(suffix) and _has_vowel(stem):
            return _mend(stem)
    return word


def _mend(stem: str) -> str:
    """Restore the ending that a stem lost before `ed` or `ing`."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_double(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _turn_y(word: str) -> str:
    turns = word.endswith("y") and len(word) > 2 and _is_consonant(word, len(word) - 2)
    return word[:-1] + "i" if turns else word


def _replace(word: str, rules: Iterable[tuple[str, str]], accept: Callable[[str], bool]) -> str:
    """Apply the first rule whose suffix matches; if its stem is not accepted, change nothing."""
    for suffix, new in rules:
        if word.endswith(suffix):
            stem = word[: len(word) - len(suffix)]
            return stem + new if accept(stem) else word
    return word


def _shorten_double_suffix(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _shorten_double_suffix(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace(word, _STEP_2, lambda stem: _measure(stem) > 0)


def _cut_middle(word: str) -> str:
    return _replace(word, _STEP_3, lambda stem: _measure(stem) > 0)


def _cut_suffix(word: str) -> str:
    if word.endswith("ion") and not word[:-3].endswith(("s", "t")):
        return word
    return _replace(word, ((suffix, "") for suffix in _STEP_4), lambda stem: _measure(stem) > 1)


def _cut_e(word: str) -> str:
    if not word.endswith("e"):
        return word
    stem = word[:-1]
    size = _measure(stem)
    return stem if size > 1 or (size == 1 and not _ends_short(stem)) else word


MAX_ESCAPE_LAYERS = 2
_ENTITY = re.compile(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});", re.IGNORECASE)
# What JSON escapes, and what Markdown does: a backslash before any other sign.
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|([!-/:-@\[-`{-~]))")
_LAYOUT = {"b": " ", "f": "\n", "n": "\n", "r": "\n", "t": "\t"}


def undo_escapes(text: str) -> list[str]:
    """Return versions of a text: first with HTML's escapes undone, then with each further layer of JSON's undone.

    A text may contain both kinds, and some words only look like an escape (`C:\\new`): any of the results may be right.
    """
    texts = [undo_html(text)]
    while len(texts) <= MAX_ESCAPE_LAYERS and "\\" in texts[-1]:
        plain = undo_html(undo_json(texts[-1]))
        if plain == texts[-1]:
            break
        texts.append(plain)
    return texts


def undo_html(text: str) -> str:
    """Return a text without HTML's escapes, even if they were escaped twice."""
    for _ in range(MAX_ESCAPE_LAYERS):
        if "&" not in text:
            break
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    return text


def undo_json(text: str) -> str:
    """Undo one layer of JSON's escapes; half of a surrogate pair becomes a replacement character."""
    plain = _ESCAPE.sub(_undo, text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else plain


def _undo(found: re.Match[str]) -> str:
    code, layout, sign = found.groups()
    return chr(int(code, 16)) if code else _LAYOUT[layout] if layout else sign
