"""Where a reply names an option, and what each place is worth.

An option is named by its letter or by its text. English has words that look like letters: "a" and "I"
count only where they cannot be the article or the pronoun, and small letters only where something says
that a letter is meant. Wordings are in `choice_cues`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from context_bench.evaluators import choice_cues as cues
from context_bench.evaluators.verdicts import plain, sentence_around

__all__ = ["Mention", "Weight", "find_mentions"]

_REACH = 160
_FIRST, _LAST = 20, 400
"""A reply that names more options than this is read at both ends only: it is no answer, or a hostile one."""


class Weight(IntEnum):
    """What a mention is worth; PASSING is a bare letter, QUOTED an option's text, NAMED an "option B"."""

    REJECTED = 0
    PASSING = 1
    QUOTED = 2
    NAMED = 3
    SUGGESTED = 4
    STATED = 5


@dataclass(frozen=True)
class Mention:
    """One place where options are named: which ones, where, and what it is worth."""

    start: int
    end: int
    letters: tuple[str, ...]
    weight: Weight


@dataclass(frozen=True)
class _Place:
    """A place that may name options; `token` is the text there, with its brackets."""

    start: int
    end: int
    letters: tuple[str, ...]
    token: str
    quoted: bool = False

    @property
    def small(self) -> bool:
        return not self.quoted and self.token.strip("()[]{}\"'«»<>")[:1].islower()

    @property
    def bare(self) -> bool:
        return len(self.token) == 1


def find_mentions(text: str, letters: str, options: Sequence[str]) -> list[Mention]:
    """All mentions of options in a text that `plain` has been through, in their order."""
    quotes = list(_quotes(text, letters, options))
    free = [quote for quote in quotes if not _labelled(text, quote)]
    places = sorted([*free, *_letter_places(text, letters, quotes)], key=lambda place: place.start)
    if len(places) > _FIRST + _LAST:
        places = [*places[:_FIRST], *places[-_LAST:]]
    page = _Page(text, quotes)
    found = ((place, page.weight(place)) for place in places)
    return [Mention(place.start, place.end, place.letters, weight) for place, weight in found if weight is not None]


# ---- letters ---------------------------------------------------------------------------------------------------------

_SEPARATOR = re.compile(
    r"\s*(?:,\s*(?:and|or)?|/|&|\b(?:and|or|nor|to|through)\b)\s*(?:(?:options?|choices?)\s+)?", re.IGNORECASE
)
_SINGULAR = re.compile(r"\s+(?:is|was|isn't|wasn't|does|doesn't|has|cannot|can't|seems|would|fits|matches)\b")
_WORD_FOLLOWS = re.compile(r"\s+[A-Za-z]")
_WORDLIKE = r"[^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]"  # Chinese, Japanese, Korean: no space before a letter


@lru_cache(maxsize=32)
def _letter_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?<!{_WORDLIKE})(?<!°)(?<!\w')(?<!\w[(\[{{])(?<!\b[A-Za-z]\.)(?<!\b[Nn]/)"
        rf"[(\[{{\"'«<]{{0,4}}[{letters}{letters.lower()}][)\]}}\"'»>]{{0,4}}"
        rf"(?!{_WORDLIKE})(?!'\w)(?!-\w)(?!\.[A-Za-z]\b)(?!\+\+|\#)(?!\s*[=+^×≈≤≥<>]\s*[\w(\\-])"
    )


def _letter_places(text: str, letters: str, quotes: Sequence[_Place]) -> Iterator[_Place]:
    """Letters outside quoted options; a list such as "A, B and C" is one place."""
    inside = {spot for quote in quotes for spot in range(quote.start, quote.end)}
    group: _Place | None = None
    for match in _letter_pattern(letters).finditer(text):
        if match.start() in inside or match.end() - 1 in inside:
            continue
        token = _Place(match.start(), match.end(), (match[0].strip("()[]{}\"'«»<>").upper(),), match[0])
        if group and len(group.letters) < len(letters) and _joins(text, group, token):
            group = _Place(group.start, token.end, (*group.letters, *token.letters), group.token)
            continue
        if group:
            yield group
        group = token
    if group:
        yield group


def _joins(text: str, group: _Place, token: _Place) -> bool:
    """Whether a letter goes on a list: "A and B", but not "B, I think" or "B, A is wrong"."""
    between = text[group.end : token.start]
    if not between.strip() or not _SEPARATOR.fullmatch(between) or group.small is not token.small:
        return False
    after = text[token.end : token.end + _REACH]
    if _SINGULAR.match(after) and "or" not in between.lower():
        return False
    return not (token.bare and token.letters[0] in "AI" and _is_word(token, after))


def _is_word(place: _Place, after: str) -> bool:
    """Whether a bare A or I is the article or the pronoun, by what follows."""
    return bool(_WORD_FOLLOWS.match(after)) and not cues.CONNECTIVE.match(after) and not _verb_follows(place, after)


def _verb_follows(place: _Place, after: str) -> bool:
    verbs = cues.VERB_AFTER_I if place.letters[-1] == "I" else cues.VERB_AFTER_A
    return bool(verbs.match(after))


# ---- texts of options ------------------------------------------------------------------------------------------------


def _quotes(text: str, letters: str, options: Sequence[str]) -> Iterator[_Place]:
    """Where the text of an option stands by itself; of options that nest, the longest."""
    owners: dict[str, list[str]] = {}
    for letter, option in zip(letters, options):
        key = _key(plain(option))
        if len(key) > 1 or (key.isalnum() and not key.isalpha()):
            owners.setdefault(key, []).append(letter)
    if not owners:
        return
    for match in _option_pattern(tuple(sorted(owners, key=len, reverse=True))).finditer(text):
        owner = owners.get(_key(match[0]))
        if owner:
            yield _Place(match.start(), match.end(), tuple(owner), match[0], quoted=True)


def _key(option: str) -> str:
    return " ".join(option.lower().split()).strip(" .;,:«»\"'")


@lru_cache(maxsize=256)
def _option_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    texts = "|".join(r"\s+".join(map(re.escape, key.split())) for key in keys)
    return re.compile(rf"(?<!\w)(?<!\d[.,])(?<![-−]\b)(?:{texts})(?!\w)(?![.,]\d)(?!\s?%)", re.IGNORECASE)


_LABEL = re.compile(r"(?<!\w)[(\[«\"']*([A-Z])([)\]».:,\"']*\s*[–—-]?)\s*$")


def _labelled(text: str, quote: _Place) -> bool:
    """Whether a letter stands before the text as its label, and so speaks for it."""
    label = _LABEL.search(text, max(0, quote.start - 12), quote.start)
    return bool(label and (label[1] in quote.letters or label[2].strip()))


# ---- weighing --------------------------------------------------------------------------------------------------------

_LINE_LABEL = re.compile(
    r"^[^\w\n]{0,12}(?:(?:option|choice)[ \t]+)?[(\[«]{0,2}([A-Z])[)\]».:]", re.MULTILINE | re.IGNORECASE
)
_LABEL_END = re.compile(r"[.):\]»]|\s*[–—-]\s|\s*$|\s*\n")
_TEXT_END = re.compile(r"\s*[.:;!](?=\s)|\s+[–—-]\s|,\s+(?:because|since|as|although|not)\b")
_ANSWER_LINE = re.compile(r"(?:^|[.!?\n])\W*(?:final\s+)?answer\W*$", re.IGNORECASE)
_LINE_END = re.compile(r"[.!)\s]*(?:\n|$)")
_ENDS = re.compile(r"\s*(?:[.!,;:?)]|$|\n)")


_CLAUSE = re.compile(r"[,;.!?\n]|\b(?:although|though|but|while|whereas)\b", re.IGNORECASE)


class _Page:
    """A text and what has to be known of the whole of it to weigh one place."""

    def __init__(self, text: str, quotes: Sequence[_Place]) -> None:
        self.text = text
        self.quotes = {quote.start: quote for quote in quotes}
        self.labels = [letter.upper() for letter in _LINE_LABEL.findall(text)]
        self.bold = set(re.findall(r"«([A-Z])»", text))

    def weight(self, place: _Place) -> Weight | None:
        """What the place is worth; None when no option is meant."""
        before, after = self.text[max(0, place.start - _REACH) : place.start], self._after(place)
        if not self._means_option(place, before, after):
            return None
        if cues.REJECTED_BEFORE.search(before) or cues.REJECTED_AFTER.match(after):
            return Weight.REJECTED
        claim = self._claim(place, before, after)
        if claim > Weight.NAMED and self._unreal(place):
            return Weight.QUOTED if place.quoted else Weight.NAMED
        if claim is Weight.PASSING and not _ENDS.match(self.text[place.end : place.end + 8]):
            return None
        return claim

    def _after(self, place: _Place) -> str:
        """What follows, with the option's own text passed over: "B) Oranges is right" says that B is right."""
        end = place.end
        gap = re.match(r"[)\].:,\s–—-]*", self.text[end : end + 8])
        quote = self.quotes.get(end + (gap.end() if gap else 0))
        if quote and not place.quoted and quote.letters == place.letters:
            end = quote.end
        return self.text[end : end + _REACH]

    def _means_option(self, place: _Place, before: str, after: str) -> bool:
        if place.quoted or not place.bare:
            return True
        if place.letters[0] in "CF" and re.search(r"\d\s?$", before):  # degrees
            return False
        ambiguous = len(place.letters) == 1 and place.letters[0] in "AI"
        if place.small:
            return self._small_letter(place, before, ambiguous and _is_word(place, after))
        if ambiguous and _is_word(place, self.text[place.end : place.end + _REACH]):
            own_text_follows = after != self.text[place.end : place.end + _REACH]
            return own_text_follows or (place.letters == ("A",) and bool(cues.STATED_BEFORE.search(before)))
        return True

    def _small_letter(self, place: _Place, before: str, word: bool) -> bool:
        if cues.NAMED_BEFORE.search(before):
            return True
        if word:
            return False
        if cues.STATED_BEFORE.search(before) or self._layout(place) is not None:
            return True
        ends = _ENDS.match(self.text[place.end : place.end + 8])
        return bool(ends and place.letters[0] not in "AI" and cues.SUGGESTED_BEFORE.search(before))

    def _claim(self, place: _Place, before: str, after: str) -> Weight:
        if cues.STATED_BEFORE.search(before) or cues.STATED_AFTER.match(after):
            return Weight.STATED
        layout = self._layout(place)
        if layout is not None:
            return layout
        # A short text such as "2" is part of many a calculation.
        telling = not place.quoted or sum(map(str.isalpha, place.token)) > 3
        if telling and (cues.SUGGESTED_BEFORE.search(before) or cues.SUGGESTED_AFTER.match(after)):
            return Weight.SUGGESTED
        if place.quoted:
            return Weight.QUOTED
        if "«" in place.token:
            return Weight.SUGGESTED if len(self.bold) == 1 else Weight.NAMED
        if _ANSWER_LINE.search(before) and _LINE_END.match(after):
            return Weight.STATED
        return Weight.NAMED if not place.bare or cues.NAMED_BEFORE.search(before) else Weight.PASSING

    def _layout(self, place: _Place) -> Weight | None:
        """A letter alone on a line, or as the label that opens the reply or its last line."""
        text = self.text
        line_start, line_end = text.rfind("\n", 0, place.start) + 1, text.find("\n", place.end)
        line_end = len(text) if line_end < 0 else line_end
        if re.search(r"\w", text[line_start : place.start]):
            return None
        opens, closes = not text[:line_start].strip(), not text[line_end:].strip()
        if not re.search(r"\w", text[place.end : line_end]):
            return Weight.STATED if opens or closes else Weight.SUGGESTED
        after = text[place.end : place.end + _REACH]
        if place.quoted:
            return Weight.STATED if opens and _TEXT_END.match(after) else None
        label = _LABEL_END.match(after) or _LABEL_END.match(place.token[-1])
        joined = cues.CONNECTIVE.match(after) or (after.startswith(",") and place.letters != ("I",))
        own_text = self._after(place) != after
        if opens and (label or joined or own_text) and self.labels[:2] != ["A", "B"]:
            return Weight.STATED
        if closes and (label or own_text) and not self._lists_to_the_end():
            return Weight.STATED
        return None

    def _lists_to_the_end(self) -> bool:
        return len(self.labels) > 1 and self.labels[-2] < self.labels[-1]

    def _unreal(self, place: _Place) -> bool:
        """Whether the sentence asks, or speaks of another case than the one at hand."""
        sentence = sentence_around(self.text, place.start, place.end).rstrip("\"') »\n")
        if sentence.endswith("?"):
            return True
        if not cues.HYPOTHETICAL.search(sentence):
            return False
        clause = re.split(_CLAUSE, self.text[max(0, place.start - _REACH) : place.start])[-1]
        rest = re.split(_CLAUSE, self.text[place.end : place.end + _REACH])[0]
        return bool(cues.ABANDONED.search(f"{clause} {rest}"))
