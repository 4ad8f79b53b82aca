"""Finds where a reply may name an option: by its letter, by its text, or by its position ("the second option").

Some English words look like letters. A capital A inside a sentence is a letter, like any other capital; at the start of
a sentence, A may be the article. I may be the pronoun anywhere. Letters that follow a number are units ("10 g", "5 A").
Wordings are in `option_cues`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from context_bench.evaluators.choice import option_cues as cues
from context_bench.text.golds import remove_markup

REACH_CHARS = 160  # characters to read before and after a place

_BRACKETS = "()[]{}\"'«»<>"


@dataclass(frozen=True)
class OptionPlace:
    """A place that may name options; `token` is the text there, with its brackets."""

    start: int
    end: int
    letters: tuple[str, ...]
    token: str
    kind: Literal["letter", "text", "position"] = "letter"

    @property
    def quoted(self) -> bool:
        return self.kind == "text"

    @property
    def small(self) -> bool:
        return self.kind == "letter" and self.token.strip(_BRACKETS)[:1].islower()

    @property
    def bare(self) -> bool:
        return len(self.token) == 1


def find_places(text: str, letters: str, options: Sequence[str]) -> tuple[list[OptionPlace], list[OptionPlace]]:
    """Find all places in order, and those option texts that a letter labels ("B) Paris")."""
    quotes = list(_find_quotes(text, letters, options))
    inside = {spot for quote in quotes for spot in range(quote.start, quote.end)}
    positions = [at for at in _find_positions(text, letters, bool(options)) if not inside & {at.start, at.end - 1}]
    free = [quote for quote in quotes if not _is_labelled(text, quote)]
    places = sorted([*free, *positions, *_find_letters(text, letters, inside)], key=lambda place: place.start)
    return places, quotes


# ---- letters ---------------------------------------------------------------------------------------------------------

_SEPARATOR = re.compile(r"(?i)\s*(?:,\s*(?:and|or)?|/|&|\b(?:and|or|nor|to|through)\b)\s*(?:(?:options?|choices?)\s+)?")
_SINGULAR = re.compile(
    r"\s+(?:is|was|isn't|wasn't|does|doesn't|has|cannot|can't|seems|would|fits|matches|wins|remains|works|holds|stands)\b"
)
_WORD_FOLLOWS = re.compile(r"[ \t]+[A-Za-z]")
_GOES_ON = re.compile(r"[ \t]*\n[ \t]*[a-z]")
_MID_SENTENCE = re.compile(r"[a-z\d,;)][\"'»]?[ \t]+$")
_SMALL_WORD = re.compile(r"[ \t]+[a-z]")
_NUMBER_BEFORE = re.compile(r"(?<![A-Za-z])(?<!#)\d[ \t]?$")
_NUMBERED = re.compile(r"\b(?:question|problem|item|number|no\.?|q\.?|ex\.?)[ \t]*\d+[ \t]?$", re.IGNORECASE)
_UNITS = "ABCFGHJKLMNSTVW"
_WORDLIKE = r"[^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"  # Chinese, Japanese, Korean: no space before a letter


@lru_cache(maxsize=32)
def _make_letter_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!{_WORDLIKE})(?<!°)(?<!\w')(?<!\w[(\[{{])(?<!\b[A-Za-z][.-])(?<!\b[Nn]/)"
        rf"[(\[{{\"'«<]{{0,4}}[{letters}{letters.lower()}][)\]}}\"'»>]{{0,4}}"
        rf"(?!{_WORDLIKE})(?!'\w)(?!-\w)(?!\.[A-Za-z]\b)(?!\+\+|\#)(?!\s*[=+^×≈≤≥<>]\s*[\w(\\-])"
    )


def _find_letters(text: str, letters: str, inside: set[int]) -> Iterator[OptionPlace]:
    """Letters outside quoted options; a list such as "A, B and C" is one place."""
    group: OptionPlace | None = None
    for match in _make_letter_pattern(letters).finditer(text):
        if match.start() in inside or match.end() - 1 in inside or _is_unit(text, match):
            continue
        token = OptionPlace(match.start(), match.end(), (match[0].strip(_BRACKETS).upper(),), match[0])
        if group and len(group.letters) < len(letters) and _joins_list(text, group, token):
            group = OptionPlace(group.start, token.end, (*group.letters, *token.letters), group.token)
            continue
        if group:
            yield group
        group = token
    if group:
        yield group


def _is_unit(text: str, letter: re.Match[str]) -> bool:
    """Whether a letter follows a number as a unit: "(10 g)", "5 A"; not in "Question 5 A"."""
    if letter[0][0] in "([{\"'«<":
        return False
    before = text[max(0, letter.start() - 24) : letter.start()]
    sign = letter[0].strip(_BRACKETS)
    return (sign.islower() or sign in _UNITS) and bool(_NUMBER_BEFORE.search(before)) and not _NUMBERED.search(before)


def _joins_list(text: str, group: OptionPlace, token: OptionPlace) -> bool:
    """Whether a letter continues a list: "A and B", but not "B, I think" or "B, A is wrong"."""
    between = text[group.end : token.start]
    if not between.strip() or not _SEPARATOR.fullmatch(between) or group.small is not token.small:
        return False
    after = text[token.end : token.end + REACH_CHARS]
    if _SINGULAR.match(after) and "or" not in between.lower():
        return False
    return not is_word(text, token)


def is_word(text: str, place: OptionPlace) -> bool:
    """Whether a bare A or I is the article or the pronoun, by its context."""
    letter = place.letters[-1]
    if not place.bare or letter not in "AI":
        return False
    after = text[place.end : place.end + REACH_CHARS]
    if letter == "I" and _GOES_ON.match(after):  # a line that was wrapped
        return True
    if not _WORD_FOLLOWS.match(after) or cues.CONNECTIVE.match(after):
        return False
    verbs = cues.VERB_AFTER_I if letter == "I" else cues.VERB_AFTER_A
    if verbs.match(after):
        return False
    if place.token != "A":
        return True
    before = text[max(0, place.start - 8) : place.start]
    return not (_MID_SENTENCE.search(before) and _SMALL_WORD.match(after))


# ---- texts of options ------------------------------------------------------------------------------------------------

_SPACE_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[a-zµω°%])")
_ARTICLE = re.compile(r"\b(?:an?|the)\s+$", re.IGNORECASE)
_LABEL = re.compile(r"(?<!\w)[(\[«\"']*([A-Z])([)\]».:,\"']*\s*[–—-]?)\s*$")


def _find_quotes(text: str, letters: str, options: Sequence[str]) -> Iterator[OptionPlace]:
    """Find where the text of an option occurs by itself, with its article; of overlapping options, take the longest."""
    owners: dict[str, list[str]] = {}
    for letter, option in zip(letters, options):
        key = make_option_key(remove_markup(option))
        if len(key) > 1 or (key.isalnum() and not key.isalpha()):
            owners.setdefault(key, []).append(letter)
    if not owners:
        return
    for match in _make_option_pattern(tuple(sorted(owners, key=len, reverse=True))).finditer(text):
        owner = owners.get(make_option_key(match[0]))
        if owner:
            article = _ARTICLE.search(text, max(0, match.start() - 8), match.start())
            start = article.start() if article else match.start()
            yield OptionPlace(start, match.end(), tuple(owner), match[0], kind="text")


def make_option_key(option: str) -> str:
    """Return the text of an option in the form used for comparison."""
    return _SPACE_BEFORE_UNIT.sub("", " ".join(option.lower().split()).strip(" .;,:«»\"'"))


@lru_cache(maxsize=256)
def _make_option_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    texts = "|".join(r"\s+".join(map(_loosen_units, key.split())) for key in keys)
    return re.compile(rf"(?<!\w)(?<!\d[.,])(?<![-−]\b)(?:{texts})(?!\w)(?![.,]\d)(?!\s?%)", re.IGNORECASE)


def _loosen_units(word: str) -> str:
    r"""Return the pattern of a word that allows a space between a number and its unit: "240N", "240 N"."""
    return r"\s*".join(map(re.escape, re.split(r"(?<=\d)(?=[a-zµω°%])", word)))


def _is_labelled(text: str, quote: OptionPlace) -> bool:
    """Whether a letter labels the text that follows, and so stands for it."""
    label = _LABEL.search(text, max(0, quote.start - 12), quote.start)
    return bool(label and (label[1] in quote.letters or label[2].strip()))


# ---- positions -------------------------------------------------------------------------------------------------------

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_CARDINALS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NOUN = re.compile(r"\b(?:option|choice|alternative|one)\b(?! of\b)", re.IGNORECASE)
# "the second option", "2nd option" at the start of a sentence; not "the drug of first choice"
_ORDINAL_BEFORE = re.compile(
    r"(?i)(?:\bthe |(?<![\w,] )(?<!\w))(?P<place>(?:very )?"
    rf"(?:{'|'.join(_ORDINALS)}|last|\d{{1,2}}(?:st|nd|rd|th)) (?:listed |answer )?)$"
)
_NUMBER_AFTER = re.compile(
    rf"(?i)[ \t]+(?:number |no\. ?|#)?(?P<place>\d{{1,2}}|{'|'.join(_CARDINALS)})\b(?![.,]\d|[%°])"
)


def _find_positions(text: str, letters: str, all_known: bool) -> Iterator[OptionPlace]:
    """Find options named by their position; "the last one" counts only if the number of options is known."""
    for noun in _NOUN.finditer(text):
        start, end = noun.span()
        before = _ORDINAL_BEFORE.search(text[max(0, start - 30) : start])
        after = None if before or noun[0].lower() == "one" else _NUMBER_AFTER.match(text, end)
        found = before or after
        if not found:
            continue
        start, end = (start - len(found["place"]), end) if before else (start, found.end())
        index = _read_position(found["place"].lower(), len(letters) if all_known else 0)
        if 0 < index <= len(letters):
            yield OptionPlace(start, end, (letters[index - 1],), text[start:end], kind="position")


def _read_position(words: str, last: int) -> int:
    """Return the place in the list that an ordinal or a number means; places count from 1."""
    for word in words.split():
        for names in (_ORDINALS, _CARDINALS):
            if word in names:
                return names.index(word) + 1
        if word[0].isdigit():
            return int(re.sub(r"\D", "", word))
    return last
