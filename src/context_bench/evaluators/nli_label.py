"""Natural language inference: the verdict of a reply against the gold label.

Contract NLI says entailment, contradiction, not mentioned; SciFact says support, contradict, not enough info: two
wordings of the same classes. A stated verdict ("Label: ...", or a label alone on a line) outranks labels in the
reasoning, which outrank hints and a plain yes or no. A negated label does not count; "neither entails nor contradicts"
is neutral. A refusal to judge is not a verdict; "the text does not say" is neutral.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from context_bench.evaluators import nli_cues as cues
from context_bench.evaluators.nli_cues import NliVerdict
from context_bench.results import Scores
from context_bench.text.golds import gold_answers, remove_markup, response_text

MAX_CHARS, MAX_CUES = 20_000, 500
_SENTENCE = re.compile(r"[^.!?\n]*(?:[.!?](?=\s|$|[\"')»])|\n|$|[.!?])")
_SEGMENT_END = re.compile(r"\n|(?<=[a-z][.;]) (?=[A-Z])")
_ENUMERATOR = re.compile(r"^\W*(?:(?:option\s+)?[A-Da-d1-4][.):]\s+|\([A-Da-d1-4]\)\s*)?", re.IGNORECASE)


def label_verdict(label: str) -> NliVerdict | None:
    """Return the class of a label in any of the accepted spellings, such as "NOT_ENOUGH_INFO"."""
    return cues.ALIASES.get(re.sub(r"[^a-z]", "", label.lower()))


def read_verdict(reply: str) -> NliVerdict | None:
    """Return the verdict of a reply; None when the reply has no verdict."""
    text = remove_markup(reply).strip()
    if len(text) > 2 * MAX_CHARS:  # verdicts are at the ends
        text = f"{text[:MAX_CHARS]}\n{text[-MAX_CHARS:]}"
    if marked := _find_field(text) or _find_likeliest(text) or _find_ticked(text):
        return marked
    if _has_several_labels(text):
        return None
    rest = "\n".join(line for line in text.split("\n") if not ((row := _read_tick(line)) and row["cross"]))
    rest = rest if rest.strip() else text
    return _find_stated(rest) or _find_argued(rest)


def _has_several_labels(line: str) -> bool:
    """Whether a line consists of different labels only."""
    verdicts = [label_verdict(label) for label in re.split(r",|/|\bor\b|\band\b", line, flags=re.IGNORECASE)]
    return None not in verdicts and len(set(verdicts)) > 1


# ---- stated verdicts -------------------------------------------------------------------------------------------------


def _find_stated(text: str) -> NliVerdict | None:
    """Return the last announced verdict, or the verdict that replaces it after a change of mind."""
    *before, rest = cues.REVISION.split(text)
    revised = (_find_announced(rest) or _find_label(_read_sentences(rest))) if before else None
    return revised or _find_announced(text)


def _find_announced(text: str) -> NliVerdict | None:
    """Return the last verdict that follows a word such as "label", or is alone on the first or last line."""
    found: list[tuple[int, NliVerdict]] = []
    reply = _Reply(text)
    lines = [line for line in text.split("\n") if line.strip()]
    if lines:
        opening = _read_opening(lines[0], alone=len(lines) == 1)
        closing = _read_whole_line(lines[-1])
        found += [(0, opening)] if opening else []
        found += [(len(text), closing)] if closing else []
    for cue in list(cues.LABEL_NOUN.finditer(text))[-MAX_CUES:]:
        rest = text[cue.end() : cue.end() + 240].lstrip()
        sentence = next(_split_sentences(rest), "")
        if _is_question(sentence):
            continue
        verdict = _read_whole_line(sentence) or _read_opening(sentence, alone=False)
        if verdict := verdict or _Reading(sentence, reply).find_verdict():
            found.append((cue.start(), verdict))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _find_field(text: str) -> NliVerdict | None:
    """Return the verdict in the verdict field of a JSON object."""
    if "{" not in text:
        return None
    verdicts = [verdict for field in cues.JSON_LABEL.finditer(text) if (verdict := label_verdict(field["label"]))]
    return verdicts[-1] if verdicts else None


def _find_likeliest(text: str) -> NliVerdict | None:
    """Return the label with the highest probability, if two or more labels have a probability."""
    shares = {
        verdict: float(found["share"]) / (100 if found["percent"] else 1)
        for found in cues.SHARE.finditer(text)
        if (verdict := label_verdict(found["label"]))
    }
    likely = [verdict for verdict, share in shares.items() if share == max(shares.values())]
    return likely[0] if len(shares) > 1 and len(likely) == 1 and 0.99 <= sum(shares.values()) <= 1.01 else None


def _read_tick(line: str) -> re.Match[str] | None:
    """Read a line of a list or table that accepts or rejects a label."""
    rows = (pattern.fullmatch(line) for pattern in cues.TICKS)
    return next((row for row in rows if row and label_verdict(row["label"])), None)


def _find_ticked(text: str) -> NliVerdict | None:
    """If lines answer labels with yes or no, return the only label with yes; without one, the only label left."""
    rows = [row for line in _SEGMENT_END.split(text) if (row := _read_tick(line))]
    verdicts = [(label_verdict(row["label"]), bool(row["yes"])) for row in rows]
    yes = {verdict for verdict, ticked in verdicts if ticked}
    left = yes or {*NliVerdict} - {verdict for verdict, _ in verdicts}
    return left.pop() if len(verdicts) > 1 and len(left) == 1 else None


def _read_whole_line(line: str) -> NliVerdict | None:
    return label_verdict(_ENUMERATOR.sub("", line)) or label_verdict(line)


def _read_opening(line: str, alone: bool) -> NliVerdict | None:
    """Return the label that opens the reply: alone on a line, or followed by a full stop, colon or dash."""
    line = _ENUMERATOR.sub("", line)
    head = re.split(r"[.:;,(–—]|\s-\s", line, maxsplit=1)[0]
    verdict = label_verdict(head)
    # "Yes, it contradicts the claim" and "No, that is not mentioned" then give the verdict in words.
    plain_yes_no = head.strip().lower() in ("yes", "no", "true", "false", "correct", "incorrect")
    return None if plain_yes_no and not (alone and head.strip() == line.strip(" .!")) else verdict


# ---- verdicts in the reasoning ---------------------------------------------------------------------------------------


def _split_sentences(text: str) -> Iterator[str]:
    return (match[0].strip() for match in _SENTENCE.finditer(text) if match[0].strip())


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"') »").endswith("?")


class _Reply:
    """Facts of a whole reply that are needed to read one sentence, computed on demand."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def refuses(self) -> bool:
        """Whether the writer somewhere refuses the task."""
        return bool(cues.REFUSAL.search(self._text))

    @cached_property
    def lacks_input(self) -> bool:
        """Whether the writer says that the text is missing."""
        return bool(cues.NO_INPUT.search(self._text))


@dataclass
class _Reading:
    """The reading of one sentence: labels given, labels ruled out."""

    sentence: str
    reply: _Reply
    given: list[tuple[int, NliVerdict]] = field(init=False)
    ruled_out: set[NliVerdict] = field(init=False)

    def __post_init__(self) -> None:
        self.ruled_out = set()
        self.sentence = cues.HEDGE.sub("", self.sentence)
        self.given = [*self._find_labels()]
        if len({verdict for _, verdict in self.given}) == len(NliVerdict):  # the choice of labels is being repeated
            self.given = []
        if cues.UNSUPPORTED.search(self.sentence):
            self.ruled_out.add(NliVerdict.ENTAILMENT)

    def _find_labels(self) -> Iterator[tuple[int, NliVerdict]]:
        """Return the given labels by their end positions; negated ones are ruled out."""
        for match, verdict in self._skip_weighed():
            if verdict is NliVerdict.NEUTRAL:
                if not cues.SET_ASIDE.search(self.sentence[max(0, match.start() - 80) : match.start()]):
                    yield match.end(), verdict
            elif cues.NEGATOR.search(self.clause(match.start())) or cues.LACKING.match(self.sentence, match.end()):
                self.ruled_out.add(verdict)
            else:
                yield match.end(), verdict

    def _skip_weighed(self) -> Iterator[tuple[re.Match[str], NliVerdict]]:
        """Return the labels in order, without those that are only considered: "whether it is entailed or neutral"."""
        found = [(match, verdict) for verdict in NliVerdict for match in cues.LABELS[verdict].finditer(self.sentence)]
        found.sort(key=lambda pair: pair[0].start())
        gaps = [self.sentence[one.end() : other.start()] for (one, _), (other, _) in pairwise(found)]
        weighed = False
        for index, (match, verdict) in enumerate(found):
            before = self.sentence[max(0, match.start() - 80) : match.start()]
            goes_on = weighed and bool(cues.LISTED.fullmatch(gaps[index - 1]))
            either = bool(cues.POSSIBLE.search(before)) and index < len(gaps) and bool(cues.OR.fullmatch(gaps[index]))
            weighed = goes_on or either or bool(cues.ALTERNATIVES.search(before))
            if not weighed:
                yield match, verdict

    def clause(self, end: int) -> str:
        """Return the text of the same clause before a place."""
        start = max(0, end - 200)
        for stop in cues.CLAUSE_BREAK.finditer(self.sentence, start, end):
            start = stop.end()
        return self.sentence[start:end]

    @property
    def label(self) -> NliVerdict | None:
        """The label of the sentence: the last given label, or neutral if both other labels are ruled out."""
        if self.given:
            return max(self.given, key=lambda pair: pair[0])[1]
        return NliVerdict.NEUTRAL if len(self.ruled_out) > 1 else None

    @property
    def undecided(self) -> bool:
        """Whether the sentence says that the text does not settle the question (not that the writer cannot)."""
        return any(not self.is_refused(match) for match in cues.UNDECIDED.finditer(self.sentence))

    def is_refused(self, match: re.Match[str]) -> bool:
        """Whether some words are part of a refusal."""
        if self.reply.lacks_input:
            return True
        if not self.reply.refuses or cues.FROM_THE_TEXT.search(self.sentence):
            return False
        return bool(cues.WRITER_SPEAKS.search(self.sentence[max(0, match.start() - 200) : match.start()]))

    def find_verdict(self) -> NliVerdict | None:
        """Find the verdict of the sentence, from its labels, its hints, or its yes or no."""
        return self.label or _find_hint([self]) or _find_last_word(cues.WORDS, self)


def _read_sentences(text: str) -> list[_Reading]:
    reply = _Reply(text)
    return [_Reading(sentence, reply) for sentence in _split_sentences(text) if not _is_question(sentence)]


def _find_label(readings: Sequence[_Reading]) -> NliVerdict | None:
    """Return the last label in the reasoning, preferring sentences about the claim, and those that conclude."""
    labelled = [reading for reading in readings if reading.label]
    about = [each for each in labelled if cues.CLAIM.search(each.sentence)] or labelled
    concluding = [each for each in about if cues.CONCLUDES.search(each.sentence)] or about
    return concluding[-1].label if concluding else None


def _find_argued(text: str) -> NliVerdict | None:
    readings = _read_sentences(text)
    if label := _find_label(readings):
        return label
    if len(set().union(*(reading.ruled_out for reading in readings))) > 1:
        return NliVerdict.NEUTRAL
    if readings and readings[0].reply.lacks_input:
        return None
    first = cues.FIRST_WORD.match(text)
    if first and first[1].lower() != "no":
        return label_verdict(first[1])
    if verdict := _find_hint(readings) or (label_verdict(first[1]) if first else None):
        return verdict
    words = [word for reading in readings if (word := _find_last_word(cues.WORDS, reading))]
    return words[-1] if words else None


def _find_hint(readings: Sequence[_Reading]) -> NliVerdict | None:
    """Find the verdict that the wording suggests, for a text without a label."""
    if any(reading.undecided for reading in readings):
        return NliVerdict.NEUTRAL
    for reading in reversed(readings):
        if verdict := _find_last_word(cues.HINTS, reading):
            return verdict
    return NliVerdict.NEUTRAL if any(NliVerdict.ENTAILMENT in reading.ruled_out for reading in readings) else None


def _find_last_word(words: Mapping[NliVerdict, re.Pattern[str]], reading: _Reading) -> NliVerdict | None:
    """Return the last of some opposed words in a sentence; a negated word counts as its opposite."""
    found: list[tuple[int, NliVerdict]] = []
    for verdict, pattern in words.items():
        opposite = NliVerdict.CONTRADICTION if verdict is NliVerdict.ENTAILMENT else NliVerdict.ENTAILMENT
        for match in pattern.finditer(reading.sentence):
            clause = reading.clause(match.start())
            if reading.is_refused(match) or cues.WHETHER.search(clause):
                continue
            found.append((match.start(), opposite if cues.NEGATOR.search(clause) else verdict))
    return max(found, key=lambda pair: pair[0])[1] if found else None


class NLILabelMatch:
    """Scores `nli_accuracy`: 1.0 when the reply gives the gold verdict.

    Gold labels come in the spellings of Contract NLI, SciFact and similar datasets, and map to three classes:
    entailment, contradiction, neutral. A refusal is none of these classes. The details contain the class that was read
    from the reply.
    """

    name = "nli-label-match"
    version = 3
    needs_answer = True
    score_fields = ("nli_accuracy",)

    def score(self, original: dict[str, Any], processed: dict[str, Any]) -> dict[str, float]:
        golds = [" ".join(gold) for gold in gold_answers(original)]
        wanted = {verdict for gold in golds if (verdict := label_verdict(gold))}
        if not wanted:
            return Scores(reason=f"{golds[0]!r} is not a known label" if golds else "no gold label")
        verdict = read_verdict(response_text(processed))
        details = {"verdict": verdict.value if verdict else None}
        return Scores({"nli_accuracy": float(verdict in wanted)}, details=details)
