"""Weighs each place where a reply names an option, by the words and the layout around it.

Places are found by `option_places`; wordings are in `option_cues`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from context_bench.evaluators.choice import option_cues as cues
from context_bench.evaluators.choice.option_places import (
    REACH_CHARS,
    OptionPlace,
    find_places,
    is_word,
    make_option_key,
)
from context_bench.text.golds import cut_sentence_around

FIRST_MENTIONS, LAST_MENTIONS = 20, 400
"""Replies with more mentions are read only at both ends, because they are no real answers, or are hostile."""


class Weight(IntEnum):
    """The weight of a mention; PASSING is a bare letter, QUOTED an option's text, NAMED an "option B"."""

    REJECTED = 0
    PASSING = 1
    QUOTED = 2
    NAMED = 3
    SUGGESTED = 4
    STATED = 5


@dataclass(frozen=True)
class OptionMention:
    """A mention of options: its place and weight, the letters of the options, and whether their text names them."""

    start: int
    end: int
    letters: tuple[str, ...]
    weight: Weight
    quoted: bool = False


def find_mentions(text: str, letters: str, options: Sequence[str], bold: Collection[str] = ()) -> list[OptionMention]:
    """Find all mentions of options, in order, in a text from `remove_markup`.

    `options` are the texts of the options, where known; `bold` has the texts that the reply has in bold.
    """
    places, quotes = find_places(text, letters, options)
    if len(places) > FIRST_MENTIONS + LAST_MENTIONS:
        places = [*places[:FIRST_MENTIONS], *places[-LAST_MENTIONS:]]
    page = _Page(text, quotes, bold)
    weighed = [(place, weight) for place in places if (weight := page.weight(place)) is not None]
    return [OptionMention(place.start, place.end, place.letters, weight, place.quoted) for place, weight in weighed]


_LINE_START = r"[^\w\n]{0,12}(?:\d{1,2}[.)][ \t]+)?(?:(?:option|choice)[ \t]+)?[(\[«]{0,2}"
_LINE_LABEL = re.compile(rf"^{_LINE_START}([A-Z])(?:[)\]».:]|[ \t]*\||[ \t]+[–—-][ \t])", re.MULTILINE | re.IGNORECASE)
_LINE_VERDICTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:[.;:,(|–—✓✅✔❌✗✘✖]|\s-|\s=>?|→)\s*(?:(?:so|therefore|hence|thus|this|that|it|is|was)\s+){0,3}"
        r"(?:(?P<bad>not\s+correct|incorrect|wrong|eliminated?|ruled\s+out|no|not\s+this|❌|✗|✘|✖)"
        r"|(?P<good>correct|right|yes|✓|✅|✔)(?:\s+(?:answer|choice|option))?)[^\w\n]*$",
        r"\s(?:(?P<bad>[❌✗✘✖])|(?P<good>[✓✅✔]))[^\w\n]*$",
        r"(?:[:|–—]|\s-|\s=>?|→)\s*(?:(?P<bad>incorrect|wrong)|(?P<good>correct))[.:!](?=\s)",
        # A table cell that contains only a verdict, whatever the next one says.
        r"\|[^\w\n|]*(?:(?P<bad>incorrect|wrong|no|eliminated?|❌|✗|✘|✖)|(?P<good>correct|right|yes|✓|✅|✔))[^\w\n|]*\|",
        # "A. True" is an option, "A. red - True" a verdict.
        r"\w[^\w\n]{0,6}?(?:[:|–—]|\s-|\s=>?|→)[^\w\n]*(?:(?P<bad>false)|(?P<good>true))[^\w\n]*$",
    )
)
"""The end of a line, or its part after a dash, that judges the option at its start."""
_WRONG_SECTION = re.compile(
    r"(?im)^[^\w\n]*(?:why\s+(?:not\s+)?(?:are\s+)?(?:the\s+)?(?:others?|rest)\b|distractors\b"
    r"|(?:the\s+)?(?:wrong|incorrect|other|eliminated|rejected)\s+(?:answers?|options?|choices?)\b)[^\n]{0,40}?[^\w\n]*\n"
    rf"(?P<body>(?:[ \t]*\n|{_LINE_START}(?-i:[A-Z])\b[^\n]*(?:\n|\Z))+)"
)
"""A heading such as "Why not the others?", and the lines below it that begin with an option."""
_LABEL_END = re.compile(r"[.):\]»]|\s*[–—-]\s|\s*\(|\s*$|\s*\n")
_HEADING = re.compile(
    r"(?i)[^\n:?\"]*\b(?:best|most|correct|right|likely|appropriate|result|solution|verdict|final|therefore|so|thus|hence)\b"
    r"[^\n:?\"]{0,60}:[^\w\n]*"
)
_TEXT_END = re.compile(r"\s*[.:;!](?=\s)|\s+[–—-]\s|,\s+(?:because|since|as|although|not)\b")
_ANSWER_LINE = re.compile(r"(?:^|[.!?\n])\W*(?:final\s+)?answer\W*$", re.IGNORECASE)
_LINE_END = re.compile(r"[.!)\s]*(?:\n|$)")
_ENDS = re.compile(r"\s*(?:[.!,;:?)]|$|\n)")
_SENTENCE_STARTS = re.compile(r"(?:^|[.!?][\"')»]?\s|\n)[^\w\n]*$")
_COLON = re.compile(r":[^\w\n]*$")
_CLAUSE = re.compile(r"[,;.!?\n]|\b(?:although|though|but|while|whereas)\b", re.IGNORECASE)
_SPEECH = re.compile(r"\"[^\"\n]{0,120}\w[ \t]+[^\"\n]{0,120}$")


class _Page:
    """A text, with the facts that are needed to weigh a place in the text."""

    def __init__(self, text: str, quotes: Sequence[OptionPlace], bold: Collection[str]) -> None:
        self.text = text
        self.quotes = {quote.start: quote for quote in quotes}
        self.wrong = [section.span("body") for section in _WRONG_SECTION.finditer(text)]
        labels = [label for label in _LINE_LABEL.finditer(text) if not self._is_in_wrong_section(label.start(1))]
        self.labels = [label[1].upper() for label in labels]
        self.bold = set(re.findall(r"«([A-Z])»", text))
        self.bold_texts = {quote.letters for quote in quotes if make_option_key(quote.token) in bold} if bold else set()
        self.verdicts = self._find_line_verdicts(labels)

    def _find_line_verdicts(self, labels: Sequence[re.Match[str]]) -> dict[int, Weight]:
        """Find lines that begin with an option and judge it ("B. Oranges - correct"), keyed by where its name ends."""
        ends = [label.end(1) for label in labels]
        ends += [quote.end for quote in self.quotes.values() if self._opens_line(quote)]
        found: list[tuple[int, bool]] = []
        for start in ends[:LAST_MENTIONS] if len(ends) > 1 else ():
            end = self.text.find("\n", start)
            end = len(self.text) if end < 0 else end
            verdicts = (pattern.search(self.text, start, end) for pattern in _LINE_VERDICTS)
            if verdict := next(filter(None, verdicts), None):
                found.append((start, bool(verdict["good"])))
        only_one_good = sum(good for _, good in found) == 1
        return {at: Weight.SUGGESTED if good else Weight.REJECTED for at, good in found if only_one_good or not good}

    def _opens_line(self, place: OptionPlace) -> bool:
        line = self.text[max(self.text.rfind("\n", 0, place.start) + 1, place.start - 12) : place.start]
        return not re.search(r"\w", line)

    def _is_in_wrong_section(self, spot: int) -> bool:
        return any(start <= spot < end for start, end in self.wrong)

    def weight(self, place: OptionPlace) -> Weight | None:
        """Return the weight of a place; None when no option is meant there."""
        before, after = self.text[max(0, place.start - REACH_CHARS) : place.start], self._read_after(place)
        if not self._means_option(place, before, after):
            return None
        if self._is_in_wrong_section(place.start):
            return Weight.REJECTED if self._opens_line(place) else None
        if cues.ALL_BUT.search(before) or cues.ASKED_YES.match(after):
            return Weight.SUGGESTED
        if cues.REJECTED_BEFORE.search(before) or cues.REJECTED_AFTER.match(after) or cues.ASKED_NO.match(after):
            return Weight.REJECTED
        claim = self._weigh_claim(place, before, after)
        if claim > Weight.NAMED and self._is_unreal(place, before):
            return Weight.QUOTED if place.quoted else Weight.NAMED
        if claim is Weight.PASSING and not _ENDS.match(self.text[place.end : place.end + 8]):
            return None
        if claim is Weight.NAMED and place.kind == "position" and place.token.lower().endswith("one"):
            return None  # "the first one" may be anything
        return claim

    def _read_after(self, place: OptionPlace) -> str:
        """Read the text after the mention, skipping the option's own text: "B) Oranges is right" says that B is
        right."""
        end = place.end
        gap = re.match(r"[)\].:,\s–—-]*", self.text[end : end + 8])
        quote = self.quotes.get(end + (gap.end() if gap else 0))
        if quote and not place.quoted and quote.letters == place.letters:
            end = quote.end
        return self.text[end : end + REACH_CHARS]

    def _means_option(self, place: OptionPlace, before: str, after: str) -> bool:
        if place.kind != "letter" or not place.bare:
            return True
        word = len(place.letters) == 1 and is_word(self.text, place)
        own_text_follows = after != self.text[place.end : place.end + REACH_CHARS]
        if place.small:
            return self._is_small_letter(place, before, word and not own_text_follows)
        if word:
            return own_text_follows or (place.letters == ("A",) and bool(cues.STATED_BEFORE.search(before)))
        return True

    def _is_small_letter(self, place: OptionPlace, before: str, word: bool) -> bool:
        if word:  # "to answer a question"
            return False
        if cues.NAMED_BEFORE.search(before) or cues.STATED_BEFORE.search(before):
            return True
        if self._weigh_layout(place) is not None:
            return True
        ends = _ENDS.match(self.text[place.end : place.end + 8])
        return bool(ends and place.letters[0] not in "AI" and cues.SUGGESTED_BEFORE.search(before))

    def _weigh_claim(self, place: OptionPlace, before: str, after: str) -> Weight:
        if cues.STATED_BEFORE.search(before) or cues.STATED_AFTER.match(after):
            return Weight.STATED
        end = place.start + len(place.token.rstrip(")]}\"'»>")) if place.kind == "letter" else place.end
        if end in self.verdicts:
            return self.verdicts[end]
        layout = self._weigh_layout(place)
        if layout is not None:
            return layout
        # A short text such as "2" is part of many a calculation.
        telling = not place.quoted or sum(map(str.isalpha, place.token)) > 3
        if telling and (cues.SUGGESTED_BEFORE.search(before) or cues.SUGGESTED_AFTER.match(after)):
            return Weight.SUGGESTED
        if place.quoted:
            return Weight.SUGGESTED if self.bold_texts == {place.letters} else Weight.QUOTED
        if "«" in place.token:
            return Weight.SUGGESTED if len(self.bold) == 1 else Weight.NAMED
        if _ANSWER_LINE.search(before) and _LINE_END.match(after):
            return Weight.STATED
        return Weight.NAMED if not place.bare or cues.NAMED_BEFORE.search(before) else Weight.PASSING

    def _weigh_layout(self, place: OptionPlace) -> Weight | None:
        """Weigh a letter by where it stands: alone on a line, as a label of the reply or its last line, or in the last
        sentence."""
        text = self.text
        line_start, line_end = text.rfind("\n", 0, place.start) + 1, text.find("\n", place.end)
        line_end = len(text) if line_end < 0 else line_end
        opens, closes = not text[:line_start].strip(), not text[line_end:].strip()
        if re.search(r"\w", text[line_start : place.start]):
            before = text[max(line_start, place.start - REACH_CHARS) : place.start]
            return self._weigh_end_of_line(place, before) if closes else None
        if not re.search(r"\w", text[place.end : line_end]):
            return Weight.STATED if opens or closes else Weight.SUGGESTED
        after = text[place.end : place.end + REACH_CHARS]
        if place.quoted:
            return Weight.STATED if opens and _TEXT_END.match(after) else None
        label = _LABEL_END.match(after) or _LABEL_END.match(place.token[-1])
        joined = cues.CONNECTIVE.match(after) or (after.startswith(",") and place.letters != ("I",))
        own_text = self._read_after(place) != after
        listed = self.labels[:2] == ["A", "B"] if opens else self._lists_to_the_end()
        if (opens or closes) and (joined or ((label or own_text) and not listed)):
            return Weight.STATED
        return None

    def _weigh_end_of_line(self, place: OptionPlace, before: str) -> Weight | None:
        """Weigh a last sentence that is only an option, or a last line such as "Best next step: C - wait"."""
        after = self.text[place.end : place.end + REACH_CHARS]
        alone = _SENTENCE_STARTS.search(before) or (place.quoted and _COLON.search(before))
        if alone and not re.search(r"\w", self.text[place.end :]):
            return Weight.STATED
        own_text = self._read_after(place) != after
        if _HEADING.fullmatch(before) and place.kind == "letter" and (_LABEL_END.match(after) or own_text):
            return Weight.STATED
        return None

    def _lists_to_the_end(self) -> bool:
        return len(self.labels) > 1 and self.labels[-1] not in self.labels[:-1]

    def _is_unreal(self, place: OptionPlace, before: str) -> bool:
        """Whether the sentence asks, quotes, or is about another case."""
        sentence = cut_sentence_around(self.text, place.start, place.end).rstrip("\"') »\n")
        if sentence.endswith("?"):
            return True
        clause = re.split(_CLAUSE, before)[-1]
        if cues.EARLIER.search(clause) or self._is_in_speech(place, before):
            return True
        if not cues.HYPOTHETICAL.search(sentence):
            return False
        rest = re.split(_CLAUSE, self.text[place.end : place.end + REACH_CHARS])[0]
        return bool(cues.ABANDONED.search(f"{clause} {rest}"))

    def _is_in_speech(self, place: OptionPlace, before: str) -> bool:
        """Whether the claim is a quotation: someone marked "The answer is D" and was wrong."""
        line = before.rpartition("\n")[2]
        speech = _SPEECH.search(line) if line.count('"') % 2 else None
        after = self.text[place.end : place.end + REACH_CHARS]
        return bool(speech and re.search(r"\w", line[: speech.start()]) and '"' in after)
