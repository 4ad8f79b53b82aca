"""Porter's stemmer, with the extensions that NLTK has by default: the one by which LoCoMo's official scorer compares.

M. F. Porter, "An algorithm for suffix stripping" (1980). NLTK adds a few irregular forms, keeps words of two letters,
and treats `-ies`, `-ied`, `-y`, `-alli`, `-fulli` and `-logi` in its own way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

__all__ = ["stem_word"]

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
_STEP_3 = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


@lru_cache(maxsize=200_000)
def stem_word(word: str) -> str:
    """Return the stem of a word, in lower case."""
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
    """Whether it ends consonant, vowel, consonant (not w, x, y), or is a vowel and a consonant."""
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
    """Give a stem back the ending that it had before `ed` or `ing`."""
    if stem.endswith(("at", "bl", "iz")):
        return stem + "e"
    if _ends_double(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return stem + "e" if _measure(stem) == 1 and _ends_short(stem) else stem


def _turn_y(word: str) -> str:
    turns = word.endswith("y") and len(word) > 2 and _is_consonant(word, len(word) - 2)
    return word[:-1] + "i" if turns else word


def _replace(word: str, rules: Iterable[tuple[str, str]], accept: Callable[[str], bool]) -> str:
    """Apply the first rule whose suffix is there; if its stem is not accepted, none is."""
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
